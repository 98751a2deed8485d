#include "commands/several_files.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <utility>

#include "shale/error.hpp"
#include "terminal/table.hpp"

namespace shale::tools {

void separator::before_list(const std::string& file) {
  if (!is_needed_) return;
  print_data(fmt::format("{}{}:\n", last_ == none ? "" : "\n", printable(file)));
  last_ = list;
}

void separator::before_line() {
  if (is_needed_ && last_ == list) print_data("\n");
  last_ = line;
}

int worse(int a, int b) noexcept {
  constexpr std::array<int, 5> from_the_worst{exit_corrupt, exit_found_problem, exit_failed,
                                              exit_usage, exit_unsupported};
  for (const int code : from_the_worst)
    if (a == code || b == code) return code;
  return exit_success;
}

int for_each_file(const std::vector<std::string>& files,
                  const std::function<int(const std::string&)>& body) {
  int code = exit_success;
  for (const std::string& file : files) {
    try {
      code = worse(code, body(file));
    } catch (const error& failure) {
      if (failure.code() == errc::cancelled || std::ferror(stdout) != 0) throw;
      note_failure(failure);
      code = worse(code, code_of(failure));
    }
  }
  return code;
}

int print_json_of(const std::vector<std::string>& files, const std::string& key,
                  const std::function<described_file(const std::string&)>& describe) {
  if (files.size() == 1) {
    const described_file only = describe(files.front());
    print_json(only.json);
    return only.code;
  }
  nlohmann::json all = nlohmann::json::array();
  const int code = for_each_file(files, [&](const std::string& file) {
    nlohmann::json unknown = nlohmann::json::object();
    unknown[key] = file;
    all.push_back(std::move(unknown));
    described_file described = describe(file);
    all.back() = std::move(described.json);
    return described.code;
  });
  print_json(all);
  return code;
}

}  // namespace shale::tools
