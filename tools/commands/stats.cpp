// shale stats: computes count, extrema and moments in one pass.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "commands/report.hpp"
#include "data/disk_speed.hpp"
#include "data/input_files.hpp"
#include "data/json_value.hpp"
#include "data/raw_options.hpp"
#include "notation/address.hpp"
#include "terminal/output.hpp"
#include "terminal/stopwatch.hpp"
#include "terminal/table.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct stats_options {
  std::string source;
  raw_options raw;
  bool json = false;
  bool disk_speed = false;
  engine_options engine;
};

struct statistics {
  std::uint64_t count = 0;  ///< elements, NaNs included
  std::uint64_t nan_count = 0;
  // These describe the elements that are not NaN. They are empty if there are no such elements.
  std::optional<scalar> min, max, mean, std;
};

// A NaN makes every other statistic NaN. Therefore these are computed again without NaNs, which
// takes three passes. The common case without NaNs takes one pass.
void leave_nan_out(statistics& result, const expr& values, const expr& wide) {
  const std::uint64_t valid = result.count - result.nan_count;
  result.min = result.max = result.mean = result.std = std::nullopt;
  if (valid == 0) return;
  const double infinity = std::numeric_limits<double>::infinity();
  const expr missing = isnan(values);
  const expr mean = sum(where(missing, expr(0.0), wide)) / static_cast<double>(valid);
  const expr spread =
      sqrt(sum(where(missing, expr(0.0), square(wide - mean))) / static_cast<double>(valid));
  const std::array<expr, 4> wanted{min(where(missing, expr(infinity), values)),
                                   max(where(missing, expr(-infinity), values)), mean, spread};
  const std::vector<tensor> found = eval_all(wanted);
  result.min = found[0].item();
  result.max = found[1].item();
  result.mean = found[2].item();
  result.std = found[3].item();
}

statistics compute(expr values) {
  statistics result;
  result.count = static_cast<std::uint64_t>(values.size());
  if (result.count == 0) return result;
  if (!computes(values.dtype())) values = astype(values, dtype::float32);
  if (kind(values.dtype()) == dtype_kind::complex)
    throw error(errc::unsupported, "stats: complex numbers have no order",
                {"convert the part or the magnitude that matters first: shale eval 'abs(z)' …"});
  // The moments are computed in float64, because a float32 mean of 10^9 elements has a visible
  // rounding error.
  const expr wide = astype(values, dtype::float64);
  std::vector<expr> wanted{min(values), max(values), mean(wide), stddev(wide)};
  const bool counts_nan = is_inexact(values.dtype());
  if (counts_nan) wanted.push_back(count_nonzero(isnan(values)));
  const std::vector<tensor> found = eval_all(wanted);
  result.min = found[0].item();
  result.max = found[1].item();
  result.mean = found[2].item();
  result.std = found[3].item();
  if (counts_nan) result.nan_count = found[4].item().as<std::uint64_t>();
  if (result.nan_count > 0) leave_nan_out(result, values, wide);
  return result;
}

nlohmann::json to_json(const std::optional<scalar>& value) {
  return value ? tools::to_json(*value) : nlohmann::json(nullptr);
}

std::string to_text(const std::optional<scalar>& value) { return value ? value->to_string() : "-"; }

int run(const stats_options& options) {
  engine work(options.engine, "stats");
  input_files files(open_mode::read, options.engine.checksums());
  const operand source = files.open(with_raw_options(parse_address(options.source), options.raw));
  std::vector<disk_speed> disks;
  if (options.disk_speed) {
    // After the drop, the pass below also reads from the device.
    disks.push_back(measure_disk(source.location.file));
    drop_page_cache(source.location.file);
  }
  const stopwatch clock;
  const statistics found = compute(source.values);
  report cost = work.finish();
  cost.seconds = clock.seconds();
  cost.disks = std::move(disks);
  if (options.json) {
    const nlohmann::json json{{"source", source.location.text},
                              {"dtype", name(source.values.dtype())},
                              {"shape", tools::to_json(source.values.shape())},
                              {"count", found.count},
                              {"nan_count", found.nan_count},
                              {"min", to_json(found.min)},
                              {"max", to_json(found.max)},
                              {"mean", to_json(found.mean)},
                              {"std", to_json(found.std)},
                              {"cost", cost.to_json()}};
    print_json(json);
    return exit_success;
  }
  facts list;
  list.add("count", format_count(found.count));
  if (found.nan_count > 0)
    list.add("nan", fmt::format("{} (left out below)", format_count(found.nan_count)));
  else if (is_inexact(source.values.dtype())) list.add("nan", "0");
  list.add("min", to_text(found.min));
  list.add("max", to_text(found.max));
  list.add("mean", to_text(found.mean));
  list.add("std", to_text(found.std));
  print_data(list.to_string());
  if (!options.engine.quiet) note(cost.to_string());
  return exit_success;
}

}  // namespace

void add_stats(command_line& line) {
  auto options = std::make_shared<stats_options>();
  CLI::App* command =
      line.app.add_subcommand("stats", "Count, min, max, mean and standard deviation, in one pass");
  command->add_option("source", options->source, address_help)->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--disk-speed", options->disk_speed,
                    "Measure first how fast the disk reads this file, then start cold");
  options->raw.add_to(*command);
  options->engine.add_to(*command);
  options->engine.add_check_to(*command);
  command->footer(
      "The standard deviation divides by the count. NaNs are counted, but the other statistics\n"
      "leave them out, which takes two more passes.\n"
      "\n"
      "Examples:\n"
      "  shale stats survey.shale:dem\n"
      "  shale stats big.shale:mosaic --mem 256MiB --disk-speed\n"
      "  shale stats 'survey.shale:dem[:, 100:200]' --json | jq .mean");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
