// shale convert: copies arrays to another file or form.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "commands/report.hpp"
#include "data/array_facts.hpp"
#include "data/array_target.hpp"
#include "data/container_change.hpp"
#include "data/foreign_target.hpp"
#include "data/input_files.hpp"
#include "data/json_value.hpp"
#include "data/logical.hpp"
#include "data/lost_properties.hpp"
#include "data/raw_options.hpp"
#include "data/target.hpp"
#include "notation/address.hpp"
#include "notation/shape_text.hpp"
#include "shale/npz.hpp"
#include "shale/t7.hpp"
#include "terminal/interrupt.hpp"
#include "terminal/output.hpp"
#include "terminal/table.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct convert_options {
  std::string source;
  std::string target;
  raw_options raw;
  std::string type;
  bool json = false;
  bool replace = false;
  bool salvage = false;
  target_options writing;
  engine_options engine;
};

// One converted array, for the summary. It holds no element, so that the memory and the descriptor
// of one array are free before the next is read.
struct conversion {
  address to;
  dims shape;
  written done;
};

// What was converted, and a line for each property of the file that was not kept.
struct conversions {
  std::vector<conversion> arrays;
  std::vector<std::string> not_kept;
};

bool holds_many(file_format format) {
  return format == file_format::shale || format == file_format::npz || format == file_format::t7;
}

// The name of a file without folder and suffix: dem for data/dem.npy.
std::string stem(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  return name.substr(0, name.rfind('.'));
}

// The target of one array. Its name is the one that the target gives, or else the array's own
// name, or else the name of the file.
address place(const address& target, const address& source, const std::string& name) {
  address result = target;
  if (!holds_many(target.format) || !target.array.empty()) return result;
  result.array = !name.empty() ? name : stem(source.file);
  return result;
}

// Facts about all arrays of the file. One unreadable array is an error, because users would take an
// incomplete copy for a complete one.
std::vector<array_facts> every_array(input_files& files, const address& source) {
  std::vector<array_facts> all = files.describe(source);
  for (const array_facts& array : all) {
    if (!array.problem) continue;
    error failure = *array.problem;
    failure.add_detail(
        fmt::format("the others can be converted one by one, from {}:NAME; "
                    "`shale ls -l {}` lists them",
                    source.file, source.file));
    throw failure;
  }
  return all;
}

// Refuses arrays that a file of Torch7 cannot hold, before the first of them is read.
void require_t7_dtypes(const std::vector<array_facts>& arrays, const address& source,
                       std::optional<dtype> type) {
  for (const array_facts& array : arrays) {
    address from = source;
    from.array = array.name;
    with_context([&] { return "convert " + printable(from.label()); },
                 [&] { require_t7_dtype(type.value_or(array.type)); });
  }
}

template <class Writer>
constexpr bool holds_logical = std::is_same_v<Writer, npz_writer>;

// Copies `arrays` of a file into one archive or file of Torch7, which `archive` writes.
template <class Writer>
std::vector<conversion> into_archive(Writer archive, const std::vector<array_facts>& arrays,
                                     input_files& files, const address& source,
                                     const address& target, std::optional<dtype> type) {
  std::vector<conversion> all;
  for (const array_facts& array : arrays) {
    address from = source;
    from.array = array.name;
    const operand read = files.open(from);
    const bool is_direct = read.elements && (!type || *type == array.type);
    const contents copy{type ? astype(read.values, *type) : read.values, type, origin_of(read),
                        read.logical};
    written done{.type = copy.values.dtype()};
    const address to = place(target, source, array.name);
    std::optional<logical_dtype> logical;
    if (holds_logical<Writer>) logical = kept_logical_dtype(copy.logical, copy.values);
    const auto add = [&](const tensor& elements) {
      if constexpr (holds_logical<Writer>) archive.add(to.array, elements, logical);
      else archive.add(to.array, elements);
    };
    if (is_direct) {
      add(*read.elements);
      done.stored_bytes = read.elements->size_bytes();
    } else {
      done = add_computed(target.file, copy.values, add);
    }
    done.not_kept = lost_properties(copy, logical);
    all.push_back({to, copy.values.shape(), done});
  }
  replace_target([&] { archive.finish(); });
  return all;
}

// Copies the attributes of a container and of its levels. An attribute of the target is replaced
// only with -f.
void copy_levels(transaction& change, const snapshot& generation, const std::string& file,
                 bool force) {
  for (const std::string& level : generation.levels_with_attributes()) {
    const attribute_list before = change.level_attributes(level);
    for (const auto& [key, value] : generation.attributes(level)) {
      for (const auto& [other_key, other] : before)
        if (!force && other_key == key && other != value)
          throw error(
              errc::already_exists,
              fmt::format("{} has another attribute '{}'",
                          printable(level.empty() ? file : label(file, level)), printable(key)),
              {"-f replaces it"});
      change.set_level_attribute(level, key, value);
    }
  }
}

