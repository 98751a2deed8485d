// The pieces of memory under a part of a mapped tensor.
#pragma once

#include "parallel/mapped/mapped_bytes.hpp"
#include "parallel/mapped/memory_pieces.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

inline dims strides_bytes_of(const tensor& part) {
  dims strides = part.strides();
  for (index_t& stride : strides) stride *= static_cast<index_t>(part.item_bytes());
  return strides;
}

/// The part has elements. Pieces that are at most `gap_bytes` apart are one.
inline memory_pieces pieces_of_part(const tensor& part, index_t gap_bytes) {
  return pieces_of(part.shape(), strides_bytes_of(part), static_cast<index_t>(part.item_bytes()),
                   gap_bytes);
}

/// Calls `visit(range of the storage)` for each piece.
template <class Visit>
void for_each_piece(const tensor& part, index_t gap_bytes, Visit visit) {
  for_each_memory_piece(
      part.shape(), strides_bytes_of(part), static_cast<index_t>(span_of(part).offset),
      static_cast<index_t>(part.item_bytes()), gap_bytes, [&](index_t begin, index_t end) {
        visit(byte_range{static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)});
      });
}

}  // namespace shale::parallel
