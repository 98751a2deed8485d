// How much of an .npy file is its header: for readers that must not read more than that.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "shale/npy.hpp"

namespace shale::interop {

inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// Magic, version and the longest of the two length fields.
inline constexpr std::size_t npy_prefix_bytes = 12;

/// No dtype of ours and no rank up to 32 needs more; NumPy itself refuses 10,000 unless told to.
inline constexpr std::size_t npy_longest_header_bytes = std::size_t{1} << 16;

/// Reads a header from a source of bytes: `read(into, offset)` fills `into` with the bytes from
/// `offset` of the .npy data on, returns how many there were, and is called for the shortest
/// prefix first.
npy_header read_npy_header(
    const std::function<std::size_t(std::span<std::byte>, std::size_t)>& read);

/// The dtype's code in an .npy header ("<f4", ">i8", "|b1").
/// Throws   unsupported for the dtypes that NumPy has no code for
std::string npy_descr(dtype type, std::endian order);

}  // namespace shale::interop
