#include "commands/engine.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "shale/error.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

progress_mode mode_of(const engine_options& options) {
  if (options.progress) return progress_mode::always;
  return options.quiet ? progress_mode::never : progress_mode::automatic;
}

// The engine holds parts of operands at once, such as blocks of a matrix product or windows of a
// mapped file. It could not keep a smaller budget than this.
constexpr std::uint64_t memory_bytes_min = std::uint64_t{1} << 20;

// The budget in bytes; 0 if the user gives none.
std::size_t budget_bytes(const std::string& text) {
  if (text.empty()) return 0;
  const std::uint64_t bytes = parse_bytes(text);
  if (bytes < memory_bytes_min)
    throw error(errc::invalid_argument,
                fmt::format("--mem: the smallest budget is 1MiB, {} bytes", memory_bytes_min),
                {fmt::format("got '{}', which is {} bytes", text, bytes),
                 "sizes have units, as in 64K, 256MiB, 1.5GiB"});
  return static_cast<std::size_t>(bytes);
}

executor_options limits_of(const engine_options& options, progress_sink& sink) {
  return {.threads = options.threads,
          .memory_bytes = budget_bytes(options.memory),
          .pool = nullptr,
          .progress = &sink,
          .checksums = options.checksums()};
}

}  // namespace

void engine_options::add_to(CLI::App& command) {
  command
      .add_option("--mem", memory,
                  "Memory that operands and temporaries may take, as in 256MiB; 1MiB at least "
                  "[half of what is available]")
      ->type_name("SIZE");
  command.add_option("--threads", threads, "Threads that compute [one a processor]")
      ->type_name("N")
      ->check(CLI::Range(1, executor::threads_max).description(""));
  CLI::Option* always =
      command.add_flag("--progress", progress, "Show progress even if stderr is not a terminal");
  command.add_flag("-q,--quiet", quiet, "Show neither progress nor a summary")->excludes(always);
}

void engine_options::add_check_to(CLI::App& command) {
  command.add_flag("--check", check,
                   "Compare dense arrays of containers, and members of .npz files, with their "
                   "checksums before using them");
}

engine::engine(const engine_options& options, const std::string& label)
    : bar_(label, mode_of(options)),
      executor_(limits_of(options, bar_)),
      within_(executor_),
      watch_(executor_) {}

report engine::finish() {
  bar_.close();
  const executor_statistics done = executor_.statistics();
  return {.bytes_read = done.bytes_read,
          .bytes_written = done.bytes_written,
          .tiles_decoded = done.tiles_decoded,
          .stored_bytes_read = done.stored_bytes_read,
          .seconds = clock_.seconds(),
          .threads = executor_.threads(),
          .memory_bytes = executor_.memory_bytes(),
          .disks = {}};
}

}  // namespace shale::tools
