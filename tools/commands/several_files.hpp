// What commands that take several files share: if one of them cannot be read, the others are shown
// all the same, and the exit code is the worst one.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "terminal/output.hpp"

namespace shale::tools {

/// Separates the lists of several files: a list has the name of its file above it and an empty line
/// before and after it. A file with one nameless array is a single line.
class separator {
 public:
  explicit separator(bool is_needed) : is_needed_(is_needed) {}

  /// Call it after `file` has been opened, so that a file that cannot be opened prints nothing here.
  void before_list(const std::string& file);
  void before_line();

 private:
  bool is_needed_;
  enum { none, list, line } last_ = none;
};

/// The worse of two exit codes. Damage is worse than a failure, a failure worse than wrong usage,
/// and that is worse than what is unsupported.
int worse(int a, int b) noexcept;

/// Calls `body`, which returns an exit code, for each file. An error is printed, gives its exit
/// code, and the next file follows.
/// Returns  the worst exit code
/// Throws   the error if the command was cancelled or stdout cannot be written
int for_each_file(const std::vector<std::string>& files,
                  const std::function<int(const std::string&)>& body);

/// What a command says of a file as JSON, and its exit code.
struct described_file {
  nlohmann::json json;
  int code = exit_success;
};

/// Prints what `describe` says of a single file, or a list of that for several files. In a list, a
/// file that cannot be described is an object that has its name as `key`, and nothing else.
/// Returns  the worst exit code
/// Throws   as for_each_file; the error of a single file
int print_json_of(const std::vector<std::string>& files, const std::string& key,
                  const std::function<described_file(const std::string&)>& describe);

}  // namespace shale::tools
