// How a new array is to be stored: as the options say, else as the array that it copies or replaces.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shale/array.hpp"
#include "shale/index_entry.hpp"

namespace CLI {
class App;
}

namespace shale::tools {

struct form_options {
  bool chunked = false;
  bool dense = false;
  std::string chunk;
  std::string codec;

  /// Adds --dense, --chunked, --chunk and --codec.
  void add_to(CLI::App& command);

  bool wants_chunks() const { return chunked || !chunk.empty() || !codec.empty(); }
};

/// The specification that makes such an array again.
array_spec spec_of(const array& stored);

/// The same for a slice of it, before its extents are known: chunk extents stay with their axes and
/// go with those that an index drops; a new axis is one chunk.
array_spec sliced(const array_spec& whole, const std::vector<index_entry>& index);

/// A specification, and what of its model it does not have although nobody said so, a line each.
struct array_form {
  array_spec spec;
  std::vector<std::string> not_kept;
};

/// How an array of `type` and `shape` is stored. Where the options are silent, `model` is followed
/// as far as it makes sense: chunks become no longer than an axis that has become shorter, and are
/// chosen anew if there are more or fewer axes; codec stages and fill value have to suit the dtype.
/// Throws   invalid_argument: --dense with chunks, --chunk that does not fit, no codec
array_form form_for(dtype type, const dims& shape, const std::optional<array_spec>& model,
                    const form_options& options);

/// Whether an array of dtype `present` can stand for values of `type`, as filling it with them means.
bool stands_for(dtype present, dtype type);

}  // namespace shale::tools
