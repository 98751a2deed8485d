// shale verify: checks every page and every byte of the newest generation of a container.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "commands/report.hpp"
#include "commands/several_files.hpp"
#include "data/array_facts.hpp"
#include "notation/address.hpp"
#include "shale/container.hpp"
#include "terminal/output.hpp"
#include "terminal/table.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct verify_options {
  std::vector<std::string> files;
  bool json = false;
  engine_options engine;
};

// Damage that prevents the container from being opened is a finding, not a failure of the command.
verification verified(const std::string& file) {
  try {
    return container::open(file, open_mode::salvage).verify();
  } catch (const error& failure) {
    if (failure.code() != errc::corrupt) throw;
    verification result;
    result.findings.push_back({failure.code(), failure.what()});
    return result;
  }
}

nlohmann::json to_json(const std::string& file, const verification& found, double seconds) {
  nlohmann::json findings = nlohmann::json::array();
  for (const finding& damage : found.findings)
    findings.push_back({{"code", name(damage.code)}, {"text", damage.text}});
  nlohmann::json unchecked = nlohmann::json::array();
  for (const unchecked_array& array : found.unchecked)
    unchecked.push_back({{"name", array.name},
                         {"code", name(array.problem.code())},
                         {"problem", array.problem.what()}});
  return {{"file", file},
          {"sound", found.findings.empty()},
          {"generation", found.generation},
          {"pages", found.pages},
          {"arrays", found.arrays},
          {"chunks", found.chunks},
          {"data_bytes", found.data_bytes},
          {"space",
           {{"live_bytes", found.live_bytes},
            {"freed_bytes", found.freed_bytes},
            {"free_bytes", found.free_bytes},
            {"file_bytes", file_bytes(file)}}},
          {"seconds", seconds},
          {"findings", std::move(findings)},
          {"unchecked", std::move(unchecked)}};
}

void print(const std::string& file, const verification& found) {
  facts list;
  list.add("file", file);
  list.add("generation", fmt::format("{}", found.generation));
  list.add("pages", format_count(found.pages));
  list.add("arrays", format_count(found.arrays));
  list.add("chunks", format_count(found.chunks));
  list.add("data", format_bytes(found.data_bytes));
  print_data(list.to_string());
  const std::uint64_t total = found.live_bytes + found.freed_bytes + found.free_bytes;
  if (total > 0) {
    table space({{"space"},
                 {"bytes", alignment::right},
                 {"", alignment::right},
                 {"share", alignment::right}});
    const auto add = [&](const char* use, std::uint64_t bytes) {
      space.add({use, format_count(bytes), format_bytes(bytes), format_share(bytes, total)});
    };
    add("live", found.live_bytes);
    add("freed", found.freed_bytes);
    add("free", found.free_bytes);
    add("file", total);
    print_data(fmt::format("\n{}", space.to_string()));
  }
  print_data("\n");
  const std::size_t later = found.unchecked.size();
  if (later > 0)
    print_data(
        fmt::format("not checked: {} array{} of a later version\n", later, later == 1 ? "" : "s"));
  if (found.findings.empty()) {
    print_data(later == 0 ? "sound\n" : "sound otherwise\n");
    return;
  }
  print_data(
      fmt::format("{} finding{}\n", found.findings.size(), found.findings.size() == 1 ? "" : "s"));
  for (const finding& damage : found.findings)
    print_data(fmt::format("  [{}] {}\n", name(damage.code), printable(damage.text)));
}

// What was found in a file, and how long that took.
struct checked_file {
  std::string file;
  verification found;
  double seconds = 0;

  int code() const {
    if (!found.findings.empty()) return exit_found_problem;
    return found.unchecked.empty() ? exit_success : exit_unsupported;
  }
};

checked_file check_file(const std::string& text, const verify_options& options) {
  const address source = parse_address(text);
  if (source.format != file_format::shale || !source.array.empty())
    throw error(errc::invalid_argument, "verify: only whole .shale containers can be verified",
                {"got " + text});
  engine work(options.engine, "verify");
  checked_file checked{.file = source.file, .found = verified(source.file)};
  checked.seconds = work.finish().seconds;
  for (const unchecked_array& array : checked.found.unchecked)
    note(fmt::format("shale: {}", array.problem.what()));
  return checked;
}

int run(const verify_options& options) {
  if (options.json)
    return print_json_of(options.files, "file", [&](const std::string& text) {
      const checked_file checked = check_file(text, options);
      return described_file{to_json(checked.file, checked.found, checked.seconds), checked.code()};
    });
  separator between(options.files.size() > 1);
  return for_each_file(options.files, [&](const std::string& text) {
    const checked_file checked = check_file(text, options);
    const std::uint64_t bytes = checked.found.data_bytes;
    between.before_list(text);
    print(checked.file, checked.found);
    if (!options.engine.quiet)
      note(fmt::format("{} in {}: {}", format_bytes(bytes), format_seconds(checked.seconds),
                       format_rate(bytes, checked.seconds)));
    return checked.code();
  });
}

}  // namespace

void add_verify(command_line& line) {
  auto options = std::make_shared<verify_options>();
  CLI::App* command =
      line.app.add_subcommand("verify", "Check every page and byte; exit code 1 if damaged");
  add_texts(*command, "file", options->files,
            "FILE.shale …; with several, each is a heading above what was found")
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print JSON");
  options->engine.add_to(*command);
  command->footer(
      "The space table is an exact partition of the file. Live bytes belong to the newest\n"
      "generation. Freed bytes belonged to older generations: later writes reuse them after the\n"
      "last reader of those generations has finished. The generation before the newest is kept\n"
      "for one more write, in case of a crash. The next write can use free bytes.\n"
      "An array of a later version cannot be checked. That is no damage: a message names it,\n"
      "and the exit code is 5 if nothing else was found.\n"
      "With several files, the exit code is that of the worst: 1 if any is damaged.\n"
      "\n"
      "Examples:\n"
      "  shale verify survey.shale && echo sound\n"
      "  shale verify -q *.shale\n"
      "  shale verify survey.shale --json | jq .findings");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
