// Elements of our dtypes as other formats keep them: in a range of a file, in either byte order,
// perhaps not aligned. Knows nothing about any format.
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

/// What the two readers and writers below move at a time.
inline constexpr std::size_t piece_bytes = std::size_t{4} << 20;

/// Where elements lie in a file.
struct element_place {
  std::uint64_t offset = 0;  ///< byte of position 0
  shale::dtype dtype = shale::dtype::float32;
  std::endian byte_order = std::endian::little;
  layout geometry;  ///< dense: positions 0 to size - 1

  std::uint64_t bytes() const noexcept {
    return static_cast<std::uint64_t>(geometry.size()) * item_bytes(dtype);
  }
};

/// What the address of an element must be a multiple of.
std::size_t alignment_bytes(dtype type) noexcept;

/// Reverses the bytes of every number; a complex element is two numbers.
void swap_bytes(std::span<std::byte> elements, dtype type) noexcept;

/// Whether the file's own bytes can be the tensor's.
bool mappable(const element_place& place) noexcept;

/// The elements, mapped if `mappable`, else copied. The range must lie inside the file.
/// `read_only` holds for copies too, so that what a caller may do does not hang on the file.
/// Throws   as read_npy
tensor read_elements(const input_file& file, const element_place& place, access allowed);

/// Finds the first byte that is neither 0 nor 1. Other values in a bool are undefined behaviour
/// for every kernel that would meet them.
/// Throws   corrupt naming the element; `bytes` are those of the storage of a bool tensor
void require_booleans(const storage& bytes);

/// Hands out the bytes of `values`, row-major in `order`, in consecutive pieces of at most
/// `piece_bytes`. The bytes are good until `sink` returns.
/// Throws   io (a mapped source lost its file), and what `sink` throws
void stream_elements(const tensor& values, std::endian order, executor& on,
                     const std::function<void(std::span<const std::byte>)>& sink);

/// The bytes of the storage between the first and the last that `values` touches.
byte_range touched_bytes(const tensor& values) noexcept;

}  // namespace shale::interop
