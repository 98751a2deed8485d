// shale stats: computes count, extrema and moments in one pass.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "commands/report.hpp"
#include "commands/several_files.hpp"
#include "data/disk_speed.hpp"
#include "data/input_files.hpp"
#include "data/json_value.hpp"
#include "data/logical.hpp"
#include "data/raw_options.hpp"
#include "notation/address.hpp"
#include "shale/logical_dtype.hpp"
#include "terminal/output.hpp"
#include "terminal/stopwatch.hpp"
#include "terminal/table.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct stats_options {
  std::vector<std::string> sources;
  raw_options raw;
  bool json = false;
  bool disk_speed = false;
  engine_options engine;
};

struct statistics {
  std::uint64_t count = 0;          ///< all elements, with the missing ones
  std::uint64_t missing_count = 0;  ///< NaN, or NaT (not a time)
  // These describe the other elements. They are empty if there are no such elements.
  std::optional<scalar> min, max, mean, std;
};

// The missing elements. They are replaced by `above` to find the minimum, and by `below` to find
// the maximum. No element lies above `above` or below `below`.
struct gaps {
  expr missing;
  scalar above;
  scalar below;
};

std::optional<gaps> gaps_in(const expr& values, const std::optional<logical_dtype>& logical) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (is_inexact(values.dtype())) return gaps{isnan(values), infinity, -infinity};
  const std::optional<expr> no_times = missing_times(logical, values);
  if (!no_times) return std::nullopt;
  return gaps{*no_times, std::numeric_limits<std::int64_t>::max(), not_a_time};
}

// A NaN makes every other statistic NaN, and NaT is the smallest integer. Therefore these are
// computed again without them, which takes three passes. The common case takes one pass.
void leave_gaps_out(statistics& result, const expr& values, const expr& wide, const gaps& holes) {
  const std::uint64_t valid = result.count - result.missing_count;
  result.min = result.max = result.mean = result.std = std::nullopt;
  if (valid == 0) return;
  const expr& missing = holes.missing;
  const expr mean = sum(where(missing, expr(0.0), wide)) / static_cast<double>(valid);
  const expr spread =
      sqrt(sum(where(missing, expr(0.0), square(wide - mean))) / static_cast<double>(valid));
  const std::array<expr, 4> wanted{min(where(missing, expr(holes.above), values)),
                                   max(where(missing, expr(holes.below), values)), mean, spread};
  const std::vector<tensor> found = eval_all(wanted);
  result.min = found[0].item();
  result.max = found[1].item();
  result.mean = found[2].item();
  result.std = found[3].item();
}

statistics compute(expr values, const std::optional<logical_dtype>& logical) {
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
  const std::optional<gaps> holes = gaps_in(values, logical);
  if (holes) wanted.push_back(count_nonzero(holes->missing));
  const std::vector<tensor> found = eval_all(wanted);
  result.min = found[0].item();
  result.max = found[1].item();
  result.mean = found[2].item();
  result.std = found[3].item();
  if (holes) result.missing_count = found[4].item().as<std::uint64_t>();
  if (result.missing_count > 0) leave_gaps_out(result, values, wide, *holes);
  return result;
}

// The statistics of one source, with what they cost.
struct measurement {
  std::string source;
  shale::dtype type = shale::dtype::float32;
  dims shape;
  std::optional<logical_dtype> logical;
  statistics found;
  report cost;
};

measurement measure(const std::string& text, const stats_options& options) {
  engine work(options.engine, "stats");
  input_files files(open_mode::read, options.engine.checksums());
  const operand source = files.open(with_raw_options(parse_address(text), options.raw));
  std::vector<disk_speed> disks;
  if (options.disk_speed) {
    // After the drop, the pass below also reads from the device.
    disks.push_back(measure_disk(source.location.file));
    drop_page_cache(source.location.file);
  }
  const stopwatch clock;
  const statistics found = compute(source.values, source.logical);
  report cost = work.finish();
  cost.seconds = clock.seconds();
  cost.disks = std::move(disks);
  return {.source = source.location.text,
          .type = source.values.dtype(),
          .shape = source.values.shape(),
          .logical = source.logical,
          .found = found,
          .cost = std::move(cost)};
}