// Copies every array of a file in the transaction `change`.
std::vector<conversion> copy_arrays(transaction& change, input_files& files, const address& source,
                                    const address& target, std::optional<dtype> type,
                                    const convert_options& options) {
  std::vector<conversion> all;
  for (const array_facts& array : every_array(files, source)) {
    address from = source;
    from.array = array.name;
    // The context names the array, because one array may fail alone: --chunk fits arrays of one
    // rank only, and an old array may have a name that a new array must not have.
    with_context([&] { return "convert " + printable(from.label()); },
                 [&] {
                   const operand read = files.open(from);
                   const contents copy{read.values, type, origin_of(read), read.logical};
                   const address to = place(target, source, array.name);
                   all.push_back({to, read.values.shape(),
                                  put_array(change, target.file, to.array, copy, options.writing)});
                 });
  }
  if (source.format == file_format::shale)
    copy_levels(change, files.generation_of(source.file), target.file, options.writing.force);
  return all;
}

// Copies every array of a file in one transaction.
std::vector<conversion> into_container(input_files& files, const address& source,
                                       const address& target, std::optional<dtype> type,
                                       const convert_options& options) {
  std::vector<conversion> all;
  change_container(target.file, [&](transaction& change) {
    all = copy_arrays(change, files, source, target, type, options);
  });
  return all;
}

// Copies every array of a file into one archive or file of Torch7, and names what is lost of a
// container besides its arrays.
conversions into_other_file(input_files& files, const address& source, const address& target,
                            std::optional<dtype> type, const target_options& options) {
  require_form(target, options);
  require_replaceable(target.file, options);
  const existing_file existing = options.existing();
  const std::vector<array_facts> arrays = every_array(files, source);
  conversions all;
  if (source.format == file_format::shale)
    all.not_kept = lost_level_attributes(files.generation_of(source.file));
  if (target.format == file_format::npz) {
    all.arrays = into_archive(npz_writer(target.file, {.existing = existing}), arrays, files,
                              source, target, type);
  } else {
    require_t7_dtypes(arrays, source, type);
    all.arrays = into_archive(t7_writer(target.file, {.existing = existing}), arrays, files, source,
                              target, type);
  }
  return all;
}

// Replaces a container by a copy of it. Other processes cannot commit to it meanwhile.
conversions replace_source(input_files& files, const address& source, std::optional<dtype> type,
                           const convert_options& options) {
  conversions all;
  all.not_kept = replace_container(source.file, [&](transaction& change) {
    all.arrays = copy_arrays(change, files, source, source, type, options);
  });
  return all;
}

// Whether the source is a file of Torch7 that holds one tensor, which has no name.
bool is_one_tensor(input_files& files, const address& source) {
  if (source.format != file_format::t7 || !source.array.empty()) return false;
  const t7_kind kind = files.torch_file_at(source.file).root().kind;
  return kind == t7_kind::tensor || kind == t7_kind::storage;
}

// A line that counts the values of a file of Torch7 that were not copied; empty if there are none.
std::string other_values_of(const t7_file& file) {
  const t7_other_values others = file.other_values();
  std::string text;
  const auto add = [&](std::uint64_t count, const char* kind) {
    if (count > 0)
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count, kind, count > 1 ? "s" : "");
  };
  add(others.numbers, "number");
  add(others.booleans, "boolean");
  add(others.strings, "string");
  add(others.functions, "function");
  return text;
}

conversions convert(input_files& files, const address& source, const address& target,
                    const convert_options& options) {
  const std::optional<dtype> type =
      options.type.empty() ? std::nullopt : std::optional(parse_dtype_option(options.type));
  if (options.replace) return replace_source(files, source, type, options);
  const bool whole = holds_many(source.format) && source.array.empty() &&
                     holds_many(target.format) && target.array.empty() &&
                     !is_one_tensor(files, source);
  if (whole && target.format != file_format::shale)
    return into_other_file(files, source, target, type, options.writing);
  if (whole) return {into_container(files, source, target, type, options), {}};
  require_no_other_members(target);
  const operand read = files.open(source);
  // A single tensor becomes a file of Torch7 without a table, as it becomes an .npy file.
  const address to =
      target.format == file_format::t7 ? target : place(target, source, source.array);
  const written done =
      write_target(to, {read.values, type, origin_of(read), read.logical}, options.writing);
  return {{{to, read.values.shape(), done}}, {}};
}

nlohmann::json json_of(const conversion& array) {
  nlohmann::json json{{"target", array.to.label()},
                      {"dtype", name(array.done.type)},
                      {"shape", tools::to_json(array.shape)},
                      {"stored_bytes", array.done.stored_bytes}};
  add_details(json, array.done);
  return json;
}

