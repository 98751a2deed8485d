// shale create: creates an array in a container.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "data/array_form.hpp"
#include "data/container_change.hpp"
#include "data/json_value.hpp"
#include "data/target.hpp"
#include "language/parsing/expression.hpp"
#include "notation/address.hpp"
#include "notation/attribute.hpp"
#include "notation/element_type.hpp"
#include "notation/shape_text.hpp"
#include "shale/container.hpp"
#include "shale/functions.hpp"
#include "shale/logical_arrays.hpp"
#include "terminal/output.hpp"

namespace shale::tools {

namespace {

struct create_options {
  std::string target;
  std::string shape;
  std::string type = "float32";
  std::string fill;
  std::vector<std::string> attributes;
  bool force = false;
  bool json = false;
  form_options form;
  engine_options engine;
};

// Parses a number as expressions write it, such as -1, 0x10, nan, 2**20 or -pi/2.
scalar parse_number(std::string_view text) {
  // Plain integers are parsed here, because expressions have no unsigned integers of 64 bits.
  std::int64_t whole = 0;
  std::uint64_t natural = 0;
  const char* const end = text.data() + text.size();
  if (const auto [rest, failure] = std::from_chars(text.data(), end, whole);
      failure == std::errc() && rest == end)
    return whole;
  if (const auto [rest, failure] = std::from_chars(text.data(), end, natural);
      failure == std::errc() && rest == end)
    return natural;
  const expr value = parse_expression(text, {});
  if (value.rank() != 0) throw error(errc::invalid_argument, "--fill takes one number");
  return eval(value).item();
}

// The value of --fill, which is a number, or for times NaT or a count of their unit.
scalar parse_fill(const std::string& text, const element_type& type) {
  if (type.logical && has_character_axis(*type.logical))
    throw error(errc::invalid_argument, "--fill is for numbers and times",
                {fmt::format("got {} for texts, which are empty at first", text)});
  if (type.logical && text == "NaT") return scalar(not_a_time);
  const scalar fill = parse_number(text);
  if (!fill.fits(type.storage))
    throw error(errc::invalid_argument,
                fmt::format("{} cannot represent --fill {}", name(type.storage), fill.to_string()));
  return fill;
}

int run(const create_options& options) {
  const address target = parse_array_address(options.target);
  engine work(options.engine, "create");
  const element_type elements = parse_element_type(options.type);
  const dtype type = elements.storage;
  const dims shown_shape = parse_shape(options.shape);
  const dims shape = elements.storage_shape(shown_shape);
  const std::string type_name(elements.logical ? name(*elements.logical, shape) : name(type));
  if (options.form.chooses_codec())
    throw error(errc::invalid_argument, "--codec auto needs elements to try codecs on",
                {"`shale create` makes an array without elements; convert and eval have some"});
  array_spec spec = form_for(type, shape, std::nullopt, options.form).spec;
  std::optional<scalar> fill;
  if (!options.fill.empty()) {
    fill = parse_fill(options.fill, elements);
    if (spec.kind == array_kind::chunked) spec.fill_value = *fill;
  }
  const std::vector<attribute> attributes = parse_attributes(options.attributes);
  const std::uint64_t generation = change_container(target.file, [&](transaction& change) {
    const bool replaces = change.find(target.array).has_value();
    if (replaces && !options.force) throw_exists(target.label());
    const writable_array made =
        replaces ? change.create_or_replace(target.array, spec) : change.create(target.array, spec);
    // Chunks that are not written read as the fill value. A dense array must store it.
    const bool is_zeros = fill && *fill == scalar(0) && !std::signbit(fill->as<double>());
    if (fill && spec.kind == array_kind::dense && !is_zeros) made.write(full(shape, *fill, type));
    if (elements.logical) set_logical_dtype(change, target.array, *elements.logical);
    for (const auto& [key, value] : attributes) change.set_attribute(target.array, key, value);
  });
  if (options.json) {
    nlohmann::json report = {{"file", target.file},       {"array", target.array},
                             {"address", target.label()}, {"dtype", name(type)},
                             {"shape", to_json(shape)},   {"generation", generation}};
    if (elements.logical) {
      report["logical_dtype"] = type_name;
      report["logical_shape"] = to_json(shown_shape);
    }
    print_report(report);
  } else if (!options.engine.quiet) {
    note(fmt::format("{}: {} {} in generation {}", target.label(), type_name,
                     to_string(shown_shape), generation));
  }
  return exit_success;
}

}  // namespace

void add_create(command_line& line) {
  auto options = std::make_shared<create_options>();
  CLI::App* command = line.app.add_subcommand("create", "Create an array in a container");
  command->add_option("target", options->target, "FILE.shale:ARRAY")->required();
  command->add_option("--shape", options->shape, "Extents, as in 344,403; () for a single element")
      ->required();
  command
      ->add_option("--dtype", options->type,
                   "Element type, also datetime64[UNIT], timedelta64[UNIT], S10 or U10 [float32]")
      ->type_name("DTYPE");
  command
      ->add_option("--fill", options->fill,
                   "Value of every element; of a time, a count of its unit or NaT [0]")
      ->type_name("NUMBER");
  add_texts(*command, "--attribute", options->attributes,
            "An attribute to set, as `shale set` does")
      ->type_name("KEY=VALUE");
  command->add_flag("-f,--force", options->force, "Replace an existing array");
  command->add_flag("--json", options->json, "Print what was created as JSON");
  options->form.add_to(*command);
  options->engine.add_to(*command);
  command->footer(
      "Examples:\n"
      "  shale create big.shale:a --shape 32768,32768\n"
      "  shale create big.shale:b --shape 32768,32768 --chunked --fill nan\n"
      "  shale create big.shale:c --shape 1000,4096 --dtype uint16 --chunk 100,4096 \\\n"
      "      --codec delta,shuffle,zstd:3 --attribute units=m\n"
      "  shale create big.shale:when --shape 1000 --dtype 'datetime64[s]' --fill NaT");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
