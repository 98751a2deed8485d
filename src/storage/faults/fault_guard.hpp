// The SIGBUS handler of the process and the list of ranges that it guards. It handles accesses to
// mapped files whose bytes are lost (truncated, unreadable, no space).
//
// At the first fault inside a guarded range, the handler replaces the rest of that range, from the
// faulting page to the end, by memory that cannot fault, and sets the range's mark. The thread then
// continues with zeros. Nothing is unwound.
//
// The guard itself throws nothing. `mapped_block::check_mark` (mapped/mapped_block.cpp) throws `io`
// if the mark is set. `storage::check` calls it, and so does the engine for the operands of every
// pass, when the pass ends (parallel::check_storages).
//
// Invariants
//   guard.1  the handler takes no lock that the interrupted code could hold and allocates nothing.
//            The system calls that it makes are safe in a signal handler: mmap, munmap, fstat,
//            sched_yield and the signal mask; sigaction and raise, to let a fault end the process
//   guard.2  no handler touches a range that was removed from the list: the destructor waits for
//            handlers that have found it
//   guard.3  memory that replaces lost writable bytes is bounded for the whole process: it consists
//            of a ring of patches, and a new patch replaces the oldest
//   guard.4  faults outside guarded ranges, and SIGBUS that was not raised by an access, go to the
//            handler that was installed before
//   guard.5  in a forked child, a range that is not inherited is replaced from the fork on, as lost
//            bytes are, and its mark is set
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace shale::detail {

/// Records a fault. All ranges of one storage share a mark, and it outlives them.
struct fault_mark {
  static constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

  std::atomic<bool> failed = false;
  std::atomic<std::uint64_t> file_offset = nowhere;  ///< the lowest byte that was found lost

  void set(std::uint64_t offset) noexcept;
};

/// How lost bytes are replaced.
enum class replacement : std::uint8_t {
  zeros,  ///< by anonymous private memory, which keeps stores
  sink,   ///< by the ring of patches (guard.3): stores are discarded later, loads see zeros or
          ///< recent stores
};

/// One range of addresses that maps one range of a file; guarded while this object lives.
/// Registering installs the handler, or puts it in front again if the host program has replaced it.
class guarded_range {
 public:
  struct description {
    std::byte* address = nullptr;   ///< page-aligned
    std::size_t bytes = 0;          ///< whole pages
    std::uint64_t file_offset = 0;  ///< of the first byte, for the mark
    int protection = 0;             ///< PROT_READ, possibly with PROT_WRITE
    replacement kind = replacement::zeros;
    bool inherited_by_fork = true;  ///< false for MADV_DONTFORK ranges: see guard.5
    fault_mark* mark = nullptr;
  };

  guarded_range() = default;
  explicit guarded_range(const description& range);
  ~guarded_range();
  guarded_range(guarded_range&& other) noexcept;
  guarded_range& operator=(guarded_range&& other) noexcept;

  /// Sets the size of the range after the mapping was extended, or after an extension was undone.
  void resize(std::size_t bytes) noexcept;

  /// Sets the protection and kind of later replacements.
  void change(int protection, replacement kind) noexcept;

  /// Records that forked children inherit the pages from now on. The calling thread holds a
  /// fork_safe_mutex, so no other thread forks meanwhile.
  void let_children_inherit() noexcept;

  /// Records that all pages of the range were replaced by memory that children inherit.
  void note_replaced() noexcept;

  /// In a forked child, for a range of its parent: true if memory has replaced the pages (guard.5),
  /// which the owner of the range must unmap. False if something else may be mapped there.
  bool stands_in_for_parents() const noexcept;

  struct slot;

 private:
  slot* slot_ = nullptr;
};

/// Unblocks SIGBUS in the calling thread. If a thread blocks it, its first fault ends the process
/// even in a guarded range. Threads of this library call this once.
void unblock_fault_signal() noexcept;

/// The number of ranges that are guarded now.
std::size_t guarded_ranges() noexcept;

}  // namespace shale::detail
