// Prints data to stdout and messages to stderr, and defines the exit codes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shale/error.hpp"

namespace shale::tools {

/// The exit codes of the command. Scripts rely on these numbers.
enum exit_code : int {
  exit_success = 0,
  exit_found_problem = 1,  ///< verify found damage, or doctor found a problem
  exit_usage = 2,          ///< invalid_argument
  exit_failed = 3,         ///< io, and every error code without an exit code of its own
  exit_corrupt = 4,        ///< from every command but verify
  exit_unsupported = 5,
  exit_interrupted = 130,  ///< main dies by the signal instead, if there was one
};

/// The exit code of a command that `failure` ended.
exit_code code_of(const error& failure) noexcept;

/// Prints the failure to stderr. The library's advice about its calls becomes advice about
/// commands.
void note_failure(const error& failure);

/// Prints to stdout.
/// Throws   io, out_of_space: the reader does not get the data, so the command should end
void print_data(std::string_view text);

/// Prints to stdout with indentation. U+FFFD replaces bytes that are not UTF-8.
void print_json(const nlohmann::json& json);

/// Prints what a command has changed, as `print_json`, and flushes stdout. The change is made, so a
/// write that fails is no failure of the command: it becomes a message. A caller that saw an exit
/// code of a failure would try the change again.
void print_report(const nlohmann::json& json) noexcept;

/// Prints to stderr, unchanged. A failed write to stderr is ignored. But a broken pipe ends the
/// command (see interrupt.hpp), as it does in every function of this file.
void print_note(std::string_view text) noexcept;

/// Flushes stdout and returns whether all printed data has been written. Only here does
/// a redirection to a full disk fail.
bool flush_data() noexcept;

/// Prints lines to stderr. It flushes stdout first, so that both are in order if they go to one
/// terminal. Names in the lines may come from untrusted files, so control characters are
/// printed as \xNN.
void note(std::string_view text) noexcept;

}  // namespace shale::tools
