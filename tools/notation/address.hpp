// Addresses: a file, an array in it and a slice of that array, as users type them.
//
//   survey.shale                       a container
//   survey.shale:dem                   an array in it
//   survey.shale:dem[10:20, ::-1]      part of the array, in NumPy's slice syntax
//   survey.shale:rate[[Hz][10:20]      a slice of the array called rate[Hz]
//   dem.npy[..., None]                 a NumPy file
//   dem.npz:elevation                  a member of a NumPy archive
//   net.t7:weights/1                   a tensor in a file of Torch7, by its path
//   dem.raw:int16(344,403)[0]          bare little-endian elements; without a shape, one long axis
//
// The file ends at the first known suffix (.shale .npy .npz .t7 .raw .bin) that is followed by ':',
// '[' or the end of the text, so neither directories nor names before it need quoting. An array's
// name ends at the first '[' that is not doubled. No slice begins with '[[', so every name can be
// typed.
// The meaning of an address depends on its text alone, not on the files that exist.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/tensor.hpp"

namespace shale::tools {

enum class file_format { shale, npy, npz, t7, raw };

/// The name of the format: "shale", "npy", "npz", "t7" or "raw".
std::string_view name(file_format format) noexcept;

struct address {
  std::string text;  ///< as typed
  std::string file;
  file_format format = file_format::shale;

  /// The name of the array or member. Empty for the whole file; always empty for npy and raw. A .t7
  /// file may hold one tensor, which has no name.
  std::string array;

  /// The dtype and shape of a raw file, if the address gives them.
  std::optional<shale::dtype> raw_dtype;
  std::optional<dims> raw_shape;

  /// The entries of the slice, if there is one ("a[...]" has one entry).
  std::optional<std::vector<index_entry>> index;

  /// "file:array" without the slice, as it can be typed.
  std::string label() const;
};

/// The format that the end of a file's name tells; nothing without a known suffix.
std::optional<file_format> format_of(std::string_view file_name) noexcept;

/// The name of an array as an address writes it: with each '[' doubled.
std::string name_in_address(std::string_view array);

/// The address of a whole array.
std::string label(const std::string& file, std::string_view array);

/// Throws   invalid_argument (no known suffix), located_error (an empty name, no valid slice, …)
address parse_address(std::string_view text);

/// An address without a slice, for example of an array that is to be created.
/// Throws   as parse_address, and located_error for a slice
address parse_whole_address(std::string_view text);

/// The address of an array in a container.
/// Throws   as parse_whole_address, and invalid_argument for another format or without a name
address parse_array_address(std::string_view text);

/// Refuses an address that names a file where an array in it is needed. `advice` says what to type.
/// Throws   invalid_argument
[[noreturn]] void throw_no_array(const std::string& text, const std::string& advice);

/// The file at the beginning of an address; nothing if the text has no known suffix.
std::optional<std::string> named_file(std::string_view text);

/// Whether both paths lead to the same file.
bool is_same_file(const std::string& a, const std::string& b);

}  // namespace shale::tools
