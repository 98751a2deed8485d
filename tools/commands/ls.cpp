// shale ls: lists the names of arrays in files, as addresses write them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "commands/command_line.hpp"
#include "commands/several_files.hpp"
#include "data/array_facts.hpp"
#include "data/input_files.hpp"
#include "data/json_value.hpp"
#include "notation/address.hpp"
#include "terminal/output.hpp"
#include "terminal/table.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct ls_options {
  std::vector<std::string> sources;
  bool detailed = false;
  bool recursive = false;
  bool chunks = false;
  bool json = false;
};

std::string chunk_text(const array_facts& array) {
  return array.kind == "chunked" && array.chunk_shape ? to_string(*array.chunk_shape) : "";
}

void print_name(const std::string& name) {
  print_data(fmt::format("{}\n", printable(name_in_address(name))));
}

// Whether the address names a level: it ends with '/', and is not the name of an array, which
// another program may have made.
bool names_level(input_files& files, const address& source) {
  return source.format == file_format::shale && source.array.ends_with('/') &&
         !files.generation_of(source.file).find(source.array);
}

// The children of the level that an address names, or all arrays below it. FILE:/ is the level
// above all.
std::vector<level_entry> children_of(input_files& files, const address& source, bool recursive) {
  const snapshot& generation = files.generation_of(source.file);
  const std::string level = source.array == "/" ? std::string() : source.array;
  std::vector<level_entry> children;
  if (!recursive) children = generation.children(level);
  else
    for (const std::string& name : generation.names(level)) children.push_back({name, false});
  if (children.empty() && !level.empty() && generation.attributes(level).empty())
    throw error(errc::not_found, fmt::format("no level '{}' in {}", level, source.file),
                {fmt::format("`shale ls {}:/` lists the levels", source.file)});
  return children;
}

// Facts about what the address names; for a level, facts about its children.
std::vector<array_facts> described(input_files& files, const address& source, bool recursive) {
  if (!names_level(files, source)) return files.describe(source);
  std::vector<array_facts> all;
  for (const level_entry& child : children_of(files, source, recursive)) {
    array_facts facts;
    if (child.is_level) {
      facts.name = child.name;
      facts.kind = "level";
      facts.described = false;
    } else {
      facts = describe_array(files.generation_of(source.file), child.name);
    }
    facts.address = label(source.file, child.name);
    all.push_back(std::move(facts));
  }
  return all;
}

// Prints the names in pieces, without opening an array.
void print_names(const snapshot& generation) {
  std::string after;
  while (true) {
    const std::vector<std::string> names = generation.names({}, after, 4096);
    if (names.empty()) return;
    for (const std::string& name : names) print_name(name);
    after = names.back();
  }
}

// A line of the table, without a cell for the units.
std::vector<std::string> cells_of(const std::string& file, const array_facts& array) {
  if (array.kind == "level")
    return {"", "", array.kind, "", "", "", "", "", "", name_in_address(array.name)};
  if (!array.described)
    return {std::string(name(array.problem->code())),
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            name_in_address(array.name)};
  return {array.type_name(),
          array.by_convention.dimensions.empty() ? to_string(array.shown_shape())
                                                 : array.by_convention.named(array.shape),
          array.kind,
          chunk_text(array),
          array.codec,
          format_bytes(array.logical_bytes),
          format_bytes(array.stored_bytes),
          array.ratio(),
          array.modified ? fmt::format("{}", *array.modified) : "",
          array.name.empty() ? file : name_in_address(array.name)};
}

void print_table(const std::string& file, const std::vector<array_facts>& arrays) {
  std::vector<table::column> columns{{"dtype"},
                                     {"shape"},
                                     {"kind"},
                                     {"chunk"},
                                     {"codec"},
                                     {"logical", alignment::right},
                                     {"stored", alignment::right},
                                     {"ratio", alignment::right},
                                     {"changed", alignment::right},
                                     {"name"}};
  const bool any_units = std::any_of(arrays.begin(), arrays.end(), [](const array_facts& array) {
    return array.by_convention.units.has_value();
  });
  constexpr index_t units_at = 2;
  if (any_units) columns.insert(columns.begin() + units_at, table::column{"units"});
  table list(std::move(columns));
  for (const array_facts& array : arrays) {
    std::vector<std::string> cells = cells_of(file, array);
    if (any_units)
      cells.insert(cells.begin() + units_at, array.by_convention.units.value_or(std::string()));
    list.add(std::move(cells));
  }
  if (!list.empty()) print_data(list.to_string());
}

