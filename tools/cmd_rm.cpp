// shale rm: removes arrays from containers.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "address.hpp"
#include "command_line.hpp"
#include "container_change.hpp"

namespace shale::tools {

namespace {

struct rm_options {
  std::vector<std::string> arrays;
  bool json = false;
  bool quiet = false;
};

// The arrays of one container, to be removed together.
struct removal {
  std::string file;
  std::vector<std::string> arrays;
};

std::vector<removal> by_file(const std::vector<std::string>& arrays) {
  std::vector<removal> all;
  for (const std::string& each : arrays) {
    const address where = parse_array_address(each);
    auto found = std::find_if(all.begin(), all.end(), [&](const removal& known) {
      return is_same_file(known.file, where.file);
    });
    if (found == all.end()) found = all.insert(all.end(), {where.file, {}});
    if (std::find(found->arrays.begin(), found->arrays.end(), where.array) != found->arrays.end())
      throw error(errc::invalid_argument, fmt::format("rm: '{}' is named twice", where.label()));
    found->arrays.push_back(where.array);
  }
  return all;
}

// So that a mistake in one name removes nothing from any container.
void require_arrays(const std::vector<removal>& all) {
  for (const removal& each : all) {
    const snapshot now = container::open(each.file).latest();
    for (const std::string& array : each.arrays) now.at(array);
  }
}

int run(const rm_options& options) {
  const std::vector<removal> all = by_file(options.arrays);
  require_arrays(all);
  nlohmann::json json = nlohmann::json::array();
  const auto print = [&] {
    if (options.json) print_json(nlohmann::json{{"removed", json}});
  };
  try {
    for (const removal& each : all) {
      const std::uint64_t generation =
          change_existing_container(each.file, [&](transaction& change) {
            for (const std::string& array : each.arrays) change.remove(array);
          });
      for (const std::string& array : each.arrays) {
        json.push_back({{"file", each.file}, {"array", array}, {"generation", generation}});
        if (!options.json && !options.quiet)
          note(fmt::format("{}: removed in generation {}", label(each.file, array), generation));
      }
    }
  } catch (...) {
    print();  // what is gone is gone
    throw;
  }
  print();
  return exit_yes;
}

}  // namespace

void add_rm(command_line& line) {
  auto options = std::make_shared<rm_options>();
  CLI::App* command = line.app.add_subcommand("rm", "Remove arrays from a container");
  command->add_option("arrays", options->arrays, "FILE.shale:ARRAY …")->required();
  command->add_flag("--json", options->json, "Print what was removed as JSON");
  command->add_flag("-q,--quiet", options->quiet, "Show no summary");
  command->footer(
      "All arrays of a container go at once, or none does; where one is missing, nothing is\n"
      "removed from any container. Whoever reads them keeps them until done. The file keeps its\n"
      "size, and what is written next uses the space; a copy by `shale convert` leaves it out.\n"
      "\n"
      "Examples:\n"
      "  shale rm survey.shale:slope\n"
      "  shale rm survey.shale:slope survey.shale:normal\n"
      "  shale rm survey.shale:slope && shale convert survey.shale compact.shale");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
