// shale rm: removes arrays from containers.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "data/container_change.hpp"
#include "data/name_advice.hpp"
#include "notation/address.hpp"
#include "terminal/output.hpp"

namespace shale::tools {

namespace {

struct rm_options {
  std::vector<std::string> arrays;
  bool json = false;
  bool quiet = false;
};

// Arrays of one container that are removed together.
struct removal {
  std::string file;
  std::vector<std::string> arrays;
};

std::vector<removal> by_file(const std::vector<std::string>& arrays) {
  std::vector<removal> all;
  for (const std::string& text : arrays) {
    const address target = parse_array_address(text);
    auto found = std::find_if(all.begin(), all.end(), [&](const removal& known) {
      return is_same_file(known.file, target.file);
    });
    if (found == all.end()) found = all.insert(all.end(), {target.file, {}});
    if (std::find(found->arrays.begin(), found->arrays.end(), target.array) != found->arrays.end())
      throw error(errc::invalid_argument, fmt::format("rm: '{}' is named twice", target.label()));
    found->arrays.push_back(target.array);
  }
  return all;
}

// Checks all names first, so that a wrong name removes nothing from any container.
void require_arrays(const std::vector<removal>& all) {
  for (const auto& [file, arrays] : all) {
    const snapshot now = container::open(file).latest();
    for (const std::string& array : arrays) explaining_names(file, array, [&] { now.at(array); });
  }
}

int run(const rm_options& options) {
  const std::vector<removal> all = by_file(options.arrays);
  require_arrays(all);
  nlohmann::json json = nlohmann::json::array();
  const auto print = [&] {
    if (options.json) print_report(nlohmann::json{{"removed", json}});
  };
  try {
    for (const removal& part : all) {
      const std::uint64_t generation =
          change_existing_container(part.file, [&](transaction& change) {
            for (const std::string& array : part.arrays) change.remove(array);
          });
      for (const std::string& array : part.arrays) {
        json.push_back({{"file", part.file},
                        {"array", array},
                        {"address", label(part.file, array)},
                        {"generation", generation}});
        if (!options.json && !options.quiet)
          note(fmt::format("{}: removed in generation {}", label(part.file, array), generation));
      }
    }
  } catch (...) {
    print();  // the arrays that were removed before the failure
    throw;
  }
  print();
  return exit_success;
}

}  // namespace

void add_rm(command_line& line) {
  auto options = std::make_shared<rm_options>();
  CLI::App* command = line.app.add_subcommand("rm", "Remove arrays from a container");
  add_texts(*command, "arrays", options->arrays, "FILE.shale:ARRAY …")->required();
  command->add_flag("--json", options->json, "Print what was removed as JSON");
  command->add_flag("-q,--quiet", options->quiet, "Show no summary");
  command->footer(
      "The arrays of a container are removed together or not at all. If one array is missing,\n"
      "nothing is removed from any container. Processes that read the arrays can finish. The file\n"
      "keeps its size; the next writes use the space, and a copy by `shale convert` omits it.\n"
      "\n"
      "Examples:\n"
      "  shale rm survey.shale:slope\n"
      "  shale rm survey.shale:slope survey.shale:normal\n"
      "  shale rm survey.shale:slope && shale convert survey.shale compact.shale");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
