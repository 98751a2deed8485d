// shale info: shows facts about a file or an array without reading elements.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "commands/several_files.hpp"
#include "data/array_facts.hpp"
#include "data/input_files.hpp"
#include "data/raw_options.hpp"
#include "notation/address.hpp"
#include "notation/attribute.hpp"
#include "terminal/output.hpp"
#include "terminal/table.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct info_options {
  std::vector<std::string> sources;
  raw_options raw;
  bool json = false;
};

std::string joined(const dims& extents) {
  std::string text;
  for (const index_t extent : extents) {
    if (!text.empty()) text += " x ";
    text += fmt::format("{}", extent);
  }
  return text.empty() ? "a single element" : text;
}

void add_array(facts& list, const array_facts& array) {
  if (array.problem)
    list.add("unreadable",
             fmt::format("{} [{}]", array.problem->message(), name(array.problem->code())));
  if (!array.described) return;
  const dims shape = array.shown_shape();
  list.add("dtype", array.type_name());
  list.add("shape", joined(shape));
  list.add("elements", format_count(static_cast<std::uint64_t>(element_count(shape))));
  if (array.logical)
    list.add("stored as", fmt::format("{}, {}", name(array.type), joined(array.shape)));
  list.add("kind", array.kind);
  if (array.chunk_shape) {
    list.add("chunk", joined(*array.chunk_shape));
    list.add("chunks", format_count(*array.chunks()));
  }
  if (!array.codec.empty()) list.add("codec", array.codec);
  if (array.fill_value) list.add("fill value", *array.fill_value);
  list.add("logical", format_bytes(array.logical_bytes));
  list.add("stored",
           array.problem
               ? fmt::format("{} of these are present", format_bytes(array.stored_bytes))
               : fmt::format("{} (ratio {})", format_bytes(array.stored_bytes), array.ratio()));
  if (array.modified) list.add("changed", fmt::format("in generation {}", *array.modified));
  array.by_convention.add_to(list);
  for (const auto& [key, value] : array.attributes)
    if (!array.by_convention.shows(key)) list.add("attribute " + key, attribute_text(value));
}

// The attributes of the container and of its levels.
void add_levels(facts& list, const snapshot& generation) {
  for (const std::string& level : generation.levels_with_attributes())
    for (const auto& [key, value] : generation.attributes(level))
      list.add("attribute " + key + (level.empty() ? "" : " of " + level + "/"),
               attribute_text(value));
}

void add_levels(nlohmann::json& to, const snapshot& generation) {
  add_attributes(to, generation.attributes());
  to["levels"] = nlohmann::json::object();
  for (const std::string& level : generation.levels_with_attributes())
    if (!level.empty()) add_attributes(to["levels"][level], generation.attributes(level));
}

nlohmann::json file_json(const std::vector<array_facts>& arrays, input_files& files,
                         const address& source) {
  nlohmann::json json{{"file", source.file},
                      {"format", name(source.format)},
                      {"file_bytes", file_bytes(source.file)},
                      {"arrays", nlohmann::json::array()}};
  if (source.format == file_format::shale) {
    json["uuid"] = files.container_of(source.file).uuid();
    json["generation"] = files.generation_of(source.file).generation();
    if (source.array.empty()) add_levels(json, files.generation_of(source.file));
  }
  for (const array_facts& array : arrays) json["arrays"].push_back(array.to_json());
  return json;
}

void print_file(const std::vector<array_facts>& arrays, input_files& files, const address& source) {
  facts list;
  list.add("file", source.file);
  list.add("format", std::string(name(source.format)));
  list.add("size", format_bytes(file_bytes(source.file)));
  if (source.format == file_format::shale) {
    list.add("uuid", files.container_of(source.file).uuid());
    list.add("generation", fmt::format("{}", files.generation_of(source.file).generation()));
  }
  std::uint64_t stored = 0;
  std::uint64_t logical = 0;
  for (const array_facts& array : arrays) {
    stored += array.stored_bytes;
    logical += array.logical_bytes;
  }
  const bool is_nameless = arrays.size() == 1 && arrays.front().name.empty();
  if (is_nameless) {
    add_array(list, arrays.front());
  } else {
    list.add("arrays", fmt::format("{}, {} stored for {} of elements", arrays.size(),
                                   format_bytes(stored), format_bytes(logical)));
  }
  if (source.format == file_format::shale) add_levels(list, files.generation_of(source.file));
  print_data(list.to_string());
  if (is_nameless) return;
  for (const array_facts& array : arrays) {
    facts details;
    add_array(details, array);
    print_data(
        fmt::format("\n{}\n{}", printable(name_in_address(array.name)), details.to_string()));
  }
}

// Returns the exit code.
int show_file(const std::string& text, const info_options& options, separator& between) {
  input_files files;
  const address source = with_raw_options(parse_whole_address(text), options.raw);
  const std::vector<array_facts> arrays = files.describe(source);
  between.before_list(text);
  if (source.array.empty()) {
    print_file(arrays, files, source);
  } else {
    facts list;
    list.add("file", source.file);
    if (source.format == file_format::shale)
      list.add("generation", fmt::format("{}", files.generation_of(source.file).generation()));
    list.add("array", name_in_address(arrays.front().name));
    add_array(list, arrays.front());
    print_data(list.to_string());
  }
  return note_problems(arrays);
}

int run(const info_options& options) {
  if (options.json)
    return print_json_of(options.sources, "file", [&](const std::string& text) {
      input_files files;
      const address source = with_raw_options(parse_whole_address(text), options.raw);
      const std::vector<array_facts> arrays = files.describe(source);
      return described_file{file_json(arrays, files, source), note_problems(arrays)};
    });
  separator between(options.sources.size() > 1);
  return for_each_file(options.sources,
                       [&](const std::string& text) { return show_file(text, options, between); });
}

}  // namespace

void add_info(command_line& line) {
  auto options = std::make_shared<info_options>();
  CLI::App* command = line.app.add_subcommand("info", "Show what a file or an array is");
  add_texts(*command, "source", options->sources,
            "FILE or FILE:ARRAY …; with several, each is a heading above its facts")
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print JSON");
  options->raw.add_to(*command);
  command->footer(
      "Names are shown as they are typed: with '[[' for a '['. JSON shows them as they are\n"
      "stored, and adds their addresses.\n"
      "\n"
      "Examples:\n"
      "  shale info survey.shale            the container and every array in it\n"
      "  shale info survey.shale:dem        one array\n"
      "  shale info *.npy\n"
      "  shale info dem.npz --json | jq .arrays[].name");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