// Returns the exit code.
int list_file(const std::string& text, const ls_options& options, separator& between) {
  const bool detailed = options.detailed;
  input_files files;
  const address source = parse_whole_address(text);
  if (!detailed && source.format == file_format::shale && source.array.empty()) {
    const snapshot& generation = files.generation_of(source.file);
    between.before_list(text);
    print_names(generation);
    return exit_success;
  }
  if (!detailed && source.format == file_format::npz && source.array.empty()) {
    // The list includes members that Shale cannot read.
    const std::vector<std::string> names = files.archive_at(source.file).names();
    between.before_list(text);
    for (const std::string& name : names) print_name(name);
    return exit_success;
  }
  if (!detailed && names_level(files, source)) {
    const std::vector<level_entry> children = children_of(files, source, options.recursive);
    between.before_list(text);
    for (const level_entry& child : children) print_name(child.name);
    return exit_success;
  }
  const std::vector<array_facts> arrays = described(files, source, options.recursive);
  if (detailed) {
    between.before_list(text);
    print_table(source.file, arrays);
    return note_problems(arrays);
  }
  for (const array_facts& array : arrays) {
    between.before_line();
    if (array.name.empty()) print_data(fmt::format("{}\n", printable(source.file)));
    else print_name(array.name);
  }
  return note_problems(arrays);
}

// Calls `body` for each chunk that the file stores, in the order of the grid. Only a part of the
// list is in memory at a time.
template <class Body>
void for_each_stored_chunk(const array& stored, Body&& body) {
  std::optional<dims> after;
  while (true) {
    const std::vector<stored_chunk> chunks = stored.stored_chunks(after, 4096);
    if (chunks.empty()) return;
    for (const stored_chunk& chunk : chunks) body(chunk);
    after = chunks.back().index;
  }
}

void print_chunks(const array& stored) {
  const auto& extents = stored.chunk_shape();
  dims last = extents;
  for (index_t axis = 0; axis < stored.rank(); ++axis)
    last[axis] = (stored.shape()[axis] - 1) / extents[axis];
  const std::size_t width = std::max<std::size_t>(to_string(last).size(), 5);
  const auto print = [&](const auto& offset, const auto& bytes, const std::string& checksum,
                         const char* form, const std::string& chunk, const std::string& part) {
    print_data(fmt::format("{:>14}  {:>10}  {:16}  {:5}  {:{}}  {}\n", offset, bytes, checksum,
                           form, chunk, width, part));
  };
  print("offset", "stored", "checksum", "form", "chunk", "elements");
  for_each_stored_chunk(stored, [&](const stored_chunk& chunk) {
    print(chunk.offset, chunk.stored_bytes, fmt::format("{:016x}", chunk.checksum),
          chunk.raw ? "raw" : "coded", to_string(chunk.index), to_string(chunk.part));
  });
}

nlohmann::json chunks_json(const array& stored) {
  nlohmann::json list = nlohmann::json::array();
  for_each_stored_chunk(stored, [&](const stored_chunk& chunk) {
    list.push_back({{"index", tools::to_json(chunk.index)},
                    {"start", tools::to_json(chunk.part.start)},
                    {"shape", tools::to_json(chunk.part.shape)},
                    {"offset", chunk.offset},
                    {"stored_bytes", chunk.stored_bytes},
                    {"checksum", fmt::format("{:016x}", chunk.checksum)},
                    {"raw", chunk.raw}});
  });
  return list;
}

// The chunks that --chunks lists are those of the array that an address names, or of all chunked
// arrays of a file.
void require_chunks(const address& source, const std::vector<array_facts>& arrays) {
  if (!source.array.empty() && arrays.front().kind != "chunked")
    throw error(errc::invalid_argument, "ls: a dense array has no chunks",
                {"got " + source.label()});
}

void require_container(const address& source) {
  if (source.format != file_format::shale)
    throw error(errc::invalid_argument, "ls: only arrays of containers have chunks",
                {"got " + source.file});
}

