// shale doctor: shows facts about this machine, with verdicts on what makes Shale slow or fail.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "commands/command_line.hpp"
#include "doctor/facts/facts_json.hpp"
#include "doctor/facts/leftovers.hpp"
#include "doctor/facts/machine.hpp"
#include "doctor/facts/place.hpp"
#include "doctor/facts/pool_trial.hpp"
#include "doctor/facts/segments.hpp"
#include "doctor/verdicts/diagnosis.hpp"
#include "doctor/verdicts/findings.hpp"
#include "shale/executor.hpp"
#include "terminal/output.hpp"
#include "terminal/table.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct doctor_options {
  std::vector<std::string> paths;
  bool gc = false;
  bool json = false;
};

// ---- examination ----------------------------------------------------------------------------

struct examination {
  machine_facts machine;
  pool_trial pool;
  segment_facts segments;
  std::vector<place_facts> places;
  std::vector<shared_segment> reclaimed_segments;
  std::vector<leftover> reclaimed_files;
  std::optional<error> reclaim_failure;  // of segments; files are still reclaimed
};

pool_trial try_default_pool(std::uint64_t budget_bytes) {
  constexpr std::uint64_t bytes = std::uint64_t{64} << 20;
  // With so little memory, another process may need it more.
  if (budget_bytes < 2 * bytes) return {};
  return try_pool(executor::shared().pool(), bytes);
}

void reclaim(examination& found) {
  try {
    found.reclaimed_segments = reclaim_segments();
  } catch (const error& failure) {
    found.reclaim_failure = failure;
  }
  for (const place_facts& place : found.places) {
    if (!place.leftovers) continue;
    for (leftover& gone : remove_leftovers(*place.leftovers))
      found.reclaimed_files.push_back(std::move(gone));
  }
  // Places are examined again, because one path may lie in another.
  for (place_facts& place : found.places) place = look_at_place(place.path);
}

examination examine(const doctor_options& options) {
  examination found;
  for (const std::string& path : options.paths) found.places.push_back(look_at_place(path));
  if (options.gc) reclaim(found);
  found.machine = look_at_machine();
  found.segments = look_at_segments();
  found.pool = try_default_pool(found.machine.memory.budget_bytes);
  return found;
}

// Checks that are shown together, and a table after them.
struct section {
  std::vector<check> checks;
  std::string details = {};
};

std::string pool_table(const pool_trial& trial) {
  if (trial.steps.empty()) return {};
  table steps({{"  pool"},
               {"live", alignment::right},
               {"peak", alignment::right},
               {"cached", alignment::right},
               {"idle", alignment::right},
               {"mapped", alignment::right},
               {"hits", alignment::right},
               {"misses", alignment::right}});
  for (const auto& [step, pool] : trial.steps)
    steps.add({"  " + step, format_bytes(pool.live_bytes), format_bytes(pool.peak_live_bytes),
               format_bytes(pool.cached_bytes), format_bytes(pool.idle_bytes),
               format_bytes(pool.mapped_bytes), format_count(pool.hits),
               format_count(pool.misses)});
  return steps.to_string();
}

std::vector<section> diagnose_all(const examination& found) {
  std::vector<section> all{{diagnose(found.machine.versions)},
                           {diagnose(found.machine.processor)},
                           {diagnose(found.machine.memory)},
                           {diagnose(found.machine.limits)},
                           {diagnose(found.machine.huge_pages, found.pool), pool_table(found.pool)},
                           {diagnose(found.segments)}};
  for (const place_facts& place : found.places) all.push_back({diagnose(place)});
  return all;
}

index_t count_of(const std::vector<section>& sections, verdict counted) {
  index_t count = 0;
  for (const section& part : sections)
    count += std::count_if(part.checks.begin(), part.checks.end(),
                           [&](const check& item) { return item.found == counted; });
  return count;
}

// ---- as text --------------------------------------------------------------------------------

std::size_t output_width() {
  constexpr std::size_t width_default = 80;
  constexpr std::size_t width_max = 100;  // longer lines are hard to read
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return width_default;
  return std::min<std::size_t>(size.ws_col, width_max);
}

void print_section(const section& part, std::size_t width) {
  constexpr std::size_t name_width = 15;
  print_data(printable(part.checks.front().topic) + '\n');
  for (const check& item : part.checks) {
    const std::string head =
        fmt::format("  {:<7}  {:<{}}  ", name(item.found), printable(item.name), name_width);
    const std::string indent(2 + 7 + 2 + name_width + 2, ' ');
    print_data(wrapped(head, printable(item.value), indent, width));
    if (!item.advice.empty()) print_data(wrapped(indent, printable(item.advice), indent, width));
    // A command is printed on one line of any length, so that users can copy it.
    if (!item.command.empty()) print_data(fmt::format("{}  {}\n", indent, printable(item.command)));
  }
  print_data((part.details.empty() ? "" : "\n" + part.details) + '\n');
}

