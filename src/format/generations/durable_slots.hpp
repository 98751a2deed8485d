// The bytes of both superblocks as this process made them durable last. A writer that finds them
// unchanged need not write and sync them again (commit.1, docs/decisions/0206).
#pragma once

#include <array>
#include <optional>

#include "format/generations/superblock_slots.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::format {

/// Threads  any
class durable_slots {
 public:
  /// A sync that covers both slots has worked.
  void note(const slots& both);

  /// Whether these are the bytes that were noted last.
  bool are(const slots& both) const;

 private:
  using sectors = std::array<superblock_sector, 2>;

  mutable shale::detail::fork_safe_mutex mutex_;
  std::optional<sectors> sectors_;
};

}  // namespace shale::format
