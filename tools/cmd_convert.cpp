// shale convert: the same elements in another file or form.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "container_change.hpp"
#include "engine.hpp"
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
  address to;
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
    all.push_back({place(target, source, each.name),
                   wanted,
                   {wanted.dtype(), members.back().second.size_bytes()}});
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
  change_container(target.file, [&](transaction& change) {
    for (const array_facts& each : every_array(files, source)) {
      address from = source;
      from.array = each.name;
      // Chunks have as many axes as their array, so --chunk fits those of one rank only; and names of
      // old arrays may be none for a new one.
      with_context(
          [&] { return "convert " + from.label(); },
          [&] {
            const operand read = files.open(from);
            const contents what{read.values, type, origin_of(read)};
            all.push_back({place(target, source, each.name), read.values,
                           put_array(change, target.file, each.name, what, options.how, on)});
          });
    }
  });
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
  const written done = write_target(to, {read.values, type, origin_of(read)}, options.how, on);
  return {{to, read.values, done}};
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
      json.push_back({{"target", each.to.label()},
                      {"dtype", name(each.done.type)},
                      {"shape", to_json(each.values.shape())},
                      {"stored_bytes", each.done.stored_bytes},
                      {"not_kept", each.done.not_kept}});
    else if (!options.engine.quiet)
      note(fmt::format("{}: {} {}, {} stored{}", each.to.label(), name(each.done.type),
                       to_string(each.values.shape()), format_bytes(each.done.stored_bytes),
                       not_kept_lines(each.done)));
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
      "From container to container, an array keeps its kind, chunks, codec, fill value and\n"
      "attributes; so does a slice of it, in chunks no longer than its axes. --dense, --chunked,\n"
      "--chunk, --codec and --as say otherwise. Arrays of other files become dense.\n"
      "A copy has no free space and no old generations in it: this is how to compact a container.\n"
      "With -f, the form that the target has stays rather than the source's; its attributes\n"
      "stay too, but where the source has the same ones.\n"
      "Chunks are chosen anew where the number of axes changes, and what cannot be kept is named.\n"
      "\n"
      "Examples:\n"
      "  shale convert dem.npz survey.shale\n"
      "  shale convert dem.npz:elevation survey.shale:dem --chunked\n"
      "  shale convert 'survey.shale:dem[::2, ::2]' small.npy --as float32\n"
      "  shale convert survey.shale compact.shale && mv compact.shale survey.shale\n"
      "  shale convert samples.raw survey.shale:samples --dtype int16 --shape 1000,4096");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
