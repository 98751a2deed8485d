// Writing an expression to where an address says, whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "address.hpp"
#include "array_form.hpp"
#include "shale/container.hpp"
#include "shale/expr.hpp"

namespace CLI {
class App;
}

namespace shale::tools {

struct operand;

struct target_options {
  bool force = false;
  form_options form;

  /// Adds --force, --dense, --chunked, --chunk and --codec.
  void add_to(CLI::App& command);
};

using attribute_list = std::vector<std::pair<std::string, std::string>>;

/// What a copy takes over, besides the elements, from the array that it copies.
struct origin {
  array_spec spec;
  attribute_list attributes;
};

/// Of an array in a container, or a slice of one; nothing for other files.
std::optional<origin> origin_of(const operand& source);

/// What is to be written.
struct contents {
  expr values;
  std::optional<dtype> type = std::nullopt;   ///< to convert them to
  std::optional<origin> from = std::nullopt;  ///< if they are a copy
};

struct written {
  shale::dtype type = dtype::boolean;            ///< of the elements, as stored
  std::uint64_t stored_bytes = 0;                ///< of the array, as stored
  std::optional<std::uint64_t> generation = {};  ///< of the container, if it is one
  std::vector<std::string> not_kept = {};        ///< of what was replaced or copied, a line each
};

/// Evaluates `what` into `to`: an array in a container (made if need be), an .npy, .npz or raw
/// file. What exists is replaced only with --force, and then at once: whoever reads meanwhile sees
/// the old bytes or the new ones.
/// Throws   already_exists, unsupported, what evaluation throws; the target is then as before
written write_target(const address& to, const contents& what, const target_options& options,
                     executor& on);

/// Makes the array `name` of the container `file` in a transaction on it. An array that is replaced
/// gives the new one its dtype, form and attributes, else the one that `what` is a copy of does; the
/// options change that. Attributes of the copied array go over those of the replaced one.
/// Returns  all but the generation, which is there when it has been committed
/// Throws   already_exists, invalid_argument, what evaluation throws
written put_array(transaction& change, const std::string& file, const std::string& name,
                  const contents& what, const target_options& options, executor& on);

/// Refuses a `target` that names one member of an archive which holds others: archives are written
/// whole, and the others would be gone.
/// Throws   already_exists naming them, what opening the archive throws
void require_no_other_members(const address& target);

/// Throws   already_exists, unless `options` allow it to be replaced
void require_replaceable(const std::string& file, const target_options& options);

/// A line for each thing that was not kept, to go below the one that says what was written.
std::string not_kept_lines(const written& done);

}  // namespace shale::tools
