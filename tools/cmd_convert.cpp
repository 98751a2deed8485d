// shale convert: the same elements in another file or form.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "engine.hpp"
#include "partial_file.hpp"
#include "shale/npz.hpp"
#include "source.hpp"
#include "target.hpp"
#include "units.hpp"

namespace shale::tools {

namespace {

struct convert_options {
  std::string source;
  std::string target;
  raw_options raw;
  std::string type;
  bool json = false;
  target_options how;
  engine_options engine;
};

// What was converted, for the summary.
struct conversion {
  std::string label;
  expr values;
  written done;
};

bool holds_many(file_format format) {
  return format == file_format::shale || format == file_format::npz;
}

// The last part of a file's name without its suffix: dem for data/dem.npy.
std::string stem(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  return name.substr(0, name.rfind('.'));
}

// Where one array goes: under the target's name, else its own, else its file's.
address place(const address& target, const address& source, const std::string& name) {
  address result = target;
  if (!holds_many(target.format) || !target.array.empty()) return result;
  result.array = !name.empty() ? name : stem(source.file);
  return result;
}

// All of them or none: a copy that silently lacks some would be taken for the whole.
std::vector<array_facts> every_array(library& files, const address& source) {
  std::vector<array_facts> all = files.describe(source);
  for (const array_facts& each : all) {
    if (!each.problem) continue;
    error failure = *each.problem;
    failure.add_detail(
        fmt::format("the others can be converted one by one, from {}:NAME; "
                    "`shale ls -l {}` lists them",
                    source.file, source.file));
    throw failure;
  }
  return all;
}

// Every member of an archive, or every array of a container, into one archive.
std::vector<conversion> into_archive(library& files, const address& source, const address& target,
                                     std::optional<dtype> type, const convert_options& options,
                                     executor& on) {
  require_replaceable(target.file, options.how);
  std::vector<std::pair<std::string, tensor>> members;
  std::vector<conversion> all;
  for (const array_facts& each : every_array(files, source)) {
    address from = source;
    from.array = each.name;
    const operand read = files.open(from);
    const bool direct = read.elements && (!type || *type == each.type);
    // Compressed arrays have no bytes that an archive could be written from, so they pass through
    // memory, and have to fit.
    const expr wanted = type ? cast(read.values, *type) : read.values;
    members.emplace_back(each.name, direct ? *read.elements : eval(wanted, &on));
    all.push_back({fmt::format("{}:{}", target.file, each.name),
                   wanted,
                   {wanted.dtype(), members.back().second.size_bytes(), std::nullopt}});
  }
  write_npz(
      target.file, members,
      {.existing = options.how.force ? existing_file::replace : existing_file::refuse, .on = &on});
  return all;
}

// Every array of a file into a container, in one transaction: all of them or none.
std::vector<conversion> into_container(library& files, const address& source, const address& target,
                                       std::optional<dtype> type, const convert_options& options,
                                       executor& on) {
  std::vector<conversion> all;
  const std::uint64_t generation = change_container(target.file, [&](transaction& change) {
    for (const array_facts& each : every_array(files, source)) {
      address from = source;
      from.array = each.name;
      const operand read = files.open(from);
      const std::optional<array> before = change.find(each.name);
      if (before && !options.how.force)
        throw error(errc::already_exists, fmt::format("'{}:{}' exists", target.file, each.name),
                    {"-f replaces it"});
      // Chunks have as many axes as their array, so --chunk fits those of one rank only.
      const array_spec spec = options.how.spec(
          type ? *type : options.how.kept_dtype(each.type, each.shape, before), each.shape, before);
      if (before) change.remove(each.name);
      change.create(each.name, spec).write(read.values, &on);
      for (const auto& [key, value] : each.attributes) change.set_attribute(each.name, key, value);
      all.push_back({fmt::format("{}:{}", target.file, each.name), read.values, {}});
      throw_if_interrupted();
    }
  });
  const snapshot now = container::open(target.file).latest();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = all[i].label.substr(target.file.size() + 1);
    const array made = now.at(name);
    all[i].done = {made.dtype(), made.stored_bytes(), generation};
  }
  return all;
}

std::vector<conversion> convert(library& files, const address& source, const address& target,
                                const convert_options& options, executor& on) {
  const std::optional<dtype> type =
      options.type.empty() ? std::nullopt : std::optional(parse_dtype_option(options.type));
  const bool whole = holds_many(source.format) && source.array.empty() &&
                     holds_many(target.format) && target.array.empty();
  if (whole && target.format == file_format::npz)
    return into_archive(files, source, target, type, options, on);
  if (whole) return into_container(files, source, target, type, options, on);
  require_no_other_members(target);
  const operand read = files.open(source);
  const address to = place(target, source, source.array);
  const written done = write_target(to, read.values, type, options.how, on);
  return {{to.label(), type ? cast(read.values, *type) : read.values, done}};
}

int run(const convert_options& options) {
  const address target = parse_whole_address(options.target);
  const address source = with_raw_options(parse_address(options.source), options.raw);
  engine work(options.engine, "convert");
  library files;
  const std::vector<conversion> all = convert(files, source, target, options, work.on());
  const report cost = work.finish();
  nlohmann::json json = nlohmann::json::array();
  for (const conversion& each : all) {
    if (options.json)
      json.push_back({{"target", each.label},
                      {"dtype", name(each.done.type)},
                      {"shape", to_json(each.values.shape())},
                      {"stored_bytes", each.done.stored_bytes}});
    else if (!options.engine.quiet)
      note(fmt::format("{}: {} {}, {} stored", each.label, name(each.done.type),
                       to_string(each.values.shape()), format_bytes(each.done.stored_bytes)));
  }
  if (options.json) print_json(nlohmann::json{{"converted", json}, {"cost", cost.to_json()}});
  else if (!options.engine.quiet) note(cost.to_string());
  return exit_yes;
}

}  // namespace

void add_convert(command_line& line) {
  auto options = std::make_shared<convert_options>();
  CLI::App* command =
      line.app.add_subcommand("convert", "Copy between .shale, .npy, .npz and raw files");
  command->add_option("source", options->source, address_help)->required();
  command
      ->add_option("target", options->target,
                   "FILE.shale[:ARRAY], FILE.npy, FILE.npz[:NAME] or FILE.raw")
      ->required();
  command->add_option("--as", options->type, "Convert elements [as they are]")->type_name("DTYPE");
  command->add_flag("--json", options->json, "Print what was written as JSON");
  options->raw.add_to(*command);
  options->how.add_to(*command);
  options->engine.add_to(*command);
  command->footer(
      "A target without a name takes the source's, or every array if the source names none.\n"
      "An .npz archive is written whole; a .shale container takes arrays one by one.\n"
      "--dtype and --shape describe a raw source.\n"
      "\n"
      "Examples:\n"
      "  shale convert dem.npz survey.shale\n"
      "  shale convert dem.npz:elevation survey.shale:dem --chunked\n"
      "  shale convert 'survey.shale:dem[::2, ::2]' small.npy --as float32\n"
      "  shale convert samples.raw survey.shale:samples --dtype int16 --shape 1000,4096");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