void print(const conversions& all, const report& cost, const convert_options& options) {
  if (options.json) {
    nlohmann::json arrays = nlohmann::json::array();
    for (const conversion& array : all.arrays) arrays.push_back(json_of(array));
    print_report(nlohmann::json{
        {"converted", arrays}, {"not_kept", all.not_kept}, {"cost", cost.to_json()}});
  } else if (!options.engine.quiet) {
    for (const auto& [to, shape, done] : all.arrays)
      note(fmt::format("{}: {} {}, {} stored{}", printable(to.label()), name(done.type),
                       to_string(shape), format_bytes(done.stored_bytes), detail_lines(done)));
    for (const std::string& property : all.not_kept) note(fmt::format("not kept: {}", property));
    note(cost.to_string());
  }
}

int run(const convert_options& options) {
  if (options.replace != options.target.empty())
    throw error(errc::invalid_argument,
                options.replace ? "--replace copies the source onto itself, and takes no target"
                                : "a target is needed, or --replace");
  const address source = with_raw_options(parse_address(options.source), options.raw);
  if (options.replace && (source.format != file_format::shale || !source.array.empty()))
    throw error(errc::invalid_argument, "--replace is for whole .shale containers",
                {"got " + options.source});
  if (options.salvage && source.format != file_format::shale)
    throw error(errc::invalid_argument, "--salvage is for .shale containers",
                {"got " + options.source});
  const address target = options.replace ? source : parse_whole_address(options.target);
  engine_options checked = options.engine;
  checked.check = true;  // a copy of damaged bytes would get valid checksums
  engine work(checked, "convert");
  input_files files(options.salvage ? open_mode::salvage : open_mode::read, checked.checksums());
  conversions all = convert(files, source, target, options);
  const report cost = work.finish();
  if (source.format == file_format::t7 && source.array.empty())
    if (const std::string others = other_values_of(files.torch_file_at(source.file));
        !others.empty())
      all.not_kept.push_back(others);
  print(all, cost, options);
  return exit_success;
}

}  // namespace

void add_convert(command_line& line) {
  auto options = std::make_shared<convert_options>();
  CLI::App* command =
      line.app.add_subcommand("convert", "Copy between .shale, .npy, .npz, .t7 and raw files");
  command->add_option("source", options->source, address_help)->required();
  command->add_option("target", options->target,
                      "FILE.shale[:ARRAY], FILE.npy, FILE.npz[:NAME], FILE.t7[:NAME] or FILE.raw");
  command->add_flag("--replace", options->replace,
                    "Replace the container by a copy of itself; takes no target");
  command
      ->add_flag("--salvage", options->salvage,
                 "If the newest commit is lost, copy the generation before it")
      ->excludes("--replace");
  command->add_option("--as", options->type, "Convert elements [as they are]")->type_name("DTYPE");
  command->add_flag("--json", options->json, "Print what was written as JSON");
  options->raw.add_to(*command);
  options->writing.add_to(*command);
  options->engine.add_to(*command);
  command->footer(
      "A target without a name takes the source's name. If the source has no name either, every\n"
      "array is copied. Archives and .t7 files are written whole; a .shale container keeps its\n"
      "other arrays. Of a .t7 file, only tensors and storages are copied.\n"
      "--dtype and --shape describe a raw source.\n"
      "\n"
      "From container to container, an array keeps its kind, chunks, codec, fill value and\n"
      "attributes, unless --dense, --chunked, --chunk, --codec or --as changes them. A slice\n"
      "keeps them too, in chunks that are at most as long as its axes. Arrays of other files\n"
      "become dense.\n"
      "Chunks of an array that keeps all this are copied as they are stored: they are compared "
      "with\n"
      "their checksums, but not decoded.\n"
      "A copy contains no free space and no old generations, so --replace compacts a container.\n"
      "It holds the writer's lock meanwhile, so that no commit of another process is lost.\n"
      "With -f, an existing target keeps its own form. It also keeps its attributes, except those\n"
      "that the source has too.\n"
      "Chunks are chosen anew if the number of axes changes. The command names every property\n"
      "that it cannot keep: other files than containers have neither attributes nor a fill value.\n"
      "What integers of NumPy's files stand for, times and texts, is kept in containers, .npy and\n"
      ".npz files.\n"
      "A chunked array gets other chunks in the way of `shale rechunk`, perhaps through a\n"
      "temporary file, if the memory budget does not hold the chunks that would be decoded again.\n"
      "\n"
      "Examples:\n"
      "  shale convert dem.npz survey.shale\n"
      "  shale convert dem.npz:elevation survey.shale:dem --codec auto\n"
      "  shale convert net.t7 net.shale\n"
      "  shale convert 'survey.shale:dem[::2, ::2]' small.npy --as float32\n"
      "  shale convert survey.shale --replace\n"
      "  shale convert samples.raw survey.shale:samples --dtype int16 --shape 1000,4096");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
