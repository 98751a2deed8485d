// Owns a file descriptor and closes it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace shale::tools {

class open_file {
 public:
  /// If the file cannot be opened, get() is -1 and errno tells the reason.
  explicit open_file(const std::string& path, int flags, mode_t mode = 0)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~open_file() {
    if (number_ >= 0) ::close(number_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  int get() const noexcept { return number_; }

 private:
  int number_;
};

}  // namespace shale::tools
