// The subcommands. For each, one function declares its options and its action.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace shale::tools {

struct command_line {
  CLI::App app{"Tensors larger than memory, in crash-safe files.", "shale"};

  /// Runs the subcommand of the parsed command line. Returns the exit code.
  std::function<int()> chosen;
};

void add_info(command_line& line);
void add_ls(command_line& line);
void add_cat(command_line& line);
void add_stats(command_line& line);
void add_plot(command_line& line);
void add_convert(command_line& line);
void add_create(command_line& line);
void add_append(command_line& line);
void add_resize(command_line& line);
void add_eval(command_line& line);
void add_set(command_line& line);
void add_mv(command_line& line);
void add_rm(command_line& line);
void add_verify(command_line& line);
void add_du(command_line& line);
void add_doctor(command_line& line);
void add_version(command_line& line);

/// The help text of every option that takes an address.
inline constexpr const char* address_help =
    "FILE[:ARRAY][[SLICE]], as in survey.shale:dem[10:20, ::-1], dem.npy, dem.npz:elevation, "
    "net.t7:weights/1 or dem.raw:int16(344,403); in the name of an array, '[' is written '[['";

}  // namespace shale::tools
