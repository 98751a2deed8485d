// Reads an .npy header from a source of bytes, without reading more than the header.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "shale/npy.hpp"

namespace shale::interop {

inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// The bytes of magic, version and the longer of the two length fields.
inline constexpr std::size_t npy_prefix_bytes = 12;

/// The longest accepted header. No dtype of Shale with a rank up to 32 needs more. By default,
/// NumPy refuses headers of more than 10,000 bytes.
inline constexpr std::size_t npy_longest_header_bytes = std::size_t{1} << 16;

/// Reads a header from a source of bytes. `read(into, offset)` fills `into` with the bytes of the
/// .npy data from `offset` on and returns how many there were. The first call asks for the shortest
/// possible prefix.
npy_header read_npy_header(
    const std::function<std::size_t(std::span<std::byte>, std::size_t)>& read);

/// The dtype's code in an .npy header ("<f4", ">i8", "|b1").
/// Throws   unsupported for dtypes for which NumPy has no code
std::string npy_descr(dtype type, std::endian order);

}  // namespace shale::interop
