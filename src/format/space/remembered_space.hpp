// Keeps the unused section of the space map in memory from one transaction of a process to the
// next. So beginning a transaction does not cost a walk over all free ranges.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "format/bytes/types.hpp"
#include "format/space/unused_section.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::format {

/// Threads  safe
class remembered_space {
 public:
  /// Remembers the section of the map with that root, in place of another one. A section of more
  /// than 65,536 ranges is not remembered: they would take more than 10 MiB.
  void keep(const page_ref& root, unused_section&& section) noexcept;

  /// Takes the section out, if it is of the map with that root. Forgets it in any case.
  std::optional<unused_section> take(const page_ref& root) noexcept;

 private:
  static constexpr std::size_t ranges_max = 65'536;

  struct remembered {
    page_ref root;
    unused_section section;
  };

  shale::detail::fork_safe_mutex mutex_;
  std::optional<remembered> last_;
};

}  // namespace shale::format
