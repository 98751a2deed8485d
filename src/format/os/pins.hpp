// Pins: the shared locks by which readers hold generations, one byte for each generation. The
// kernel releases them when a process ends, even when it is killed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/os/bound_path.hpp"
#include "format/os/file_system.hpp"
#include "format/os/locks.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::format {

class pin_set;

/// What is pinned. The lock of an unpublished base must be released with its last pin: if the base
/// was lost, no other writer can begin while it is locked (commit.1).
enum class pin_target : std::uint8_t { published_generation, unpublished_base };

/// A hold on one generation, until it is destroyed.
class pin {
 public:
  ~pin();
  pin(const pin&) = delete;
  pin& operator=(const pin&) = delete;

  std::uint64_t generation() const noexcept { return generation_; }

 private:
  friend class pin_set;
  struct description;
  pin(std::shared_ptr<pin_set> set, std::uint64_t generation, pin_target target) noexcept
      : set_(std::move(set)), generation_(generation), target_(target) {}

  std::shared_ptr<pin_set> set_;
  std::uint64_t generation_;
  pin_target target_;
  std::shared_ptr<description> in_;  // null until the lock is taken
};

/// The pins of one open file, in few descriptions (docs/decisions/0092).
///
/// Invariants
///   pins.1  a lock is released only by closing its description; no byte is ever unlocked, and no
///           description is duplicated: so a forked child that closes its copy releases no lock of
///           its parent
///   pins.2  a generation is locked without a gap from `take` until its last pin is destroyed
///   pins.3  the number of stale locks of a description is limited: with at most 64 pinned
///           generations it keeps none, with more at most one for each 64, and never one of an
///           unpublished base. While no description can be opened, the number is unbounded
///
/// How pins are released: Locks end only with their description (pins.1), so a description that
/// holds several generations cannot drop one of them directly. `release` counts such locks. When
/// there are too many (pins.3), it opens a new description of the same file, takes the locks that
/// are still held there, and only then closes the old one: both hold the locks for a moment, so
/// there is no gap.
///
/// Threads  safe
class pin_set : public std::enable_shared_from_this<pin_set> {
 public:
  /// The most descriptions that a set opens, for any number of pinned generations.
  static constexpr std::size_t descriptions_max = 16;

  /// With at most so many pinned generations, a description keeps no stale lock (pins.3).
  static constexpr std::size_t exact_up_to = 64;

  /// Takes the shared lock of a reader. Returns null if the name no longer leads to `file`. If no
  /// descriptor is left, the generation shares a description with other generations.
  /// Throws   busy (another program's lock is in the way), io, access_denied, not_found
  std::unique_ptr<pin> take(const bound_path& place, const file_identity& file,
                            std::uint64_t generation,
                            pin_target target = pin_target::published_generation);

 private:
  friend class pin;
  std::shared_ptr<pin::description> description_for(const bound_path& place,
                                                    const file_identity& file);
  void release(const pin& gone) noexcept;

  shale::detail::fork_safe_mutex mutex_;
  std::vector<std::weak_ptr<pin::description>> descriptions_;
};

/// The pins and other locks that a scan has found.
struct pin_scan {
  std::vector<generation_range> pins;  ///< disjoint, in order

  /// A lock over these bytes that is not a pin, if there is one. It may hide pins.
  std::optional<found_lock> foreign;
};

/// Finds all generations that any process holds. For a range, the kernel reports one lock, which
/// need not be the lowest. So the scan asks for the whole range, then for the parts on both sides
/// of the lock that was found, and so on until every part is known to be free or pinned. `asking`
/// must hold no pin itself, because a description does not see its own locks.
/// Cost     O(pinned generations) system calls
/// Throws   io
pin_scan scan_pins(open_file& asking, const std::string& path);

}  // namespace shale::format
