// Writes an expression to the file or array that an address names, whole or not at all.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/array_facts.hpp"
#include "data/array_form.hpp"
#include "notation/address.hpp"
#include "shale/codec_choice.hpp"
#include "shale/container.hpp"
#include "shale/existing_file.hpp"
#include "shale/functions.hpp"
#include "shale/logical_dtype.hpp"

namespace CLI {
class App;
}

namespace shale::tools {

struct target_options {
  bool force = false;
  form_options form;

  /// Adds --force, --dense, --chunked, --chunk and --codec.
  void add_to(CLI::App& command);

  /// Whether a writer replaces a file that exists.
  existing_file existing() const noexcept {
    return force ? existing_file::replace : existing_file::refuse;
  }
};

/// Refuses to replace a file or an array, which is called `shown`, without -f.
/// Throws   already_exists
[[noreturn]] void throw_exists(const std::string& shown);

/// The properties that a copy takes over from its original, besides the elements.
struct origin {
  array_spec spec;
  attribute_list attributes;
  std::optional<array> whole = std::nullopt;  ///< the array itself, unless a slice of it is copied
};

/// The elements to write.
struct contents {
  expr values;
  std::optional<dtype> type = std::nullopt;             ///< if the user asks for a dtype
  std::optional<origin> original = std::nullopt;        ///< if the values are a copy
  std::optional<logical_dtype> logical = std::nullopt;  ///< what the values stand for
};

struct written {
  shale::dtype type = dtype::boolean;            ///< of the stored elements
  std::uint64_t stored_bytes = 0;                ///< of the stored array
  std::optional<std::uint64_t> generation = {};  ///< of the container, if the target is in one
  std::vector<std::string> not_kept = {};        ///< lost properties of the old array, a line each
  std::optional<codec_choice> choice = {};       ///< with --codec auto
};

/// Evaluates `source` into `target`: an array in a container, which is created if it does not
/// exist, or an .npy, .npz, .t7 or raw file. A target that exists is replaced only with --force, in
/// one step: concurrent readers see the old elements or the new ones. A target with a slice is a
/// part of an array that must exist in a container: it keeps its dtype, shape and form.
/// Throws   already_exists, unsupported, what evaluation throws; the target is then unchanged
written write_target(const address& target, const contents& source, const target_options& options);

/// Refuses a `target` that names one array of an .npz or .t7 file with other arrays: such a file is
/// written whole, so the others would be lost.
/// Throws   already_exists with their names, what opening the file throws
void require_no_other_members(const address& target);

/// Throws   already_exists if the file exists and `options` do not allow to replace it
void require_replaceable(const std::string& file, const target_options& options);

/// Throws   invalid_argument (chunks or a codec for a file that has none)
void require_form(const address& target, const target_options& options);

/// Refuses, before the work, a target that `write_target` would refuse after it, if no file changes
/// meanwhile: a form that the file cannot have, other members, a file or an array that exists.
/// Throws   invalid_argument, already_exists, what opening a container or an archive throws
void require_room_for(const address& target, const target_options& options);

/// A line that gives the reasons of the chosen codec, if one was chosen, and a line for each
/// property that was not kept. The command prints them after the line that says what was written.
std::string detail_lines(const written& done);

/// The same as JSON: "not_kept", and "codec_choice" if a codec was chosen.
void add_details(nlohmann::json& to, const written& done);

}  // namespace shale::tools