std::string count_text(index_t count, const char* noun) {
  return fmt::format("{} {}{}", count == 0 ? "no" : fmt::format("{}", count), noun,
                     count == 1 ? "" : "s");
}

void print_reclaimed(const examination& found) {
  for (const shared_segment& segment : found.reclaimed_segments)
    print_data(fmt::format("reclaimed segment {}, {}\n", printable(segment.name),
                           format_bytes(segment.bytes)));
  for (const leftover& file : found.reclaimed_files)
    print_data(fmt::format("removed {}, {}\n", printable(file.path), format_bytes(file.bytes)));
  if (found.reclaimed_segments.empty() && found.reclaimed_files.empty() && !found.reclaim_failure)
    print_data("nothing to reclaim\n");
}

void print(const examination& found, const std::vector<section>& sections, bool gc) {
  const std::size_t width = output_width();
  for (const section& part : sections) print_section(part, width);
  if (gc) print_reclaimed(found);
  print_data(fmt::format("{}, {}\n", count_text(count_of(sections, verdict::problem), "problem"),
                         count_text(count_of(sections, verdict::note), "note")));
}

// ---- as JSON --------------------------------------------------------------------------------

nlohmann::json to_json(const examination& found, const std::vector<section>& sections) {
  nlohmann::json checks = nlohmann::json::array();
  for (const section& part : sections)
    for (const check& item : part.checks)
      checks.push_back({{"topic", item.topic},
                        {"name", item.name},
                        {"verdict", name(item.found)},
                        {"value", item.value},
                        {"advice", item.advice},
                        {"command", item.command}});
  nlohmann::json places = nlohmann::json::array();
  for (const place_facts& place : found.places) places.push_back(facts_json(place));
  nlohmann::json segments = nlohmann::json::array();
  for (const shared_segment& segment : found.reclaimed_segments)
    segments.push_back(facts_json(segment));
  nlohmann::json files = nlohmann::json::array();
  for (const leftover& file : found.reclaimed_files) files.push_back(facts_json(file));
  return {{"problems", count_of(sections, verdict::problem)},
          {"notes", count_of(sections, verdict::note)},
          {"checks", std::move(checks)},
          {"versions", facts_json(found.machine.versions)},
          {"processor", facts_json(found.machine.processor)},
          {"memory", facts_json(found.machine.memory)},
          {"limits", facts_json(found.machine.limits)},
          {"huge_pages", facts_json(found.machine.huge_pages)},
          {"pool", facts_json(found.pool)},
          {"shared_memory", facts_json(found.segments)},
          {"paths", std::move(places)},
          {"reclaimed", {{"segments", std::move(segments)}, {"files", std::move(files)}}}};
}

int run(const doctor_options& options) {
  const examination found = examine(options);
  const std::vector<section> sections = diagnose_all(found);
  if (options.json) print_json(to_json(found, sections));
  else print(found, sections, options.gc);
  if (found.reclaim_failure) {
    note_failure(*found.reclaim_failure);
    return code_of(*found.reclaim_failure);
  }
  return count_of(sections, verdict::problem) == 0 ? exit_success : exit_found_problem;
}

}  // namespace

void add_doctor(command_line& line) {
  auto options = std::make_shared<doctor_options>();
  CLI::App* command = line.app.add_subcommand(
      "doctor", "Show what makes Shale slow or fail here; exit code 1 if something fails");
  add_texts(*command, "paths", options->paths, "Files and folders to examine, too")
      ->type_name("PATH");
  command->add_flag("--gc", options->gc,
                    "Remove shared memory and files that killed processes left");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Each line is a verdict and a fact. The verdicts are ok, note (something is slower or\n"
      "smaller than it could be), problem (something fails, or will fail soon) and unknown (the\n"
      "system does not tell).\n"
      "\n"
      "--gc removes shared memory that no living process owns. It also removes files beside the\n"
      "paths that killed writers left and no process has open. It prints what it removes. A file\n"
      "whose name does not show that Shale made it is reported and stays, unless a path names the\n"
      "file that it was to become.\n"
      "\n"
      "Examples:\n"
      "  shale doctor\n"
      "  shale doctor /data survey.shale    also shows what works with files there\n"
      "  shale doctor --gc /data            removes what killed processes left\n"
      "  shale doctor --json | jq '.checks[] | select(.verdict == \"problem\")'");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
