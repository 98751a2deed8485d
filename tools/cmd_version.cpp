// shale version: what this build is, and what it was built with.
#include <fmt/format.h>
#include <oneapi/tbb/version.h>
#include <png.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#include <boost/version.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "shale/version.hpp"
#include "table.hpp"

namespace shale::tools {

namespace {

struct version_options {
  bool json = false;
};

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}", __clang_version__);
#elif defined(__GNUC__)
  return fmt::format("gcc {}", __VERSION__);
#else
  return "unknown";
#endif
}

std::string dotted(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// Libraries and their versions; running where they say it themselves, else as compiled against.
std::vector<std::pair<std::string, std::string>> libraries() {
  return {
      {"Boost", dotted(BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100)},
      {"oneTBB", TBB_runtime_version()},
      {"zstd", ZSTD_versionString()},
      {"xxHash", dotted(XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE)},
      {"zlib", zlibVersion()},
      {"libpng", png_get_libpng_ver(nullptr)},
      {"fmt", dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"CLI11", CLI11_VERSION},
      {"nlohmann-json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                               NLOHMANN_JSON_VERSION_PATCH)},
  };
}

int run(const version_options& options) {
  if (options.json) {
    nlohmann::json json{{"shale", version()},
                        {"format", format_version()},
                        {"isa", instruction_set()},
                        {"compiler", compiler()},
                        {"libraries", nlohmann::json::object()}};
    for (const auto& [name, number] : libraries()) json["libraries"][name] = number;
    print_json(json);
    return exit_yes;
  }
  facts list;
  list.add("shale", std::string(version()));
  list.add("format", fmt::format("{}", format_version()));
  list.add("isa", std::string(instruction_set()));
  list.add("compiler", compiler());
  for (const auto& [name, number] : libraries()) list.add(name, number);
  print_data(list.to_string());
  return exit_yes;
}

}  // namespace

void add_version(command_line& line) {
  auto options = std::make_shared<version_options>();
  CLI::App* command = line.app.add_subcommand("version", "Show versions of everything inside");
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
