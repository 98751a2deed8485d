// What a command works on, as typed: a file, an array in it, and a slice of that.
//
//   survey.shale                       a container
//   survey.shale:dem                   an array in it
//   survey.shale:dem[10:20, ::-1]      part of the array, in NumPy's slice syntax
//   survey.shale:rate[[Hz][10:20]      the same of an array called rate[Hz]
//   dem.npy[..., None]                 a NumPy file
//   dem.npz:elevation                  a member of a NumPy archive
//   dem.raw:int16(344,403)[0]          bare little-endian elements; without a shape, one long axis
//
// The file ends at the first known suffix (.shale .npy .npz .raw .bin) that is followed by ':', '['
// or the end of the text, so neither directories nor names before it need quoting. An array's name
// ends at the first '[' that is not doubled: no slice begins with '[[', so this takes no meaning
// from anything, and what an address says depends on nothing but its text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/tensor.hpp"

namespace shale::tools {

enum class file_format { shale, npy, npz, raw };

/// "shale", "npy", "npz", "raw".
std::string_view name(file_format format) noexcept;

struct address {
  std::string text;  ///< as typed
  std::string file;
  file_format format = file_format::shale;

  /// The array or member; empty for the file as a whole, and always for npy and raw.
  std::string array;

  /// Raw only: how to read the bytes, where the address says it.
  std::optional<shale::dtype> raw_dtype;
  std::optional<dims> raw_shape;

  /// The slice; nothing if there is none ("a[...]" has one entry).
  std::optional<std::vector<index_entry>> index;

  /// "file:array", without the slice: an address again, that can be typed.
  std::string label() const;
};

/// The address of a whole array.
std::string label(const std::string& file, std::string_view array);

/// Throws   located_error: no known suffix, an empty name, anything that is not a slice
address parse_address(std::string_view text);

/// The same where a slice makes no sense, for example for an array that is to be created.
/// Throws   also located_error for a slice
address parse_whole_address(std::string_view text);

/// The same for an array in a container.
/// Throws   also invalid_argument for other files, and for a container as a whole
address parse_array_address(std::string_view text);

/// The file of a known suffix that a text names, as addresses do; nothing if it names none.
std::optional<std::string> named_file(std::string_view text);

/// Whether both names, however they are typed, lead to one file.
bool is_same_file(const std::string& a, const std::string& b);

/// "(344, 403)", "344,403", "[344, 403]" or "344x403"; "()" is rank 0.
/// Throws   located_error: not a list of whole numbers >= 0, too many of them
dims parse_shape(std::string_view text);

/// Throws   invalid_argument naming the dtypes there are
dtype parse_dtype_option(std::string_view text);

}  // namespace shale::tools
