// shale set: sets and removes attributes of an array, of a level of names or of a container.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "commands/command_line.hpp"
#include "data/array_facts.hpp"
#include "data/container_change.hpp"
#include "data/conventions.hpp"
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
                {"as in: shale set survey.shale:dem units=m"});
  return all;
}

// Whether the address names a level: it ends with '/', or has no array. FILE:/ and FILE name the
// level above all.
bool is_level(const address& target) { return target.array.empty() || target.array.ends_with('/'); }

address parse_target(const std::string& text) {
  const address target = parse_whole_address(text);
  return target.format == file_format::shale && is_level(target) ? target
                                                                 : parse_array_address(text);
}

// Returns all attributes of the array or level after the changes.
attribute_list change_attributes(transaction& change, const address& target,
                                 const std::vector<attribute>& attributes,
                                 const std::vector<std::string>& unset) {
  if (is_level(target) && !change.find(target.array)) {
    const std::string level = target.array == "/" ? std::string() : target.array;
    for (const auto& [key, value] : attributes) change.set_level_attribute(level, key, value);
    for (const std::string& key : unset) change.remove_level_attribute(level, key);
    return change.level_attributes(level);
  }
  explaining_names(target.file, target.array, [&] {
    for (const auto& [key, value] : attributes) change.set_attribute(target.array, key, value);
    for (const std::string& key : unset) change.remove_attribute(target.array, key);
  });
  return change.find(target.array)->attributes();
}

// What the attributes of the array say now; nothing if the target is a level, or if another process
// has removed the array.
conventions conventions_now(const address& target) {
  const snapshot now = container::open(target.file).latest();
  const std::optional<array> found = now.find(target.array);
  return found ? conventions_of(now, *found) : conventions();
}

int run(const set_options& options) {
  const address target = parse_target(options.array);
  const std::vector<attribute> attributes = new_attributes(options);
  attribute_list now;
  const std::uint64_t generation = change_existing_container(target.file, [&](transaction& change) {
    now = change_attributes(change, target, attributes, options.unset);
  });
  const conventions meant = conventions_now(target);
  // The values are stored even then: users may next make or resize arrays that they name.
  if (meant.problem && !options.quiet) note(fmt::format("shale: {}", meant.problem->what()));
  if (options.json) {
    nlohmann::json json{{"file", target.file},
                        {"array", target.array},
                        {"address", target.label()},
                        {"generation", generation}};
    add_attributes(json, now);
    meant.add_to(json);
    print_report(json);
  } else if (!options.quiet) {
    note(fmt::format("{}: {} attribute{} in generation {}", target.label(), now.size(),
                     now.size() == 1 ? "" : "s", generation));
  }
  return exit_success;
}

}  // namespace

void add_set(command_line& line) {
  auto options = std::make_shared<set_options>();
  CLI::App* command =
      line.app.add_subcommand("set", "Set attributes of an array, a level or a container");
  command->add_option("array", options->array, "FILE.shale:ARRAY, FILE.shale:LEVEL/ or FILE.shale")
      ->required();
  add_texts(*command, "attributes", options->attributes, "KEY=VALUE …; see below");
  add_texts(*command, "--unset", options->unset, "Remove an attribute")->type_name("KEY");
  command->add_flag("--json", options->json, "Print all attributes, and their kinds, as JSON");
  command->add_flag("-q,--quiet", options->quiet, "Show no summary");
  command->footer(
      "A value may be JSON: a number, true, null, [0, 5], {\"a\": 1}. It is stored as a bool, an\n"
      "integer of 64 bits, a double, a list of one of these or of texts, or else as JSON. Any\n"
      "other value is text, with or without quotes. Text that would read as JSON needs quotes:\n"
      "'\"1.0\"'. A number that fits neither 64 bits nor a double is kept as text.\n"
      "Without an array, the attributes are those of the container; with a '/' at the end, those\n"
      "of a level of names.\n"
      "The command makes all changes or none.\n"
      "By the conventions of CF and xarray, _ARRAY_DIMENSIONS names the axes, `units` is the unit\n"
      "of the elements, and `coordinates` names arrays with coordinates. Both are text, also\n"
      "units=1. _LOGICAL_DTYPE says what integers stand for: datetime64[ns], timedelta64[25s], or\n"
      "texts along the last axis of uint8 (S) or uint32 (U). A note says what does not fit.\n"
      "`shale info` shows attributes as text, and with --json as JSON.\n"
      "\n"
      "Examples:\n"
      "  shale set survey.shale:dem units=m scale=0.5 'range=[0, 1200]'\n"
      "  shale set survey.shale:dem 'comment=as measured' 'version=\"1.0\"'\n"
      "  shale set survey.shale:dem '_ARRAY_DIMENSIONS=[\"y\", \"x\"]' 'coordinates=lat lon'\n"
      "  shale set survey.shale:time '_LOGICAL_DTYPE=datetime64[h]'\n"
      "  shale set survey.shale title='Survey of 2026'\n"
      "  shale set survey.shale:raw/2026/ source=aerial\n"
      "  shale set survey.shale:dem --unset comment");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
