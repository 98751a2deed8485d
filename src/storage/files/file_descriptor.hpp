// A file descriptor with one owner.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace shale::detail {

class file_descriptor {
 public:
  file_descriptor() = default;
  explicit file_descriptor(int value) noexcept : value_(value) {}
  file_descriptor(file_descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~file_descriptor() { reset(); }

  /// -1 if there is none.
  int get() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ >= 0; }

  /// The caller closes it.
  int release() noexcept { return std::exchange(value_, -1); }

  void reset() noexcept {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }

 private:
  int value_ = -1;
};

/// Calls open(2) with O_CLOEXEC, and again if a signal interrupts it.
/// Returns  an empty object if it failed, with the reason in errno
inline file_descriptor open_descriptor(const std::string& path, int flags,
                                       unsigned mode = 0) noexcept {
  int opened;
  do opened = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (opened < 0 && errno == EINTR);
  return file_descriptor(opened);
}

}  // namespace shale::detail
