// Open files without a name in any folder, and their names in /proc.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <string>

namespace shale::test {

enum class nameless { memory, removed, unnamed };

class nameless_file {
 public:
  /// An empty file, in `directory` or in memory.
  nameless_file(nameless kind, const std::string& directory) {
    const std::string named = directory + "/removed";
    if (kind == nameless::memory) descriptor_ = ::memfd_create("m", MFD_CLOEXEC);
    if (kind == nameless::unnamed)
      descriptor_ = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (kind == nameless::removed) {
      descriptor_ = ::open(named.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      ::unlink(named.c_str());
    }
  }
  ~nameless_file() { ::close(descriptor_); }
  nameless_file(const nameless_file&) = delete;
  nameless_file& operator=(const nameless_file&) = delete;

  /// False if the file system does not support such files.
  bool is_open() const noexcept { return descriptor_ >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  /// The text of the /proc link, read as if it were a path.
  std::string text() const {
    std::string text(4096, '\0');
    const ssize_t length = ::readlink(path().c_str(), text.data(), text.size());
    text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return text;
  }
  std::size_t size() const { return static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)); }

 private:
  int descriptor_ = -1;
};

}  // namespace shale::test
