// shale resize: gives an array of a container another shape.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "data/container_change.hpp"
#include "data/json_value.hpp"
#include "data/name_advice.hpp"
#include "notation/address.hpp"
#include "notation/shape_text.hpp"
#include "shale/container.hpp"
#include "terminal/output.hpp"

namespace shale::tools {

namespace {

struct resize_options {
  std::string target;
  std::string shape;
  bool json = false;
  engine_options engine;
};

int run(const resize_options& options) {
  const address target = parse_array_address(options.target);
  const dims shape = parse_shape(options.shape);
  engine work(options.engine, "resize");
  dims before;
  const std::uint64_t generation = change_existing_container(target.file, [&](transaction& change) {
    explaining_names(target.file, target.array, [&] {
      if (const auto present = change.find(target.array)) before = present->shape();
      change.resize(target.array, shape);
    });
  });
  if (options.json)
    print_report({{"file", target.file},
                  {"array", target.array},
                  {"address", target.label()},
                  {"old_shape", tools::to_json(before)},
                  {"shape", tools::to_json(shape)},
                  {"generation", generation}});
  else if (!options.engine.quiet)
    note(fmt::format("{}: {} instead of {} in generation {}", target.label(), to_string(shape),
                     to_string(before), generation));
  return exit_success;
}

}  // namespace

void add_resize(command_line& line) {
  auto options = std::make_shared<resize_options>();
  CLI::App* command = line.app.add_subcommand("resize", "Change the shape of an array");
  command->add_option("target", options->target, "FILE.shale:ARRAY")->required();
  command->add_option("shape", options->shape, "Extents, as in 344,403")->required();
  command->add_flag("--json", options->json, "Print the old and the new shape as JSON");
  options->engine.add_to(*command);
  command->footer(
      "The array keeps the elements that both shapes have. New elements read as the fill value\n"
      "(those of a dense array as 0), also where the array was longer before. Elements that are\n"
      "cut off are lost to later generations; processes that read the array can finish.\n"
      "\n"
      "Examples:\n"
      "  shale resize log.shale:plate 1000,256,256\n"
      "  shale resize survey.shale:dem 344x400");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