nlohmann::json to_json(const std::optional<scalar>& value) {
  return value ? tools::to_json(*value) : nlohmann::json(nullptr);
}

std::string to_text(const std::optional<scalar>& value) { return value ? value->to_string() : "-"; }

bool has_times(const measurement& measured) {
  return measured.logical && !has_character_axis(*measured.logical);
}

// An extremum, which is an element: a date is shown in ISO 8601.
nlohmann::json extremum_json(const measurement& measured, const std::optional<scalar>& value) {
  if (!value || !measured.logical || measured.logical->kind != logical_kind::datetime)
    return to_json(value);
  return time_text(*measured.logical, value->as<std::int64_t>());
}

std::string extremum_text(const measurement& measured, const std::optional<scalar>& value) {
  if (!value || !has_times(measured)) return to_text(value);
  return time_text(*measured.logical, value->as<std::int64_t>());
}

nlohmann::json to_json(const measurement& measured) {
  const statistics& found = measured.found;
  nlohmann::json json{{"source", measured.source},
                      {"dtype", name(measured.type)},
                      {"shape", tools::to_json(measured.shape)},
                      {"count", found.count},
                      {"nan_count", found.missing_count},
                      {"min", extremum_json(measured, found.min)},
                      {"max", extremum_json(measured, found.max)},
                      {"mean", to_json(found.mean)},
                      {"std", to_json(found.std)},
                      {"cost", measured.cost.to_json()}};
  if (measured.logical) json["logical_dtype"] = name(*measured.logical, measured.shape);
  return json;
}

void print(const measurement& measured) {
  const statistics& found = measured.found;
  facts list;
  if (measured.logical)
    list.add("dtype", fmt::format("{}; {}", name(*measured.logical, measured.shape),
                                  has_times(measured) ? "mean and std are counts of its unit"
                                                      : "these are the numbers of its characters"));
  list.add("count", format_count(found.count));
  const char* const gap = has_times(measured) ? "nat" : "nan";
  if (found.missing_count > 0)
    list.add(gap, fmt::format("{} (left out below)", format_count(found.missing_count)));
  else if (has_times(measured) || is_inexact(measured.type)) list.add(gap, "0");
  list.add("min", extremum_text(measured, found.min));
  list.add("max", extremum_text(measured, found.max));
  list.add("mean", to_text(found.mean));
  list.add("std", to_text(found.std));
  print_data(list.to_string());
}

int run(const stats_options& options) {
  if (options.json)
    return print_json_of(options.sources, "source", [&](const std::string& text) {
      return described_file{to_json(measure(text, options)), exit_success};
    });
  separator between(options.sources.size() > 1);
  return for_each_file(options.sources, [&](const std::string& text) {
    const measurement measured = measure(text, options);
    between.before_list(text);
    print(measured);
    if (!options.engine.quiet) note(measured.cost.to_string());
    return exit_success;
  });
}

}  // namespace

void add_stats(command_line& line) {
  auto options = std::make_shared<stats_options>();
  CLI::App* command =
      line.app.add_subcommand("stats", "Count, min, max, mean and standard deviation, in one pass");
  add_texts(*command, "source", options->sources,
            std::string(address_help) + "; with several, each is a heading above its statistics")
      ->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--disk-speed", options->disk_speed,
                    "Measure first how fast the disk reads this file, then start cold");
  options->raw.add_to(*command);
  options->engine.add_to(*command);
  options->engine.add_check_to(*command);
  command->footer(
      "The standard deviation divides by the count. NaNs, and dates that are none (NaT), are\n"
      "counted, but the other statistics leave them out, which takes two more passes. The extrema\n"
      "of dates are dates. Of texts, the numbers of the characters are measured.\n"
      "\n"
      "Examples:\n"
      "  shale stats survey.shale:dem\n"
      "  shale stats before.npy after.npy\n"
      "  shale stats big.shale:mosaic --mem 256MiB --disk-speed\n"
      "  shale stats 'survey.shale:dem[:, 100:200]' --json | jq .mean");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
