// shale eval: evaluates an expression over arrays and writes the result, or prints it.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "commands/report.hpp"
#include "data/disk_speed.hpp"
#include "data/input_files.hpp"
#include "data/json_value.hpp"
#include "data/preview.hpp"
#include "data/target.hpp"
#include "language/functions/functions.hpp"
#include "language/parsing/expression.hpp"
#include "notation/address.hpp"
#include "notation/shape_text.hpp"
#include "notation/text_error.hpp"
#include "terminal/output.hpp"
#include "terminal/stopwatch.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct eval_options {
  std::string expression;
  std::vector<std::string> lets;
  std::string output;
  std::string type;
  bool plan = false;
  bool functions = false;
  bool json = false;
  bool disk_speed = false;
  target_options writing;
  engine_options engine;
};

// The operands of the command by name, and the files that they come from.
struct operands {
  input_files files;
  bindings arrays;
  std::set<std::string> paths;
  std::vector<std::string> not_kept;  // a line for each operand that stands for times or texts
};

// The value of the text after "NAME=": an address, or a number or tuple as expressions write it.
value open_operand(std::string_view text, const std::string& operand_name, operands& bound) {
  try {
    const operand found = bound.files.open(parse_address(text));
    bound.paths.insert(found.location.file);
    if (found.logical)
      bound.not_kept.push_back(fmt::format("logical dtype {} of {}: expressions compute with {}",
                                           name(*found.logical, found.values.shape()), operand_name,
                                           name(found.values.dtype())));
    return found.values;
  } catch (const error& failure) {
    if (failure.code() != errc::invalid_argument || dynamic_cast<const located_error*>(&failure))
      throw;
    try {
      return parse_value(text, {});
    } catch (const error&) {
      // The text is neither, and the user probably meant an address.
    }
    throw;
  }
}

void bind(const std::string& let, operands& bound) {
  const std::size_t equals = std::min(let.find('='), let.size());
  const std::string name = let.substr(0, equals);
  if (equals == let.size())
    throw_at("--let", "expected NAME=FILE:ARRAY or NAME=NUMBER", let, equals);
  if (!is_bindable(name))
    throw_at("--let", fmt::format("'{}' cannot be a name in expressions", name), let, 0);
  if (bound.arrays.contains(name))
    throw_at("--let", fmt::format("'{}' is bound already", name), let, 0);
  bound.arrays.emplace(name, open_operand(std::string_view(let).substr(equals + 1), name, bound));
}

std::string synonyms_text(std::string_view name) {
  const std::vector<std::string_view> names = synonyms_of(name);
  return names.empty() ? std::string() : fmt::format("   also called {}", fmt::join(names, ", "));
}

void print_functions(bool as_json) {
  if (as_json) {
    nlohmann::json list = nlohmann::json::array();
    for (const function& item : functions())
      list.push_back({{"name", item.name},
                      {"signature", item.signature},
                      {"method", item.method},
                      {"synonyms", synonyms_of(item.name)}});
    print_json(list);
    return;
  }
  for (const function& item : functions())
    print_data(fmt::format("{}{}{}\n", item.signature, item.method ? "   also a method" : "",
                           synonyms_text(item.name)));
}

nlohmann::json to_json(const evaluation_plan& plan) {
  return {{"passes", plan.passes},
          {"bytes_read", plan.bytes_read},
          {"tiles_decoded", plan.tiles_decoded},
          {"bytes_written", plan.bytes_written},
          {"scratch_bytes_per_thread", plan.scratch_bytes_per_thread},
          {"staged_bytes_max", plan.staged_bytes_max},
          {"instructions", plan.instructions},
          {"streams", plan.streams},
          {"copies", plan.copies}};
}

void print_plan(const expr& value, const eval_options& options) {
  const evaluation_plan plan = explain(value);
  if (options.json) {
    print_json(to_json(plan));
    return;
  }
  print_data(plan.text);
  if (!plan.text.ends_with('\n')) print_data("\n");
}

// Where the result goes: a file, an array, or a part of an array of a container.
address parse_output(const std::string& text) {
  address output = parse_address(text);
  return output.index && output.format == file_format::shale ? output : parse_whole_address(text);
}

// The result of an evaluation as text and as JSON. Both name what it does not keep.
struct outcome {
  nlohmann::json json;
  std::string data;  ///< for stdout
  std::string note;  ///< for stderr
};

outcome compute(const expr& value, const std::vector<std::string>& not_kept,
                const std::optional<address>& output, const std::optional<dtype>& type,
                const eval_options& options) {
  outcome result;
  result.json = {{"dtype", name(value.dtype())}, {"shape", tools::to_json(value.shape())}};
  if (output) {
    written done = write_target(*output, {value, type}, options.writing);
    done.not_kept.insert(done.not_kept.end(), not_kept.begin(), not_kept.end());
    result.json["dtype"] = name(done.type);
    result.json["output"] = output->text;
    result.json["stored_bytes"] = done.stored_bytes;
    if (done.generation) result.json["generation"] = *done.generation;
    add_details(result.json, done);
    result.note = fmt::format(
        "{}: {} {}, {} stored{}", output->index ? output->text : output->label(), name(done.type),
        to_string(value.shape()), format_bytes(done.stored_bytes), detail_lines(done));
    return result;
  }
  if (value.rank() == 0) {
    const scalar element = eval(value).item();
    result.json["value"] = tools::to_json(element);
    result.data = element.to_string();
  } else {
    result.data = preview(value, {});
  }
  result.json["not_kept"] = not_kept;
  for (const std::string& property : not_kept)
    result.note += fmt::format("{}not kept: {}", result.note.empty() ? "" : "\n", property);
  return result;
}

