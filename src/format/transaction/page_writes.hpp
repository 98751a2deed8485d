// Collects the pages of a generation before they are written, so that pages which lie side by side
// are written by one system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/os/file_system.hpp"
#include "format/pages/page.hpp"

namespace shale::format {

/// Lifetime `file` and `path` must outlive it
class page_writes {
 public:
  page_writes(open_file& file, const std::string& path) noexcept : file_(&file), path_(&path) {}

  /// Notes a page. Its place must differ from those of all other pages that wait.
  void add(std::uint64_t offset, const page& made) { waiting_.emplace_back(offset, made); }

  /// Whether so many pages wait that their memory counts.
  bool full() const noexcept { return waiting_.size() >= pages_max; }

  /// Writes all pages that wait, in the order of their places.
  /// Throws   as write_all; some of the pages may be written then, and none waits any more
  void write_all_waiting();

 private:
  static constexpr std::size_t pages_max = 256;  // 1 MiB

  open_file* file_;
  const std::string* path_;
  std::vector<std::pair<std::uint64_t, page>> waiting_;
};

}  // namespace shale::format
