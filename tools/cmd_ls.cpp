// shale ls: the names in a file.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "source.hpp"
#include "table.hpp"
#include "units.hpp"

namespace shale::tools {

namespace {

struct ls_options {
  std::string source;
  bool detailed = false;
  bool json = false;
};

std::string chunk_text(const array_facts& array) {
  return array.kind == "chunked" && array.chunk_shape ? to_string(*array.chunk_shape) : "";
}

int run(const ls_options& options) {
  library files;
  const address where = parse_whole_address(options.source);
  if (!options.detailed && !options.json && where.format == file_format::shale &&
      where.array.empty()) {
    // Names alone need no array to be opened, however many there are.
    const snapshot& generation = files.generation_of(where.file);
    std::string after;
    while (true) {
      const std::vector<std::string> names = generation.names({}, after, 4096);
      if (names.empty()) return exit_yes;
      for (const std::string& each : names) print_data(fmt::format("{}\n", each));
      after = names.back();
    }
  }
  if (!options.detailed && !options.json && where.format == file_format::npz &&
      where.array.empty()) {
    // Members whose elements have no dtype here are named too.
    for (const std::string& each : files.archive_at(where.file).names())
      print_data(fmt::format("{}\n", printable(each)));
    return exit_yes;
  }
  const std::vector<array_facts> arrays = files.describe(where);
  if (options.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const array_facts& each : arrays) json.push_back(each.to_json());
    print_json(json);
  } else if (options.detailed) {
    table list({{"dtype"},
                {"shape"},
                {"kind"},
                {"chunk"},
                {"codec"},
                {"logical", alignment::right},
                {"stored", alignment::right},
                {"ratio", alignment::right},
                {"changed", alignment::right},
                {"name"}});
    for (const array_facts& each : arrays) {
      if (each.problem) {
        list.add(
            {std::string(name(each.problem->code())), "", "", "", "", "", "", "", "", each.name});
        continue;
      }
      list.add({std::string(name(each.type)), to_string(each.shape), each.kind, chunk_text(each),
                each.codec, format_bytes(each.logical_bytes), format_bytes(each.stored_bytes),
                each.ratio(), each.modified ? fmt::format("{}", *each.modified) : "",
                each.name.empty() ? where.file : each.name});
    }
    if (!list.empty()) print_data(list.to_string());
  } else {
    for (const array_facts& each : arrays)
      print_data(fmt::format("{}\n", each.name.empty() ? where.file : printable(each.name)));
  }
  return note_problems(arrays);
}

}  // namespace

void add_ls(command_line& line) {
  auto options = std::make_shared<ls_options>();
  CLI::App* command = line.app.add_subcommand("ls", "List the arrays in a file");
  command->add_option("source", options->source, "FILE")->required();
  CLI::Option* detailed =
      command->add_flag("-l,--long", options->detailed, "With dtype, shape, codec and sizes");
  command->add_flag("--json", options->json, "Print JSON")->excludes(detailed);
  command->footer(
      "Examples:\n"
      "  shale ls survey.shale\n"
      "  shale ls -l dem.npz");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
