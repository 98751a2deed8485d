// shale rechunk: stores an array of a container again, in chunks of another shape.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "commands/report.hpp"
#include "data/array_form.hpp"
#include "data/container_change.hpp"
#include "data/json_value.hpp"
#include "data/name_advice.hpp"
#include "notation/address.hpp"
#include "notation/shape_text.hpp"
#include "shale/container.hpp"
#include "shale/rechunk.hpp"
#include "terminal/output.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct rechunk_options {
  std::string target;
  std::string chunk;
  bool plan = false;
  bool json = false;
  engine_options engine;
};

nlohmann::json to_json_of(const rechunk_plan& plan) {
  return {{"passes", plan.passes},
          {"block_shape", tools::to_json(plan.block_shape)},
          {"chunks_decoded", plan.chunks_decoded},
          {"chunks_encoded", plan.chunks_encoded},
          {"scratch_bytes", plan.scratch_bytes}};
}

std::string text_of(const rechunk_plan& plan) {
  std::string text = fmt::format("{} pass{}: {} chunks are decoded, {} encoded, in blocks of {}",
                                 plan.passes, plan.passes == 1 ? "" : "es", plan.chunks_decoded,
                                 plan.chunks_encoded, to_string(plan.block_shape));
  if (plan.scratch_bytes > 0)
    text += fmt::format("; {} through a temporary file", format_bytes(plan.scratch_bytes));
  return text;
}

// Prints the plan, and changes nothing.
int show_plan(const rechunk_options& options, const address& target, const dims& chunk) {
  rechunk_plan plan;
  explaining_names(target.file, target.array, [&] {
    const container file = container::open(target.file, open_mode::read);
    plan = plan_rechunk(file.latest().at(target.array), chunk);
  });
  if (options.json) print_json(to_json_of(plan));
  else print_data(text_of(plan) + "\n");
  return exit_success;
}

// Makes the new array in the place of the old one, which is read from the previous generation.
rechunk_plan replace_array(transaction& change, const std::string& name, const dims& chunk) {
  const std::optional<array> from = change.find(name);
  if (!from) change.update(name);  // throws not_found, with names that are similar
  plan_rechunk(*from, chunk);      // refuses a wrong chunk before the array is replaced
  array_spec spec = spec_of(*from);
  spec.chunk_shape = chunk;
  const rechunk_plan plan = rechunk(*from, change.create_or_replace(name, spec));
  for (const auto& [key, value] : from->attributes())
    change.set_attribute(name, key, std::string_view(value));
  return plan;
}

int run(const rechunk_options& options) {
  const address target = parse_array_address(options.target);
  const dims chunk = parse_shape(options.chunk);
  engine work(options.engine, "rechunk");
  if (options.plan) return show_plan(options, target, chunk);
  rechunk_plan plan;
  const std::uint64_t generation = change_existing_container(target.file, [&](transaction& change) {
    explaining_names(target.file, target.array,
                     [&] { plan = replace_array(change, target.array, chunk); });
  });
  const report cost = work.finish();
  if (options.json) {
    nlohmann::json json{{"file", target.file},       {"array", target.array},
                        {"address", target.label()}, {"chunk_shape", tools::to_json(chunk)},
                        {"plan", to_json_of(plan)},  {"generation", generation},
                        {"cost", cost.to_json()}};
    print_report(json);
  } else if (!options.engine.quiet) {
    note(fmt::format("{}: chunks of {} in generation {}", target.label(), to_string(chunk),
                     generation));
    note(text_of(plan));
    note(cost.to_string());
  }
  return exit_success;
}

}  // namespace

void add_rechunk(command_line& line) {
  auto options = std::make_shared<rechunk_options>();
  CLI::App* command =
      line.app.add_subcommand("rechunk", "Store an array in chunks of another shape");
  command->add_option("target", options->target, "FILE.shale:ARRAY")->required();
  command->add_option("chunk", options->chunk, "Extents of a chunk, as in 64,64,64")->required();
  command->add_flag("--plan", options->plan, "Only print how this would be done");
  command->add_flag("--json", options->json, "Print the plan as JSON");
  options->engine.add_to(*command);
  command->footer(
      "The array keeps its elements, codec, fill value and attributes. It may be larger than\n"
      "memory. Each new chunk is encoded once. Old chunks are decoded up to twice on average; if\n"
      "the memory budget is too small for that, the elements go through a temporary file (in the\n"
      "folder that TMPDIR names, or in /var/tmp), and each old chunk is decoded once.\n"
      "The space of the old chunks is free for later generations; processes that read the array\n"
      "can finish.\n"
      "\n"
      "Examples:\n"
      "  shale rechunk volume.shale:p 64,64,64\n"
      "  shale rechunk volume.shale:p 1,1024,1024 --mem 1GiB --plan");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
