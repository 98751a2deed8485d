// A disk that fails on command, for helper processes with mounts of their own
// (support/private_mounts.hpp): the other side of support/faulty_file_system.cpp.
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
  /// Runs `program`, the file system, on the directory `where`. Throws unavailable.
  faulty_disk(const std::string& program, std::string where)
      : where_(make_directory(where)), server_(program, {where_}) {
    if (server_.read_line() != "mounted")
      throw unavailable("FUSE cannot be mounted: no /dev/fuse, or not allowed");
  }

  /// From now on the operation (read, write, sync, allocate) fails where it touches a byte of
  /// [first, last].
  void fail(const std::string& operation, std::size_t first, std::size_t last, int number) {
    say("fail " + operation + " " + std::to_string(first) + " " + std::to_string(last) + " " +
        std::to_string(number));
  }
  void fail(const std::string& operation, int number) {
    fail(operation, 0, std::size_t{1} << 40, number);
  }
  void heal() { say("heal"); }

  /// The device goes away in the middle of everything.
  void vanish() {
    server_.kill();
    server_.wait();
  }

  const std::string& where() const { return where_; }

 private:
  void say(const std::string& line) {
    server_.write_line(line);
    require(server_.read_line() == "ok", "the file system obeys");
  }

  const std::string where_;
  child_process server_;
};

}  // namespace shale::test
