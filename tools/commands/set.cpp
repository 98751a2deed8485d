// shale set: sets and removes attributes of an array.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "commands/command_line.hpp"
#include "data/container_change.hpp"
#include "data/name_advice.hpp"
#include "notation/address.hpp"
#include "notation/attribute.hpp"
#include "terminal/output.hpp"

namespace shale::tools {

namespace {

struct set_options {
  std::string array;
  std::vector<std::string> attributes;
  std::vector<std::string> unset;
  bool json = false;
  bool quiet = false;
};

std::vector<attribute> new_attributes(const set_options& options) {
  std::vector<attribute> all = parse_attributes(options.attributes);
  std::set<std::string> named;
  for (const attribute& item : all) named.insert(item.key);
  for (const std::string& key : options.unset)
    if (!named.insert(key).second)
      throw error(errc::invalid_argument, fmt::format("set: '{}' is named twice", key));
  if (all.empty() && options.unset.empty())
    throw error(errc::invalid_argument, "set: an attribute is missing",
                {"as in: shale set survey.shale:dem unit=m"});
  return all;
}

int run(const set_options& options) {
  const address target = parse_array_address(options.array);
  const std::vector<attribute> attributes = new_attributes(options);
  nlohmann::json now = nlohmann::json::object();
  const std::uint64_t generation = change_existing_container(target.file, [&](transaction& change) {
    explaining_names(target.file, target.array, [&] {
      for (const auto& [key, value] : attributes) change.set_attribute(target.array, key, value);
      for (const std::string& key : options.unset) change.remove_attribute(target.array, key);
    });
    for (const auto& [key, value] : change.find(target.array)->attributes())
      now[key] = attribute_json(value);
  });
  if (options.json) {
    print_report(nlohmann::json{{"file", target.file},
                                {"array", target.array},
                                {"address", target.label()},
                                {"attributes", now},
                                {"generation", generation}});
  } else if (!options.quiet) {
    note(fmt::format("{}: {} attribute{} in generation {}", target.label(), now.size(),
                     now.size() == 1 ? "" : "s", generation));
  }
  return exit_yes;
}

}  // namespace

void add_set(command_line& line) {
  auto options = std::make_shared<set_options>();
  CLI::App* command = line.app.add_subcommand("set", "Set attributes of an array");
  command->add_option("array", options->array, "FILE.shale:ARRAY")->required();
  add_texts(*command, "attributes", options->attributes, "KEY=VALUE …; see below");
  add_texts(*command, "--unset", options->unset, "Remove an attribute")->type_name("KEY");
  command->add_flag("--json", options->json, "Print all attributes of the array as JSON");
  command->add_flag("-q,--quiet", options->quiet, "Show no summary");
  command->footer(
      "A value may be JSON: a number, true, null, [0, 5], {\"a\": 1}. Any other value is text,\n"
      "with or without quotes. Text that would read as JSON needs quotes: '\"1.0\"'. A number\n"
      "that fits neither 64 bits nor a double is kept as text.\n"
      "The command makes all changes or none.\n"
      "`shale info` shows attributes as text, and with --json as JSON.\n"
      "\n"
      "Examples:\n"
      "  shale set survey.shale:dem unit=m scale=0.5 'range=[0, 1200]'\n"
      "  shale set survey.shale:dem 'comment=as measured' 'version=\"1.0\"'\n"
      "  shale set survey.shale:dem --unset comment");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
