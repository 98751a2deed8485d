// The `shale` command: chooses the subcommand, and turns failures into messages and exit codes.
#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.hpp"
#include "shale/error.hpp"

namespace {

using namespace shale::tools;

// What the library advises a program to do, and what whoever typed a command can do.
struct advice {
  std::string_view of_library;
  std::string_view of_command;
};
constexpr std::array<advice, 3> translations{{
    {"existing_file::replace would replace it", "-f replaces it"},
    {"if several arrays were saved into this file, say trailing_bytes::ignore, and where each "
     "begins as offset",
     "if several arrays were saved into this file, save each into its own, or all with np.savez"},
    {"if these are bytes, read them as uint8 (for example with read_raw)",
     "if these are bytes, their dtype is uint8, as in x.raw:uint8"},
}};

std::string in_command_terms(std::string text) {
  for (const advice& each : translations)
    if (const std::size_t at = text.find(each.of_library); at != std::string::npos)
      text.replace(at, each.of_library.size(), each.of_command);
  return text;
}

void add_commands(command_line& line) {
  line.app.require_subcommand(0, 1);
  line.app.get_formatter()->column_width(28);
  line.app.set_version_flag("--version", SHALE_VERSION, "Print the version and stop");
  add_info(line);
  add_ls(line);
  add_cat(line);
  add_stats(line);
  add_plot(line);
  add_convert(line);
  add_create(line);
  add_eval(line);
  add_set(line);
  add_mv(line);
  add_rm(line);
  add_verify(line);
  add_doctor(line);
  add_version(line);
  line.app.footer(
      "Data goes to stdout; progress, summaries and messages go to stderr.\n"
      "Exit codes: 0 done, 1 verify found damage or doctor a problem, 2 wrong usage, 3 failed,\n"
      "4 corrupt file, 5 unsupported, 130 interrupted (targets are then as they were).\n"
      "`shale COMMAND --help` explains a command with examples.");
}

// A descriptor that was closed by whoever started this command would be given to the next file that
// is opened, and messages would land in it. What stands in for it fails when it is used.
void occupy_standard_descriptors() {
  for (const int each : {0, 1, 2})
    if (::fcntl(each, F_GETFD) < 0)
      (void)::open("/dev/null", (each == 0 ? O_WRONLY : O_RDONLY) | O_NOCTTY);
}

// Whether what was printed has reached its reader: a full disk behind `> file` shows only here.
bool flush_output() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

// The command that `typed` may have meant: one that it begins, or that begins with it.
std::string similar_command(const CLI::App& app, std::string_view typed) {
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string& name = each->get_name();
    if (name.starts_with(typed) || typed.starts_with(name)) return name;
  }
  return {};
}

void explain(const CLI::App& app, const CLI::ParseError& wrong, int argc, char** argv) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (!chosen.empty()) {
    note(fmt::format("shale {}: {}\n`shale {} --help` shows how it is used",
                     chosen.front()->get_name(), wrong.what(), chosen.front()->get_name()));
  } else if (!first.empty() && first.front() != '-') {
    const std::string meant = similar_command(app, first);
    note(fmt::format("shale: there is no command '{}'{}\n`shale --help` lists the commands", first,
                     meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  } else {
    note(fmt::format("shale: {}\n`shale --help` lists the commands", wrong.what()));
  }
}

int run(int argc, char** argv) {
  command_line line;
  add_commands(line);
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return line.app.exit(asked);  // --help, --version
  } catch (const CLI::ParseError& wrong) {
    explain(line.app, wrong, argc, argv);
    return exit_usage;
  }
  if (!line.chosen) {
    std::fputs(line.app.help().c_str(), stderr);
    return exit_usage;
  }
  return line.chosen();
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file beyond the limit is an error that cleans up behind itself
  int code = exit_failed;
  try {
    code = run(argc, argv);
  } catch (const shale::error& failure) {
    note(fmt::format("shale: {}", in_command_terms(failure.what())));
    return code_of(failure);
  } catch (const std::bad_alloc&) {
    std::fputs("shale: out of memory\n", stderr);
    return exit_failed;
  } catch (const std::exception& failure) {
    note(fmt::format("shale: {}", failure.what()));
    return exit_failed;
  }
  if (!flush_output()) {
    std::perror("shale: write to standard output");
    return exit_failed;
  }
  return code;
}
