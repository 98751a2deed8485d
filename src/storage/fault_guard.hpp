// What happens when the file under a mapping goes away: the one SIGBUS handler of the process, and
// the ranges it knows.
//
// The first fault inside a guarded range replaces the rest of that range, from the page that
// faulted to its end, by memory that cannot fault, and sets the range's mark. The thread then runs
// on over zeros; whoever asked for the bytes finds the mark and throws. Nothing is unwound.
//
// Invariants
//   guard.1  the handler takes no lock that it could have interrupted, allocates nothing, and asks
//            the kernel only for what a signal handler may: mmap, munmap, fstat, the signal mask
//   guard.2  a range that has been taken off the list is not touched by any handler: the destructor
//            waits for handlers that found it
//   guard.3  memory that stands in for lost writable bytes is bounded for the whole process: it
//            lies in a ring of windows, and the oldest window makes room for the next
//   guard.4  faults outside guarded ranges, and SIGBUS that no access raised, go to the handler
//            that was there before
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace shale::detail {

/// What a fault leaves behind, shared by all ranges of one storage. Outlives its ranges.
struct fault_mark {
  static constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

  std::atomic<bool> failed = false;
  std::atomic<std::uint64_t> file_offset = nowhere;  ///< the lowest byte found lost

  void set(std::uint64_t at) noexcept;
};

/// How lost bytes are replaced.
enum class replacement : std::uint8_t {
  zeros,  ///< by anonymous memory; what is stored there is kept, as private memory
  sink,   ///< by the ring of windows (guard.3): stores are swallowed, loads see zeros or stores
};

/// One range of addresses over one range of a file, guarded for as long as this lives.
/// Registering installs the handler, or puts it back in front where the host program has replaced
/// it since.
class guarded_range {
 public:
  struct description {
    std::byte* address = nullptr;   ///< page-aligned
    std::size_t bytes = 0;          ///< whole pages
    std::uint64_t file_offset = 0;  ///< of the first byte, for the mark
    int protection = 0;             ///< PROT_READ, perhaps PROT_WRITE
    replacement how = replacement::zeros;
    bool inherited_by_fork = true;  ///< false for MADV_DONTFORK ranges: a child drops them
    fault_mark* mark = nullptr;
  };

  guarded_range() = default;
  explicit guarded_range(const description& what);
  ~guarded_range();
  guarded_range(guarded_range&& other) noexcept;
  guarded_range& operator=(guarded_range&& other) noexcept;

  /// The range now has `bytes`: the mapping was extended, or the extension was given up.
  void resize(std::size_t bytes) noexcept;

  /// What replacements are made with from now on.
  void change(int protection, replacement how) noexcept;

  struct slot;

 private:
  slot* slot_ = nullptr;
};

/// Lets the calling thread take SIGBUS. A thread that blocks it dies of the first fault, whatever
/// guards the range; threads made by this library call this once.
void unblock_fault_signal() noexcept;

/// How many ranges are guarded now.
std::size_t guarded_ranges() noexcept;

/// Counts how often this process has been forked since its first ancestor that used this library:
/// what was made under another number belongs to the parent.
unsigned fork_generation() noexcept;

}  // namespace shale::detail
