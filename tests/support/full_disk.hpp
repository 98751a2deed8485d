// Simulates full disks: by a small file system if the user may mount one, and by a limit of file
// sizes, which always works.
#pragma once

#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <string>

#include "support/scratch_directory.hpp"

namespace shale::test {

/// A file system of 1 MiB, which is unmounted when the object is destroyed.
class small_disk {
 public:
  small_disk()
      : is_mounted_(::mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, "size=1m") == 0) {}
  ~small_disk() {
    if (is_mounted_) ::umount2(directory_.path().c_str(), MNT_DETACH);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;

  /// False if the user may not mount: then it is an ordinary directory.
  bool is_mounted() const noexcept { return is_mounted_; }
  const scratch_directory& files() const noexcept { return directory_; }

 private:
  scratch_directory directory_;
  bool is_mounted_;
};

/// While it lives, no file of this process can grow beyond `bytes`: writing fails with EFBIG.
class short_files {
 public:
  explicit short_files(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~short_files() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  short_files(const short_files&) = delete;
  short_files& operator=(const short_files&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace shale::test
