#include "format/transaction/page_writes.hpp"

#include <algorithm>
#include <utility>

#include "format/os/file_io.hpp"

namespace shale::format {

void page_writes::write_all_waiting() {
  auto pages = std::exchange(waiting_, {});
  std::sort(pages.begin(), pages.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::byte> run;  // pages that lie side by side, from `first` on
  std::uint64_t first = 0;
  for (const auto& [offset, made] : pages) {
    if (offset != first + run.size()) {
      write_all(*file_, first, run, *path_);
      run.clear();
      first = offset;
    }
    run.insert(run.end(), made.bytes().begin(), made.bytes().end());
  }
  write_all(*file_, first, run, *path_);
}

}  // namespace shale::format
