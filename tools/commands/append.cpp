// shale append: appends elements to an array of a container.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "data/array_form.hpp"
#include "data/container_change.hpp"
#include "data/input_files.hpp"
#include "data/json_value.hpp"
#include "data/logical.hpp"
#include "data/name_advice.hpp"
#include "notation/address.hpp"
#include "notation/shape_text.hpp"
#include "shale/container.hpp"
#include "shale/error.hpp"
#include "shale/functions.hpp"
#include "terminal/output.hpp"

namespace shale::tools {

namespace {

struct append_options {
  std::string target;
  std::string source;
  std::string type;
  index_t axis = 0;
  bool json = false;
  engine_options engine;
};

// The dtype of the array must hold the new elements, unless the user has chosen it for them. Floats
// may be rounded, because the user chose the dtype of the array.
void require_taken(const array& present, dtype type) {
  if (can_take(present.dtype(), type)) return;
  throw error(
      errc::invalid_argument,
      fmt::format("the array holds {}, the new elements are {}", name(present.dtype()), name(type)),
      {"that dtype cannot represent all of them",
       fmt::format("--dtype {} converts them", name(present.dtype()))});
}

int run(const append_options& options) {
  const address target = parse_array_address(options.target);
  const address source = parse_address(options.source);
  engine_options checked = options.engine;
  checked.check = true;  // a copy of damaged bytes would get valid checksums
  engine work(checked, "append");
  input_files files(open_mode::read, checked.checksums());
  const operand read = files.open(source);
  const expr values =
      options.type.empty() ? read.values : astype(read.values, parse_dtype_option(options.type));
  dims shape;
  dtype type = values.dtype();
  const std::uint64_t generation = change_existing_container(target.file, [&](transaction& change) {
    explaining_names(target.file, target.array, [&] {
      if (const auto present = change.find(target.array)) {
        require_same_logical_dtype(*present, read.logical);
        require_taken(*present, values.dtype());
      }
      const writable_array longer = change.append(target.array, values, options.axis);
      shape = longer.shape();
      type = longer.dtype();
    });
  });
  const report cost = work.finish();
  if (options.json) {
    print_report({{"file", target.file},
                  {"array", target.array},
                  {"address", target.label()},
                  {"dtype", name(type)},
                  {"shape", to_json(shape)},
                  {"generation", generation},
                  {"cost", cost.to_json()}});
  } else if (!options.engine.quiet) {
    note(fmt::format("{}: {} {} in generation {}", target.label(), name(type), to_string(shape),
                     generation));
    note(cost.to_string());
  }
  return exit_success;
}

}  // namespace

void add_append(command_line& line) {
  auto options = std::make_shared<append_options>();
  CLI::App* command = line.app.add_subcommand("append", "Append elements to an array");
  command->add_option("target", options->target, "FILE.shale:ARRAY")->required();
  command->add_option("source", options->source, address_help)->required();
  command->add_option("--axis", options->axis, "The axis that becomes longer [0]; -1 is the last")
      ->type_name("N");
  command->add_option("--dtype", options->type, "Convert the new elements first [as they are]")
      ->type_name("DTYPE");
  command->add_flag("--json", options->json, "Print the new shape as JSON");
  options->engine.add_to(*command);
  command->footer(
      "The source needs the rank of the array, and its extents along all other axes. The array's\n"
      "dtype must be able to hold its elements; floating-point dtypes round them. Times need its\n"
      "unit, and texts its length.\n"
      "Processes that read the array see its old shape until they open it again. The cost is that\n"
      "of the new elements and of the chunks at the old end, not of the array; but a dense array\n"
      "that grows along another axis than the first is copied.\n"
      "\n"
      "Examples:\n"
      "  shale append log.shale:plate step.npy\n"
      "  shale append log.shale:plate 'step.npy[None]'\n"
      "  shale append survey.shale:dem east.npz:dem --axis 1");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
