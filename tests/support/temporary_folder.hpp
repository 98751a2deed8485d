// Changes the folder for temporary files for the time of a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace shale::test {

/// Gives TMPDIR a value, or none, and the one before back.
class temporary_folder {
 public:
  explicit temporary_folder(const char* value) {
    if (const char* const now = std::getenv(name)) before_ = now;
    set(value);
  }
  ~temporary_folder() { set(before_ ? before_->c_str() : nullptr); }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

 private:
  static constexpr const char* name = "TMPDIR";
  static void set(const char* value) {
    if (value != nullptr) ::setenv(name, value, 1);
    else ::unsetenv(name);
  }
  std::optional<std::string> before_;
};

}  // namespace shale::test
