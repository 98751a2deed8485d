// The subcommands. For each, one function declares its options and its action.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

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
void add_rechunk(command_line& line);
void add_eval(command_line& line);
void add_set(command_line& line);
void add_mv(command_line& line);
void add_rm(command_line& line);
void add_verify(command_line& line);
void add_du(command_line& line);
void add_doctor(command_line& line);
void add_version(command_line& line);

/// Adds a positional or an option that takes many texts. Each text stays as it was typed; CLI11's
/// own lists would split "[a,b]" into several values. `texts` must live as long as `command`.
inline CLI::Option* add_texts(CLI::App& command, const std::string& name,
                              std::vector<std::string>& texts, const std::string& description) {
  const CLI::callback_t keep = [&texts](const CLI::results_t& given) {
    texts = given;
    return true;
  };
  CLI::Option* made = command.add_option(name, keep, description)->type_name("TEXT");
  made->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  // Without extra arguments, a positional takes its smallest expected number of texts, which is
  // more than there can be. An option takes one text each time it is given.
  constexpr int most = CLI::detail::expected_max_vector_size;
  return made->expected(made->get_positional() ? most - 1 : 1, most)->allow_extra_args(false);
}

/// The help text of every option that takes an address.
inline constexpr const char* address_help =
    "FILE[:ARRAY][[SLICE]], as in survey.shale:dem[10:20, ::-1], dem.npy, dem.npz:elevation, "
    "net.t7:weights/1 or dem.raw:int16(344,403); in the name of an array, '[' is written '[['";

}  // namespace shale::tools
