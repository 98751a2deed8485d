// Reads and writes elements in a range of a foreign file: in either byte order, aligned or not. It
// knows nothing about any file format.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "interop/input_file.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::interop {

static_assert(std::endian::native == std::endian::little, "Shale runs on little-endian machines");

/// The readers and writers below process this many bytes at a time.
inline constexpr std::size_t piece_bytes = std::size_t{4} << 20;

/// The position and the form of elements in a file.
struct element_place {
  std::uint64_t offset = 0;  ///< of the element at position 0, in bytes
  shale::dtype dtype = shale::dtype::float32;
  std::endian byte_order = std::endian::little;
  shale::layout layout;  ///< dense: positions 0 to size - 1

  std::uint64_t bytes() const noexcept {
    return static_cast<std::uint64_t>(layout.size()) * item_bytes(dtype);
  }
};

/// Throws   invalid_argument unless the order is little or big
void require_byte_order(std::endian order);

/// The alignment of an element in bytes.
std::size_t alignment_bytes(dtype type) noexcept;

/// Reverses the bytes of every number; a complex element is two numbers.
void swap_bytes(std::span<std::byte> elements, dtype type) noexcept;

/// Whether a tensor can use the bytes of the file directly: the byte order is native and the offset
/// is aligned.
bool mappable(const element_place& place) noexcept;

/// Reads the elements: mapped if `mappable`, else copied. The range must lie inside the file. With
/// `read_only` access a copy is read-only too, so that the access of the result does not depend on
/// the file.
/// Throws   as read_npy
tensor read_elements(const input_file& file, const element_place& place, access allowed);

/// Checks that every byte is 0 or 1. Other values in a bool would be undefined behaviour in every
/// kernel that reads them.
/// Throws   corrupt naming the first wrong element; `bytes` is the storage of a bool tensor
void require_booleans(const storage& bytes);

/// Passes the bytes of `values` to `sink`, row-major and in the byte order `order`, in consecutive
/// pieces of at most `piece_bytes`. Bools are passed as 0 and 1, whatever bytes `values` has. The
/// bytes are valid until `sink` returns. The executor counts a call, and the elements as read and
/// written.
/// Throws   io (a mapped source lost its file), and what `sink` throws
void stream_elements(const tensor& values, std::endian order, executor& on,
                     const std::function<void(std::span<const std::byte>)>& sink);

/// The range of the storage from the first to the last byte of an element of `values`.
byte_range touched_bytes(const tensor& values) noexcept;

}  // namespace shale::interop
