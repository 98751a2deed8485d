// How the command speaks: what it prints where, and the exit codes it ends with.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shale/error.hpp"

namespace shale::tools {

/// How the command ends; scripts rely on these numbers.
enum exit_code : int {
  exit_yes = 0,
  exit_differ = 1,   ///< verify found damage, doctor a problem
  exit_usage = 2,    ///< invalid_argument
  exit_failed = 3,   ///< io, and every code not named here
  exit_corrupt = 4,  ///< any command but verify
  exit_unsupported = 5,
  exit_interrupted = 130,
};

/// How a command ends that `failure` ended.
exit_code code_of(const error& failure) noexcept;

/// Says on stderr what went wrong, in terms of commands where the library speaks of its own calls.
void note_failure(const error& failure);

/// Prints to stdout.
/// Throws   io, out_of_space: whoever reads it does not get it, so that going on is of no use
void print_data(std::string_view text);

/// Prints to stdout, indented. Text that is not UTF-8, as attributes may be, has U+FFFD in its
/// place.
void print_json(const nlohmann::json& json);

/// Prints lines to stderr, behind what has been printed to stdout so far, so that the two read in
/// order where both go to one place. Names in them may come from files of strangers: control
/// characters are shown as \xNN. Nothing is done about a stderr that takes no more.
void note(std::string_view text) noexcept;

}  // namespace shale::tools
