// shale doctor: what Shale finds on this machine, and what of it makes it slow or fail.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "command_line.hpp"
#include "doctor/diagnosis.hpp"
#include "doctor/facts_json.hpp"
#include "shale/executor.hpp"
#include "table.hpp"
#include "units.hpp"

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
};

pool_trial try_default_pool(std::uint64_t budget_bytes) {
  constexpr std::uint64_t bytes = std::uint64_t{64} << 20;
  // Memory that another process may need more.
  if (budget_bytes < 2 * bytes) return {};
  return try_pool(executor::shared().pool(), bytes);
}

void reclaim(examination& found) {
  found.reclaimed_segments = reclaim_segments();
  for (const place_facts& place : found.places) {
    if (!place.leftovers) continue;
    for (leftover& gone : remove_leftovers(*place.leftovers))
      found.reclaimed_files.push_back(std::move(gone));
  }
  // Again, since paths may lie in one another.
  for (place_facts& place : found.places) place = look_at_place(place.path);
}

examination examine(const doctor_options& options) {
  examination found;
  for (const std::string& each : options.paths) found.places.push_back(look_at_place(each));
  if (options.gc) reclaim(found);
  found.machine = look_at_machine();
  found.segments = look_at_segments();
  found.pool = try_default_pool(found.machine.memory.budget_bytes);
  return found;
}

// What is shown together: checks, and a table behind them.
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

index_t count_of(const std::vector<section>& sections, verdict which) {
  index_t count = 0;
  for (const section& each : sections)
    count += std::count_if(each.checks.begin(), each.checks.end(),
                           [&](const check& one) { return one.found == which; });
  return count;
}

// ---- as text --------------------------------------------------------------------------------

std::size_t output_width() {
  constexpr std::size_t usual = 80;
  constexpr std::size_t most = 100;  // longer lines are hard to read
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return usual;
  return std::min<std::size_t>(size.ws_col, most);
}

void print_section(const section& part, std::size_t width) {
  constexpr std::size_t name_width = 15;
  print_data(printable(part.checks.front().topic) + '\n');
  for (const check& each : part.checks) {
    const std::string head =
        fmt::format("  {:<7}  {:<{}}  ", name(each.found), printable(each.name), name_width);
    const std::string indent(2 + 7 + 2 + name_width + 2, ' ');
    print_data(wrapped(head, printable(each.value), indent, width));
    if (!each.advice.empty()) print_data(wrapped(indent, printable(each.advice), indent, width));
    // On one line, however long, to be copied.
    if (!each.command.empty()) print_data(fmt::format("{}  {}\n", indent, printable(each.command)));
  }
  print_data((part.details.empty() ? "" : "\n" + part.details) + '\n');
}

std::string counted(index_t count, const char* what) {
  return fmt::format("{} {}{}", count == 0 ? "no" : fmt::format("{}", count), what,
                     count == 1 ? "" : "s");
}

void print_reclaimed(const examination& found) {
  for (const shared_segment& each : found.reclaimed_segments)
    print_data(
        fmt::format("reclaimed segment {}, {}\n", printable(each.name), format_bytes(each.bytes)));
  for (const leftover& each : found.reclaimed_files)
    print_data(fmt::format("removed {}, {}\n", printable(each.path), format_bytes(each.bytes)));
  if (found.reclaimed_segments.empty() && found.reclaimed_files.empty())
    print_data("nothing to reclaim\n");
}

void print(const examination& found, const std::vector<section>& sections, bool gc) {
  const std::size_t width = output_width();
  for (const section& each : sections) print_section(each, width);
  if (gc) print_reclaimed(found);
  print_data(fmt::format("{}, {}\n", counted(count_of(sections, verdict::problem), "problem"),
                         counted(count_of(sections, verdict::note), "note")));
}

// ---- as JSON --------------------------------------------------------------------------------

nlohmann::json to_json(const examination& found, const std::vector<section>& sections) {
  nlohmann::json checks = nlohmann::json::array();
  for (const section& part : sections)
    for (const check& each : part.checks)
      checks.push_back({{"topic", each.topic},
                        {"name", each.name},
                        {"verdict", name(each.found)},
                        {"value", each.value},
                        {"advice", each.advice},
                        {"command", each.command}});
  nlohmann::json places = nlohmann::json::array();
  for (const place_facts& each : found.places) places.push_back(facts_json(each));
  nlohmann::json segments = nlohmann::json::array();
  for (const shared_segment& each : found.reclaimed_segments) segments.push_back(facts_json(each));
  nlohmann::json files = nlohmann::json::array();
  for (const leftover& each : found.reclaimed_files) files.push_back(facts_json(each));
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
  return count_of(sections, verdict::problem) == 0 ? exit_yes : exit_differ;
}

}  // namespace

void add_doctor(command_line& line) {
  auto options = std::make_shared<doctor_options>();
  CLI::App* command = line.app.add_subcommand(
      "doctor", "Show what makes Shale slow or fail here; exit code 1 if something fails");
  command->add_option("paths", options->paths, "Files and folders to look at as well")
      ->type_name("PATH");
  command->add_flag("--gc", options->gc, "Reclaim what killed processes left");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Each line is a fact and a verdict: ok, note (slower, or less, than it could be), problem\n"
      "(something fails, or is about to), unknown (the system does not say).\n"
      "\n"
      "--gc removes shared memory that no living process owns and, beside the paths, what killed\n"
      "writers left and no process has open. It says what it took away.\n"
      "\n"
      "Examples:\n"
      "  shale doctor\n"
      "  shale doctor /data survey.shale    and what Shale can do with files there\n"
      "  shale doctor --gc /data            reclaims what killed processes left\n"
      "  shale doctor --json | jq '.checks[] | select(.verdict == \"problem\")'");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
