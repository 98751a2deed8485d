// shale version: shows the versions of this build and of its libraries.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "doctor/system/versions.hpp"
#include "shale/version.hpp"
#include "terminal/output.hpp"
#include "terminal/table.hpp"

namespace shale::tools {

namespace {

struct version_options {
  bool json = false;
};

int run(const version_options& options) {
  if (options.json) {
    nlohmann::json json{{"shale", version()},
                        {"format", format_version()},
                        {"isa", instruction_set()},
                        {"compiler", compiler()},
                        {"libraries", nlohmann::json::object()}};
    for (const auto& [name, number] : libraries()) json["libraries"][name] = number;
    print_json(json);
    return exit_success;
  }
  facts list;
  list.add("shale", std::string(version()));
  list.add("format", fmt::format("{}", format_version()));
  list.add("isa", std::string(instruction_set()));
  list.add("compiler", compiler());
  for (const auto& [name, number] : libraries()) list.add(name, number);
  print_data(list.to_string());
  return exit_success;
}

}  // namespace

void add_version(command_line& line) {
  auto options = std::make_shared<version_options>();
  CLI::App* command =
      line.app.add_subcommand("version", "Show the versions of Shale and its libraries");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "`isa` is the instruction set of the kernels; SHALE_ISA=baseline|avx2|avx512 forces one.\n"
      "\n"
      "Examples:\n"
      "  shale version\n"
      "  shale version --json | jq .libraries.zstd");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
