// shale mv: renames an array in its container.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "data/container_change.hpp"
#include "data/name_advice.hpp"
#include "data/target.hpp"
#include "notation/address.hpp"
#include "terminal/output.hpp"

namespace shale::tools {

namespace {

struct mv_options {
  std::string array;
  std::string name;
  bool force = false;
  bool json = false;
  bool quiet = false;
};

// The new name, which may be typed alone or as FILE:NAME.
std::string new_name(const address& from, const std::string& text) {
  if (text.starts_with(from.file + ':')) return parse_array_address(text).array;
  const std::optional<std::string> file = named_file(text);
  if (!file) return text;
  if (is_same_file(*file, from.file)) return parse_array_address(text).array;
  throw error(errc::invalid_argument, fmt::format("mv: '{}' is another file", text),
              {fmt::format("mv renames inside {0}; write {0}:NAME for a name like that", from.file),
               "`shale convert` copies arrays to other files"});
}

int run(const mv_options& options) {
  const address from = parse_array_address(options.array);
  const std::string to = new_name(from, options.name);
  if (to == from.array)
    throw error(errc::invalid_argument, fmt::format("mv: '{}' has that name already", to));
  const std::uint64_t generation = change_existing_container(from.file, [&](transaction& change) {
    if (change.find(from.array) && change.find(to)) {
      if (!options.force) throw_exists(label(from.file, to));
      change.remove(to);
    }
    explaining_names(from.file, from.array, [&] { change.rename(from.array, to); });
  });
  if (options.json)
    print_report({{"file", from.file},
                  {"from", from.array},
                  {"to", to},
                  {"address", label(from.file, to)},
                  {"generation", generation}});
  else if (!options.quiet)
    note(
        fmt::format("{}: now {} in generation {}", from.label(), label(from.file, to), generation));
  return exit_success;
}

}  // namespace

void add_mv(command_line& line) {
  auto options = std::make_shared<mv_options>();
  CLI::App* command = line.app.add_subcommand("mv", "Rename an array in its container");
  command->add_option("array", options->array, "FILE.shale:ARRAY")->required();
  command->add_option("name", options->name, "The new name")->required();
  command->add_flag("-f,--force", options->force, "Replace an array that has the name");
  command->add_flag("--json", options->json, "Print what was renamed as JSON");
  command->add_flag("-q,--quiet", options->quiet, "Show no summary");
  command->footer(
      "No element is copied. Levels of names are separated by '/'; none may be empty or of\n"
      "periods only. A new name that is typed alone is taken as it is, with every '['. Typed as\n"
      "FILE.shale:NAME it is an address, with '[[' for a '['.\n"
      "\n"
      "Examples:\n"
      "  shale mv survey.shale:dem elevation\n"
      "  shale mv survey.shale:dem raw/2026/dem\n"
      "  shale mv survey.shale:dem 'survey.shale:dem[[1]'    names it dem[1]");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
