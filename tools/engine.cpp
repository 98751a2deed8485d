#include "engine.hpp"

#include <CLI/CLI.hpp>

#include "units.hpp"

namespace shale::tools {

namespace {

progress_mode mode_of(const engine_options& options) {
  if (options.progress) return progress_mode::always;
  return options.quiet ? progress_mode::never : progress_mode::automatic;
}

executor_options limits_of(const engine_options& options, progress_sink& sink) {
  return {.threads = options.threads,
          .memory_bytes = options.memory.empty()
                              ? std::size_t{0}
                              : static_cast<std::size_t>(parse_bytes(options.memory)),
          .pool = nullptr,
          .progress = &sink};
}

}  // namespace

void engine_options::add_to(CLI::App& command) {
  command
      .add_option("--mem", memory,
                  "Memory that operands and temporaries may take, as in 256MiB "
                  "[half of what is available]")
      ->type_name("SIZE");
  command.add_option("--threads", threads, "Threads that compute [one a processor]")
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  CLI::Option* always =
      command.add_flag("--progress", progress, "Show progress even if stderr is no terminal");
  command.add_flag("-q,--quiet", quiet, "Show neither progress nor a summary")->excludes(always);
}

engine::engine(const engine_options& options, const std::string& label)
    : bar_(label, mode_of(options)), executor_(limits_of(options, bar_)), watch_(executor_) {}

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
