// A file descriptor with one owner.
#pragma once

#include <unistd.h>

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

  void reset() noexcept {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }

 private:
  int value_ = -1;
};

}  // namespace shale::detail
