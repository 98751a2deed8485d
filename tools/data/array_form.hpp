// How a new array is stored: as the options say, or else as the array that it copies or replaces.
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

  /// Whether the codec is to be chosen from the elements.
  bool chooses_codec() const { return codec == "auto"; }

  bool wants_chunks() const { return chunked || !chunk.empty() || !codec.empty(); }
};

/// The specification of an array that exists.
array_spec spec_of(const array& stored);

/// For each axis of a slice of an array of that rank, the axis of the array; -1 for a new axis.
dims axes_of_slice(index_t rank, const std::vector<index_entry>& index);

/// The specification of a slice with these axes, before its extents are known. Each axis of the
/// slice keeps its chunk extent; a new axis has chunks of one element.
array_spec sliced(const array_spec& whole, const dims& axes);

struct chosen_form {
  array_spec spec;

  /// Properties that the array should take over from its model (see `model`) but cannot have, one
  /// line each.
  std::vector<std::string> not_kept;
};

/// Chooses how an array of `type` and `shape` is stored. Properties that the options leave open
/// come from `model`, as far as they fit: a chunk is at most as long as an axis that has become
/// shorter, chunks are chosen anew for another number of axes, and codec stages and the fill value
/// must suit the dtype. If the codec is to be chosen from the elements, it stays open.
/// Throws   invalid_argument: --dense with chunks, a --chunk that does not fit, an unknown codec
chosen_form form_for(dtype type, const dims& shape, const std::optional<array_spec>& model,
                     const form_options& options);

/// Whether an array of dtype `present` keeps its dtype when it is filled with values of `type`.
bool can_take(dtype present, dtype type);

}  // namespace shale::tools
