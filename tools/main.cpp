// The `shale` command: runs the subcommand, and turns failures into messages and exit codes.
#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "commands.hpp"
#include "output.hpp"
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

// A descriptor that was closed by whoever started this command would be given to the next file that
// is opened, and messages would land in it. What stands in for it fails when it is used.
void occupy_standard_descriptors() {
  for (const int each : {0, 1, 2})
    if (::fcntl(each, F_GETFD) < 0)
      (void)::open("/dev/null", (each == 0 ? O_WRONLY : O_RDONLY) | O_NOCTTY);
}

// Whether what was printed has reached its reader: a full disk behind `> file` shows only here.
bool flush_output() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

int run(int argc, char** argv) {
  commands all(SHALE_VERSION);
  const choice made = all.parse(argc, argv);
  if (made.run) return made.run();
  if (!made.refusal.empty()) {
    note(made.refusal);
    return exit_usage;
  }
  print_data(made.answer);
  return exit_yes;
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
