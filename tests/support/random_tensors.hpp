// Tensors over random layouts with random elements, and their elements read back one by one through
// positions that no code under test computed.
#pragma once

#include <cstring>
#include <vector>

#include "shale/memory_pool.hpp"
#include "shale/tensor.hpp"
#include "support/index_oracle.hpp"
#include "support/random_layouts.hpp"

namespace shale::test {

inline index_list as_list(const dims& values) { return {values.begin(), values.end()}; }

/// The storage positions of a tensor's elements, in row-major order of its indices.
inline index_list positions_of(const tensor& which) {
  return index_oracle::strided(as_list(which.shape()), as_list(which.strides()), which.offset())
      .positions;
}

/// The elements in row-major order.
template <class T>
std::vector<T> elements_of(const tensor& which) {
  std::vector<T> result;
  for (const auto position : positions_of(which)) {
    T element;
    std::memcpy(&element, which.storage().data() + position * static_cast<index_t>(sizeof(T)),
                sizeof(T));
    result.push_back(element);
  }
  return result;
}

/// A tensor over `placed` whose whole storage, gaps included, holds small whole numbers.
template <class T, class Choose>
tensor random_tensor(Choose&& choose, const placed_layout& placed) {
  storage bytes = storage::allocate(static_cast<std::size_t>(placed.positions) * sizeof(T));
  auto* at = reinterpret_cast<T*>(bytes.data());
  for (index_t i = 0; i < placed.positions; ++i)
    at[i] = static_cast<T>(static_cast<float>(choose(0, 100)));
  return tensor(bytes, dtype_of<T>(), placed.geometry);
}

template <class T, class Choose>
tensor random_tensor(Choose&& choose, const dims& shape, sharing may_share = sharing::allowed) {
  return random_tensor<T>(choose, random_layout(choose, shape, may_share));
}

/// For row-major walks over `shape`: which element (in row-major order) of something of shape
/// `from` broadcasts to each place.
inline index_list broadcast_positions(const dims& from, const dims& shape) {
  return index_oracle::row_major(as_list(from)).expand(as_list(shape)).positions;
}

/// Every byte of a storage.
inline std::vector<std::byte> bytes_of(const storage& which) {
  return {which.data(), which.data() + which.size_bytes()};
}

}  // namespace shale::test
