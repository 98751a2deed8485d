#include "commands/commands.hpp"

#include <fmt/format.h>

#include <sstream>
#include <string_view>
#include <vector>

#include "commands/command_line.hpp"

namespace shale::tools {

namespace {

// A command that the user may have meant: its name begins with `typed`, or `typed` begins with it.
std::string similar_command(const CLI::App& app, std::string_view typed) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string& name = command->get_name();
    if (name.starts_with(typed) || typed.starts_with(name)) return name;
  }
  return {};
}

std::string without_line_feed(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string explain(const CLI::App& app, const CLI::ParseError& failure, int argc, char** argv) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (!chosen.empty())
    return fmt::format("shale {}: {}\n`shale {} --help` shows how it is used",
                       chosen.front()->get_name(), failure.what(), chosen.front()->get_name());
  if (first.empty() || first.front() == '-')
    return fmt::format("shale: {}\n`shale --help` lists the commands", failure.what());
  const std::string meant = similar_command(app, first);
  return fmt::format("shale: there is no command '{}'{}\n`shale --help` lists the commands", first,
                     meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

// A message about an option with an empty value, which usually comes from a shell variable that is
// not set; empty if there is no such option.
std::string find_empty_option(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    for (const CLI::Option* option : command->get_options())
      if (!option->get_positional() && option->count() > 0)
        for (const std::string& value : option->results())
          if (value.empty())
            return fmt::format("shale {}: the value of {} is empty", command->get_name(),
                               option->get_name());
  return {};
}

}  // namespace

commands::commands(const std::string& version) : line_(std::make_unique<command_line>()) {
  CLI::App& app = line_->app;
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(28);
  app.set_version_flag("--version", version, "Print the version and stop");
  for (const auto add : {add_info, add_ls, add_cat, add_stats, add_plot, add_convert, add_create,
                         add_append, add_resize, add_rechunk, add_eval, add_set, add_mv, add_rm,
                         add_verify, add_du, add_doctor, add_version})
    add(*line_);
  app.footer(
      "Data goes to stdout; progress, summaries and messages go to stderr.\n"
      "Exit codes: 0 done, 1 verify found damage or doctor a problem, 2 wrong usage, 3 failed,\n"
      "4 corrupt file, 5 unsupported. An interrupted command dies of the signal (shells show 130\n"
      "after Ctrl-C), and its targets are unchanged.\n"
      "A change that is made gives 0, even if its report cannot be written; a message says so.\n"
      "`shale COMMAND --help` explains a command with examples.");
}

commands::~commands() = default;

choice commands::parse(int argc, char** argv) {
  line_->chosen = nullptr;
  choice made;
  try {
    line_->app.parse(argc, argv);
    made.refusal = find_empty_option(line_->app);
    if (!made.refusal.empty()) return made;
    made.run = line_->chosen;
    if (!made.run) made.refusal = without_line_feed(line_->app.help());
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream answer;
    line_->app.exit(request, answer, answer);
    made.answer = answer.str();
  } catch (const CLI::ParseError& failure) {
    made.refusal = explain(line_->app, failure, argc, argv);
  }
  return made;
}

}  // namespace shale::tools
