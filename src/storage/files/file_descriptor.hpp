// A file descriptor with one owner, and the calls that make descriptors.
//
// A program may print although its standard streams are closed. If a file had the number of such a
// stream, the output would be written into the file. So every descriptor that the library keeps is
// made here, and has another number.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>

#include "shale/error.hpp"

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

/// Another descriptor of the same description, with O_CLOEXEC.
/// Returns  an empty object if it failed, with the reason in errno
file_descriptor duplicate(int descriptor) noexcept;

/// Gives a new descriptor another number if it has that of a standard stream. Until then, output of
/// another thread can reach the file.
/// Returns  a descriptor that the caller closes. -1 if `made` is -1 or there is no other number,
///          with the reason in errno; `made` is closed then
int beyond_standard_streams(int made) noexcept;

/// Calls openat(2) once, with O_CLOEXEC. The number is not that of a standard stream.
/// Returns  a descriptor that the caller closes. -1 if it failed, with the reason in errno. A file
///          that O_CREAT | O_EXCL made before the failure is removed
int open_at(int directory, const char* path, int flags, unsigned mode = 0) noexcept;

/// Calls open_at in the working directory, and again if a signal interrupts it.
/// Returns  an empty object if it failed, with the reason in errno
file_descriptor open_descriptor(const std::string& path, int flags, unsigned mode = 0) noexcept;

/// The code for the `errno` of a failed call on a file that this process has opened for writing, or
/// on its name. If the file system has become read-only, the code is `io`, because Linux makes a
/// file system read-only when its device fails.
errc code_for_opened_file(int os_errno) noexcept;

}  // namespace shale::detail
