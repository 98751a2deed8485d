// shale ls: the names in files.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "command_line.hpp"
#include "source.hpp"
#include "table.hpp"
#include "units.hpp"

namespace shale::tools {

namespace {

struct ls_options {
  std::vector<std::string> sources;
  bool detailed = false;
  bool json = false;
};

// What stands between the lists of several files: each has its file's name above it and an empty
// line around it. A file that is one array is a line itself.
class separator {
 public:
  explicit separator(const ls_options& options) : wanted_(options.sources.size() > 1) {}

  // To be called once `file` has been opened: what cannot be leaves no trace in the list.
  void before_list(const std::string& file) {
    if (!wanted_) return;
    print_data(fmt::format("{}{}:\n", last_ == none ? "" : "\n", printable(file)));
    last_ = list;
  }
  void before_line() {
    if (wanted_ && last_ == list) print_data("\n");
    last_ = line;
  }

 private:
  bool wanted_;
  enum { none, list, line } last_ = none;
};

std::string chunk_text(const array_facts& array) {
  return array.kind == "chunked" && array.chunk_shape ? to_string(*array.chunk_shape) : "";
}

// Names alone need no array to be opened, however many there are.
void print_names(const snapshot& generation) {
  std::string after;
  while (true) {
    const std::vector<std::string> names = generation.names({}, after, 4096);
    if (names.empty()) return;
    for (const std::string& each : names) print_data(fmt::format("{}\n", each));
    after = names.back();
  }
}

void print_table(const std::string& file, const std::vector<array_facts>& arrays) {
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
              each.name.empty() ? file : each.name});
  }
  if (!list.empty()) print_data(list.to_string());
}

// Returns the exit code.
int list_file(const std::string& source, bool detailed, separator& between) {
  library files;
  const address where = parse_whole_address(source);
  if (!detailed && where.format == file_format::shale && where.array.empty()) {
    const snapshot& generation = files.generation_of(where.file);
    between.before_list(source);
    print_names(generation);
    return exit_yes;
  }
  if (!detailed && where.format == file_format::npz && where.array.empty()) {
    // Members whose elements have no dtype here are named too.
    const std::vector<std::string> names = files.archive_at(where.file).names();
    between.before_list(source);
    for (const std::string& each : names) print_data(fmt::format("{}\n", printable(each)));
    return exit_yes;
  }
  const std::vector<array_facts> arrays = files.describe(where);
  if (detailed) {
    between.before_list(source);
    print_table(where.file, arrays);
    return note_problems(arrays);
  }
  for (const array_facts& each : arrays) {
    between.before_line();
    print_data(fmt::format("{}\n", printable(each.name.empty() ? where.file : each.name)));
  }
  return note_problems(arrays);
}

// The same as JSON. Returns the exit code.
int describe_file(const std::string& source, nlohmann::json& into) {
  library files;
  const std::vector<array_facts> arrays = files.describe(parse_whole_address(source));
  into = nlohmann::json::array();
  for (const array_facts& each : arrays) into.push_back(each.to_json());
  return note_problems(arrays);
}

// What one of several files fails with keeps nobody from the others. Returns the exit code.
template <class Body>
int unless_it_fails(Body&& body) {
  try {
    return body();
  } catch (const error& failure) {
    if (failure.code() == errc::cancelled || std::ferror(stdout) != 0) throw;
    note_failure(failure);
    return code_of(failure);
  }
}

int list_files(const ls_options& options) {
  separator between(options);
  int code = exit_yes;
  for (const std::string& each : options.sources) {
    const int of_this = unless_it_fails([&] { return list_file(each, options.detailed, between); });
    if (code == exit_yes) code = of_this;
  }
  return code;
}

// One file is an array of its arrays; several are an array of objects.
int describe_files(const ls_options& options) {
  int code = exit_yes;
  nlohmann::json all = nlohmann::json::array();
  for (const std::string& each : options.sources) {
    nlohmann::json arrays;
    const int of_this = unless_it_fails([&] { return describe_file(each, arrays); });
    if (code == exit_yes) code = of_this;
    all.push_back({{"file", each}, {"arrays", std::move(arrays)}});
  }
  print_json(all);
  return code;
}

int run(const ls_options& options) {
  if (!options.json) return list_files(options);
  if (options.sources.size() > 1) return describe_files(options);
  nlohmann::json arrays;
  const int code = describe_file(options.sources.front(), arrays);
  print_json(arrays);
  return code;
}

}  // namespace

void add_ls(command_line& line) {
  auto options = std::make_shared<ls_options>();
  CLI::App* command = line.app.add_subcommand("ls", "List the arrays in files");
  command->add_option("source", options->sources, "FILE …; several are named above their arrays")
      ->required()
      ->type_name("FILE");
  CLI::Option* detailed =
      command->add_flag("-l,--long", options->detailed, "With dtype, shape, codec and sizes");
  command->add_flag("--json", options->json, "Print JSON")->excludes(detailed);
  command->footer(
      "Examples:\n"
      "  shale ls survey.shale\n"
      "  shale ls *.shale\n"
      "  shale ls -l dem.npz");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
