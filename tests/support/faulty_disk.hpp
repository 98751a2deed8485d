// A disk that fails on command, for helper processes with private mounts
// (support/private_mounts.hpp). It starts and controls support/faulty_file_system.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "support/child_process.hpp"
#include "support/helper_process.hpp"
#include "support/private_mounts.hpp"

namespace shale::test {

class faulty_disk {
 public:
  /// Runs `program`, the file system, and mounts it on the directory `folder`. Throws unavailable.
  faulty_disk(const std::string& program, std::string folder)
      : folder_(make_directory(folder)), server_(program, {folder_}) {
    if (server_.read_line() != "mounted")
      throw unavailable("FUSE cannot be mounted: no /dev/fuse, or not allowed");
  }

  /// From now on the operation (read, write, sync, allocate) fails if it touches a byte of [first,
  /// last].
  void fail(const std::string& operation, std::size_t first, std::size_t last, int number) {
    say("fail " + operation + " " + std::to_string(first) + " " + std::to_string(last) + " " +
        std::to_string(number));
  }
  void fail(const std::string& operation, int number) {
    fail(operation, 0, std::size_t{1} << 40, number);
  }
  void heal() { say("heal"); }

  /// Removes the device while it is in use.
  void vanish() {
    server_.kill();
    server_.wait();
  }

  const std::string& folder() const { return folder_; }

 private:
  void say(const std::string& line) {
    server_.write_line(line);
    require(server_.read_line() == "ok", "the file system obeys");
  }

  const std::string folder_;
  child_process server_;
};

}  // namespace shale::test
