// shale du: shows what takes the bytes of a container.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/command_line.hpp"
#include "notation/address.hpp"
#include "shale/container.hpp"
#include "terminal/output.hpp"
#include "terminal/table.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

struct du_options {
  std::string file;
  bool json = false;
};

std::uint64_t total_of(const array_space& array) { return array.data_bytes + array.index_bytes; }

nlohmann::json to_json(const std::string& file, const space_report& report) {
  nlohmann::json arrays = nlohmann::json::array();
  for (const array_space& array : report.arrays) {
    nlohmann::json facts{{"name", array.name},
                         {"address", file + ":" + name_in_address(array.name)}};
    if (array.problem) {
      facts["code"] = name(array.problem->code());
      facts["problem"] = array.problem->what();
    } else {
      facts["data_bytes"] = array.data_bytes;
      facts["index_bytes"] = array.index_bytes;
    }
    arrays.push_back(std::move(facts));
  }
  nlohmann::json oldest;
  if (report.oldest_read) oldest = *report.oldest_read;
  return {{"file", file},
          {"generation", report.generation},
          {"file_bytes", report.file_bytes},
          {"arrays", std::move(arrays)},
          {"unknown_bytes", report.unknown_bytes},
          {"metadata_bytes", report.metadata_bytes},
          {"held_by_readers_bytes", report.held_by_readers_bytes},
          {"oldest_read", std::move(oldest)},
          {"retained_bytes", report.retained_bytes},
          {"previous_bytes", report.previous_bytes},
          {"free_bytes", report.free_bytes}};
}

void print_arrays(const space_report& report) {
  std::vector<array_space> arrays = report.arrays;
  if (arrays.empty()) return;
  std::stable_sort(arrays.begin(), arrays.end(), [](const array_space& a, const array_space& b) {
    return total_of(a) > total_of(b);
  });
  table list({{"data", alignment::right},
              {"index", alignment::right},
              {"bytes", alignment::right},
              {"share", alignment::right},
              {"array"}});
  for (const array_space& array : arrays) {
    if (array.problem)
      list.add({std::string(name(array.problem->code())), "", "", "", name_in_address(array.name)});
    else
      list.add({format_bytes(array.data_bytes), format_bytes(array.index_bytes),
                format_count(total_of(array)), format_share(total_of(array), report.file_bytes),
                name_in_address(array.name)});
  }
  print_data(fmt::format("{}\n", list.to_string()));
}

void print(const space_report& report) {
  print_arrays(report);
  table space({{"space"},
               {"bytes", alignment::right},
               {"", alignment::right},
               {"share", alignment::right}});
  const auto add = [&](const std::string& use, std::uint64_t bytes) {
    space.add(
        {use, format_count(bytes), format_bytes(bytes), format_share(bytes, report.file_bytes)});
  };
  std::uint64_t arrays = 0;
  for (const array_space& array : report.arrays) arrays += total_of(array);
  add("arrays", arrays);
  if (report.unknown_bytes > 0) add("arrays of later versions", report.unknown_bytes);
  add("metadata", report.metadata_bytes);
  if (report.oldest_read)
    add(fmt::format("held by readers of generation {} and later", *report.oldest_read),
        report.held_by_readers_bytes);
  if (report.retained_bytes > 0) add("retained generations", report.retained_bytes);
  add("the generation before", report.previous_bytes);
  add("free", report.free_bytes);
  add("file", report.file_bytes);
  print_data(space.to_string());
}

int run(const du_options& options) {
  const address source = parse_address(options.file);
  if (source.format != file_format::shale || !source.array.empty())
    throw error(errc::invalid_argument, "du: only whole .shale containers are measured",
                {"got " + options.file});
  const space_report report = container::open(source.file).space();
  if (options.json) print_json(to_json(source.file, report));
  else print(report);
  int code = exit_success;
  for (const array_space& array : report.arrays) {
    if (!array.problem) continue;
    note(fmt::format("shale: {}", array.problem->what()));
    code = code_of(*array.problem);
  }
  return code;
}

}  // namespace

void add_du(command_line& line) {
  auto options = std::make_shared<du_options>();
  CLI::App* command = line.app.add_subcommand("du", "Show what takes the space of a container");
  command->add_option("file", options->file, "FILE.shale")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "The second table adds up to the file. An array takes the bytes of its elements, and an\n"
      "index: the places of its chunks, or the checksums of a dense array.\n"
      "Bytes of an older generation cannot be used again while a reader holds it, while it is\n"
      "retained, or while it is the one before the newest, because a crash may lead back to it.\n"
      "How many bytes an array of a later version takes is not known; the second table has them\n"
      "together, and the exit code is 5.\n"
      "The file itself gets shorter by `shale convert --replace`.\n"
      "\n"
      "Examples:\n"
      "  shale du survey.shale\n"
      "  shale du survey.shale --json | jq .free_bytes");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
