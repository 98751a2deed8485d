// The `shale` command. It runs a subcommand and turns failures into messages and exit codes.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>

#include "commands/commands.hpp"
#include "shale/error.hpp"
#include "shale/unfinished_file.hpp"
#include "terminal/interrupt.hpp"
#include "terminal/output.hpp"

namespace {

using namespace shale::tools;

// If the parent process has closed a standard descriptor, the next opened file would get its
// number, and messages would be written into that file. The root folder takes the number instead:
// it exists even where /dev is empty, and O_PATH makes every use of the descriptor fail.
void occupy_standard_descriptors() {
  for (const int number : {0, 1, 2})
    if (::fcntl(number, F_GETFD) < 0) (void)::open("/", O_PATH);
}

int run(int argc, char** argv) {
  commands all(SHALE_VERSION);
  const choice made = all.parse(argc, argv);
  if (made.run) return made.run();
  if (!made.refusal.empty()) {
    note(made.refusal);
    return exit_usage;
  }
  print_data(made.answer);
  return exit_success;
}

// Returns the exit code. A command that a broken pipe ends prints no message.
int run_and_tell(int argc, char** argv) {
  int code = exit_failed;
  try {
    code = run(argc, argv);
  } catch (const shale::error& failure) {
    if (caught_signal() != SIGPIPE) note_failure(failure);
    return code_of(failure);
  } catch (const std::bad_alloc&) {
    print_note("shale: out of memory\n");
    return exit_failed;
  } catch (const std::exception& failure) {
    note(fmt::format("shale: {}", failure.what()));
    return exit_failed;
  }
  if (!flush_data()) {
    const int failure = errno;
    if (caught_signal() != SIGPIPE)
      note(fmt::format("shale: cannot write to standard output: {}", std::strerror(failure)));
    return exit_failed;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  // A file beyond the size limit and a broken pipe become errors, so that the command cleans up.
  std::signal(SIGXFSZ, SIG_IGN);
  heed_broken_pipes();
  const int code = run_and_tell(argc, argv);
  // If a signal ended the command, the process dies by that signal. If it only exited with a code,
  // a shell would go on with its script.
  const int number = caught_signal();
  if (number == SIGPIPE || (number != 0 && code == exit_interrupted))
    shale::raise_without_unfinished_files(number);
  return code;
}