// Drops the page cache after each measurement, so that the evaluation reads from the device too.
std::vector<disk_speed> measure_disks(const std::set<std::string>& paths) {
  std::vector<disk_speed> disks;
  for (const std::string& path : paths) {
    disks.push_back(measure_disk(path));
    drop_page_cache(path);
  }
  return disks;
}

int run(const eval_options& options) {
  if (options.functions) {
    print_functions(options.json);
    return exit_success;
  }
  if (options.expression.empty())
    throw error(errc::invalid_argument, "eval: an expression is missing",
                {"as in: shale eval 'mean(a)' --let a=survey.shale:dem"});
  const std::optional<address> output =
      options.output.empty() ? std::nullopt : std::optional(parse_output(options.output));
  const std::optional<dtype> type =
      options.type.empty() ? std::nullopt : std::optional(parse_dtype_option(options.type));
  if (output) require_room_for(*output, options.writing);
  else if (options.writing.force || options.writing.form.dense ||
           options.writing.form.wants_chunks())
    throw error(errc::invalid_argument,
                "eval: -f, --dense, --chunked, --chunk and --codec are for -o");
  engine work(options.engine, "eval");
  operands bound;
  bound.files = input_files(open_mode::read, options.engine.checksums());
  for (const std::string& let : options.lets) bind(let, bound);
  std::vector<disk_speed> disks;
  if (options.disk_speed && !options.plan) disks = measure_disks(bound.paths);
  const stopwatch clock;
  // This already evaluates functions that sort, functions of LAPACK, and masks used as indices.
  expr value = parse_expression(options.expression, bound.arrays);
  if (type) value = astype(value, *type);
  if (options.plan) {
    print_plan(value, options);
    return exit_success;
  }
  outcome result = compute(value, bound.not_kept, output, type, options);
  report cost = work.finish();
  cost.seconds = clock.seconds();
  cost.disks = std::move(disks);
  if (options.json) {
    result.json["cost"] = cost.to_json();
    if (output) print_report(result.json);
    else print_json(result.json);
    return exit_success;
  }
  if (!result.data.empty()) print_data(fmt::format("{}\n", result.data));
  if (options.engine.quiet) return exit_success;
  if (!result.note.empty()) note(result.note);
  note(cost.to_string());
  return exit_success;
}

}  // namespace

void add_eval(command_line& line) {
  auto options = std::make_shared<eval_options>();
  CLI::App* command = line.app.add_subcommand("eval", "Compute an expression over arrays");
  command->add_option("expression", options->expression, "NumPy-like; see below");
  add_texts(*command, "--let", options->lets,
            "Bind a name to FILE[:ARRAY][[SLICE]], or to a number")
      ->type_name("NAME=SOURCE");
  command
      ->add_option("-o,--output", options->output,
                   "FILE.shale:ARRAY[[SLICE]], FILE.npy, FILE.npz:NAME, FILE.t7 or FILE.raw "
                   "[print]")
      ->type_name("TARGET");
  command->add_option("--dtype", options->type, "Convert the result [as computed]")
      ->type_name("DTYPE");
  command->add_flag(
      "--plan", options->plan,
      "Print what would be read and written, and stop. Sorts, counts, masks as indices,\n"
      "linear algebra and arrays given as numbers are computed before, and not counted");
  command->add_flag("--functions", options->functions, "List the functions, and stop");
  command->add_flag("--json", options->json, "Print result (if scalar) and costs as JSON");
  command->add_flag("--disk-speed", options->disk_speed,
                    "Measure first how fast the disk reads the inputs, then start cold");
  options->writing.add_to(*command);
  options->engine.add_to(*command);
  options->engine.add_check_to(*command);
  command->footer(
      "Python's operators and NumPy's names: a[1:-1, None, ::-1], sqrt(a*a + b*b), a @ b,\n"
      "where((a > 0) & (a < 9), a, 0), mean(a, axis=0, keepdims=True), a.T, a.shape[0],\n"
      "astype(a, float32). Parts may be named first: 'd = a[1:] - a[:-1]; mean(d*d)'. Numbers\n"
      "adapt to the dtype of the arrays that they are combined with.\n"
      "Write '--' before an expression that starts with '-'. An output with a slice changes that\n"
      "part of an array that exists: the result is broadcast to its shape.\n"
      "Dates and texts are computed with as the integers that they are stored as; a message\n"
      "names the operands of which the result does not keep that meaning.\n"
      "\n"
      "Examples:\n"
      "  shale eval 'mean(a[::2])' --let a=survey.shale:dem\n"
      "  shale eval '(a - mean(a)) / std(a)' --let a=big.npy -o big.shale:z --mem 256MiB\n"
      "  shale eval 'tile(a, (9, 9))' --let a=dem.npy -o m.shale:m --chunk 128,2048 \\\n"
      "      --codec auto\n"
      "  shale eval 'a * 2' --let a=row.npy -o 'survey.shale:dem[10:20, ::2]'\n"
      "  shale eval 'sum(a * b, axis=1)' --let a=x.npz:a --let b=x.npz:b --plan");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