// Describes the arrays of a container, and calls `body` for each chunked one. If a call fails, its
// error becomes the problem of the array.
template <class Body>
std::vector<array_facts> for_each_chunked(input_files& files, const address& source, Body&& body) {
  require_container(source);
  const snapshot& generation = files.generation_of(source.file);
  std::vector<array_facts> arrays = files.describe(source);
  require_chunks(source, arrays);
  for (array_facts& array : arrays) {
    try {
      if (array.kind == "chunked") body(array, generation.at(array.name));
    } catch (const error& failure) {
      if (failure.code() == errc::cancelled || std::ferror(stdout) != 0) throw;
      array.problem = failure;
    }
  }
  return arrays;
}

// Returns the exit code.
int list_chunks(const std::string& text, separator& between) {
  input_files files;
  return note_problems(for_each_chunked(files, parse_whole_address(text),
                                        [&](const array_facts& array, const shale::array& stored) {
                                          between.before_list(array.address);
                                          print_chunks(stored);
                                        }));
}

// Describes the arrays of a file as JSON. Returns the exit code.
int describe_file(const std::string& text, const ls_options& options, nlohmann::json& list) {
  input_files files;
  const address source = parse_whole_address(text);
  std::map<std::string, nlohmann::json> chunks;
  const std::vector<array_facts> arrays =
      !options.chunks ? described(files, source, options.recursive)
                      : for_each_chunked(files, source,
                                         [&](const array_facts& array, const shale::array& stored) {
                                           chunks.emplace(array.name, chunks_json(stored));
                                         });
  list = nlohmann::json::array();
  for (const array_facts& array : arrays) {
    list.push_back(array.to_json());
    if (const auto of_array = chunks.find(array.name); of_array != chunks.end())
      list.back()["stored_chunks"] = std::move(of_array->second);
  }
  return note_problems(arrays);
}

int list_files(const ls_options& options) {
  separator between(options.sources.size() > 1 || options.chunks);
  return for_each_file(options.sources, [&](const std::string& source) {
    return options.chunks ? list_chunks(source, between) : list_file(source, options, between);
  });
}

// The JSON of one file is a list of its arrays; the JSON of several files is a list of objects.
int describe_files(const ls_options& options) {
  nlohmann::json all = nlohmann::json::array();
  const int code = for_each_file(options.sources, [&](const std::string& source) {
    all.push_back({{"file", source}, {"arrays", nlohmann::json()}});
    return describe_file(source, options, all.back()["arrays"]);
  });
  print_json(all);
  return code;
}

int run(const ls_options& options) {
  if (!options.json) return list_files(options);
  if (options.sources.size() > 1) return describe_files(options);
  nlohmann::json arrays;
  const int code = describe_file(options.sources.front(), options, arrays);
  print_json(arrays);
  return code;
}

}  // namespace

void add_ls(command_line& line) {
  auto options = std::make_shared<ls_options>();
  CLI::App* command = line.app.add_subcommand("ls", "List the arrays in files");
  add_texts(*command, "source", options->sources,
            "FILE …; with several, each is a heading above its arrays")
      ->required()
      ->type_name("FILE");
  CLI::Option* detailed =
      command->add_flag("-l,--long", options->detailed, "With dtype, shape, codec and sizes");
  command->add_flag("-r,--recursive", options->recursive,
                    "Of a level, list all arrays below it; a whole file is always listed so");
  command
      ->add_flag("--chunks", options->chunks,
                 "List the chunks that a container stores, with their places in the file")
      ->excludes(detailed);
  command->add_flag("--json", options->json, "Print JSON")->excludes(detailed);
  command->footer(
      "Names are shown as they are typed: with '[[' for a '['. JSON shows them as they are\n"
      "stored, and adds their addresses.\n"
      "A '/' in a name separates levels. An address with a '/' at its end lists one level: its\n"
      "arrays, and the levels in it, which end with '/'. FILE:/ is the level above all.\n"
      "\n"
      "--chunks reads the index, and no element. Chunks that are not listed take no space and\n"
      "read as the fill value. Checksums are XXH3-64 of the stored bytes. Raw chunks are stored\n"
      "as their elements. Dense arrays have no chunks.\n"
      "\n"
      "Examples:\n"
      "  shale ls survey.shale\n"
      "  shale ls *.shale\n"
      "  shale ls -l dem.npz\n"
      "  shale ls survey.shale:/\n"
      "  shale ls -r survey.shale:raw/2026/\n"
      "  shale ls --chunks survey.shale:dem\n"
      "  shale ls --chunks --json survey.shale:dem | jq '.[0].stored_chunks | length'");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
