// shale info: everything known about a file or one array, without reading elements.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "source.hpp"
#include "table.hpp"
#include "units.hpp"

namespace shale::tools {

namespace {

struct info_options {
  std::string source;
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
  if (array.problem) {
    list.add("unreadable",
             fmt::format("{} [{}]", array.problem->message(), name(array.problem->code())));
    return;
  }
  list.add("dtype", std::string(name(array.type)));
  list.add("shape", joined(array.shape));
  list.add("elements", format_count(static_cast<std::uint64_t>(element_count(array.shape))));
  list.add("kind", array.kind);
  if (array.chunk_shape && array.kind == "chunked") {
    list.add("chunk", joined(*array.chunk_shape));
    index_t chunks = 1;
    for (index_t axis = 0; axis < array.shape.size(); ++axis)
      chunks *= ceil_div(array.shape[axis], std::max<index_t>((*array.chunk_shape)[axis], 1));
    list.add("chunks", format_count(static_cast<std::uint64_t>(chunks)));
  }
  if (!array.codec.empty()) list.add("codec", array.codec);
  if (array.fill_value) list.add("fill value", *array.fill_value);
  list.add("logical", format_bytes(array.logical_bytes));
  list.add("stored", fmt::format("{} (ratio {})", format_bytes(array.stored_bytes), array.ratio()));
  if (array.modified) list.add("changed", fmt::format("in generation {}", *array.modified));
  for (const auto& [key, value] : array.attributes) list.add("attribute " + key, value);
}

nlohmann::json file_json(const std::vector<array_facts>& arrays, library& files,
                         const address& where) {
  nlohmann::json json{{"file", where.file},
                      {"format", name(where.format)},
                      {"file_bytes", file_bytes(where.file)},
                      {"arrays", nlohmann::json::array()}};
  if (where.format == file_format::shale) {
    json["uuid"] = files.container_of(where.file).uuid();
    json["generation"] = files.generation_of(where.file).generation();
  }
  for (const array_facts& each : arrays) json["arrays"].push_back(each.to_json());
  return json;
}

void print_file(const std::vector<array_facts>& arrays, library& files, const address& where) {
  facts list;
  list.add("file", where.file);
  list.add("format", std::string(name(where.format)));
  list.add("size", format_bytes(file_bytes(where.file)));
  if (where.format == file_format::shale) {
    list.add("uuid", files.container_of(where.file).uuid());
    list.add("generation", fmt::format("{}", files.generation_of(where.file).generation()));
  }
  std::uint64_t stored = 0;
  std::uint64_t logical = 0;
  for (const array_facts& each : arrays) {
    stored += each.stored_bytes;
    logical += each.logical_bytes;
  }
  const bool nameless = arrays.size() == 1 && arrays.front().name.empty();
  if (nameless) {
    add_array(list, arrays.front());
  } else {
    list.add("arrays", fmt::format("{}, {} stored for {} of elements", arrays.size(),
                                   format_bytes(stored), format_bytes(logical)));
  }
  print_data(list.to_string());
  if (nameless) return;
  for (const array_facts& each : arrays) {
    facts details;
    add_array(details, each);
    print_data(fmt::format("\n{}\n{}", printable(each.name), details.to_string()));
  }
}

int run(const info_options& options) {
  library files;
  const address where = with_raw_options(parse_whole_address(options.source), options.raw);
  const std::vector<array_facts> arrays = files.describe(where);
  if (options.json) {
    print_json(file_json(arrays, files, where));
  } else if (where.array.empty()) {
    print_file(arrays, files, where);
  } else {
    facts list;
    list.add("file", where.file);
    if (where.format == file_format::shale)
      list.add("generation", fmt::format("{}", files.generation_of(where.file).generation()));
    list.add("array", arrays.front().name);
    add_array(list, arrays.front());
    print_data(list.to_string());
  }
  return note_problems(arrays);
}

}  // namespace

void add_info(command_line& line) {
  auto options = std::make_shared<info_options>();
  CLI::App* command = line.app.add_subcommand("info", "Show what a file or an array is");
  command->add_option("source", options->source, "FILE or FILE:ARRAY")->required();
  command->add_flag("--json", options->json, "Print JSON");
  options->raw.add_to(*command);
  command->footer(
      "Examples:\n"
      "  shale info survey.shale            the container and every array in it\n"
      "  shale info survey.shale:dem        one array\n"
      "  shale info dem.npz --json | jq .arrays[].name");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
