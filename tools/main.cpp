// The `shale` command: runs the subcommand, and turns failures into messages and exit codes.
#include <fcntl.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "commands.hpp"
#include "output.hpp"
#include "shale/error.hpp"

namespace {

using namespace shale::tools;

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
  // A file beyond the limit is an error that cleans up behind itself.
  std::signal(SIGXFSZ, SIG_IGN);
  int code = exit_failed;
  try {
    code = run(argc, argv);
  } catch (const shale::error& failure) {
    note_failure(failure);
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
