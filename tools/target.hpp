// Writing an expression to where an address says, whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "address.hpp"
#include "shale/array.hpp"
#include "shale/container.hpp"
#include "shale/expr.hpp"

namespace CLI {
class App;
}

namespace shale::tools {

struct target_options {
  bool force = false;
  bool chunked = false;
  bool dense = false;
  std::string chunk;
  std::string codec;

  /// Adds --force, --dense, --chunked, --chunk and --codec.
  void add_to(CLI::App& command);

  /// The dtype for values of `type` that replace `before`: what it has, if that can stand for them.
  /// Throws   invalid_argument if it has another that cannot
  shale::dtype kept_dtype(shale::dtype type, const dims& shape,
                          const std::optional<array>& before) const;

  array_spec spec(shale::dtype type, const dims& shape, const std::optional<array>& before) const;

 private:
  /// The array to create for `shape` and `type`; `before` is the array that is being replaced,
  /// whose kind, chunks and codec are kept where the options are silent and the shape is the same.
  /// Throws   invalid_argument: --chunk and --codec without chunks, chunks that do not fit
  bool wants_chunks() const { return chunked || !chunk.empty() || !codec.empty(); }
};

struct written {
  shale::dtype type = dtype::boolean;       ///< of the elements, as stored
  std::uint64_t stored_bytes = 0;           ///< of the array, as stored
  std::optional<std::uint64_t> generation;  ///< of the container, if it is one
};

/// Evaluates `values` into `to`: an array in a container (made if need be), an .npy, .npz or raw
/// file. Converts to `type` if given. What exists is replaced only with --force, and then at once:
/// whoever reads meanwhile sees the old bytes or the new ones.
/// Throws   already_exists, unsupported, what evaluation throws; the target is then as before
written write_target(const address& to, const expr& values, std::optional<dtype> type,
                     const target_options& options, executor& on);

/// Refuses a `target` that names one member of an archive which holds others: archives are written
/// whole, and the others would be gone.
/// Throws   already_exists naming them, what opening the archive throws
void require_no_other_members(const address& target);

/// Throws   already_exists, unless `options` allow it to be replaced
void require_replaceable(const std::string& file, const target_options& options);

/// Opens the container at `file` for one transaction and lets `change` fill it, then commits. A
/// container that does not exist yet appears only when `change` has succeeded.
/// Returns  the new generation
std::uint64_t change_container(const std::string& file,
                               const std::function<void(transaction&)>& change);

}  // namespace shale::tools
