// The signal handler and all data that it reads are in this file and in earlier_handlers.cpp. So a
// reader can check that all of its code may run inside a signal handler.
#include "storage/faults/fault_guard.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "shale/error.hpp"
#include "storage/faults/earlier_handlers.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/system/blocked_signals.hpp"
#include "storage/system/fork_handlers.hpp"
#include "storage/system/pages.hpp"

namespace shale::detail {

// How a fault is handled: The kernel calls `handle`. It searches the list of slots for an active
// range that contains the address (`repair`). If there is one, `replace_rest` sets its mark and
// maps other memory over the rest of the range. On return the instruction runs again, and succeeds.
// Otherwise `pass_on` calls the handler that was installed before (earlier_handlers.hpp).
//
// With `replacement::sink`, the memory is bounded (guard.3). The handler then maps the *void*, an
// empty file, so that every access faults again, and gives memory only to a small patch around the
// access (`open_patch`). The void also replaces ranges that a forked child does not inherit
// (`stand_in`).
//
// The handler may interrupt any code, so it can take no lock that the interrupted code may hold. It
// takes `sink_lock` only, which all other code holds with signals blocked. Slots are never freed,
// so the handler can walk the list while other threads register ranges. It announces itself in
// `handlers` before it reads a slot, and the destructor of a range waits until that count is zero
// (guard.2).
//
// One slot describes one guarded range. `begin`, `file_offset` and `mark` are written before the
// slot becomes active. `end`, `protection` and `kind` may change while a handler runs. No handler
// reads `inherited_by_fork`.
struct guarded_range::slot {
  enum state : std::uint8_t { unused, active, retired };

  std::atomic<std::uint8_t> now = unused;
  std::atomic<std::uint32_t> handlers = 0;  // running handlers that may use the slot
  std::uintptr_t begin = 0;
  std::atomic<std::uintptr_t> end = 0;
  std::uint64_t file_offset = 0;
  std::atomic<int> protection = 0;
  std::atomic<replacement> kind = replacement::zeros;
  bool inherited_by_fork = true;
  bool stands_in = false;  // this process is a forked child, and the void replaces the pages
  fault_mark* mark = nullptr;
  std::uintptr_t void_from = 0;  // [void_from, end) has been replaced; guarded by `sink_lock`
};

void fault_mark::set(std::uint64_t offset) noexcept {
  std::uint64_t lowest = file_offset.load(std::memory_order_relaxed);
  while (offset < lowest &&
         !file_offset.compare_exchange_weak(lowest, offset, std::memory_order_relaxed)) {
  }
  failed.store(true, std::memory_order_release);
}

namespace {

using slot = guarded_range::slot;

// ---- the list of ranges: its chunks are never freed, so that a handler can walk it unlocked -----

struct chunk {
  std::array<slot, 256> slots;
  std::atomic<chunk*> next = nullptr;
};

std::atomic<chunk*> first_chunk = nullptr;

// This lock serialises registration; no handler takes it. It is usable until the process ends.
constinit std::mutex registering_lock;
static_assert(std::is_trivially_destructible_v<std::mutex>);
std::mutex& registering() noexcept { return registering_lock; }
std::vector<slot*>& free_slots() {
  static std::vector<slot*>& slots = *new std::vector<slot*>;
  return slots;
}
std::atomic<std::size_t> registered = 0;

void add_chunk() {
  auto& slots = free_slots();
  slots.reserve(slots.capacity() + 256);
  auto* const fresh = new chunk;
  for (auto unused = fresh->slots.rbegin(); unused != fresh->slots.rend(); ++unused)
    slots.push_back(&*unused);
  fresh->next.store(first_chunk.load(std::memory_order_relaxed), std::memory_order_relaxed);
  first_chunk.store(fresh, std::memory_order_release);
}

// ---- system calls that bypass interceptors and the C library's wrappers -------------------------

// A process at its limit of mappings cannot even replace a part of one. These few spare mappings
// are unmapped at that moment to make room. Each registration makes them again.
constexpr std::size_t spare_mappings = 16;
std::atomic<std::uintptr_t> spare = 0;

bool give_up_spare() noexcept {
  const std::uintptr_t pages = spare.exchange(0, std::memory_order_acq_rel);
  return pages != 0 && ::syscall(SYS_munmap, pages, spare_mappings * system_page_bytes()) == 0;
}

void keep_spare() noexcept {
  if (spare.load(std::memory_order_relaxed) != 0) return;
  const std::size_t page = system_page_bytes();
  void* const pages = ::mmap(nullptr, spare_mappings * page, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return;
  // Neighbours with different protections are not merged, so each page counts as one mapping.
  for (std::size_t i = 0; i < spare_mappings; i += 2)
    ::mprotect(static_cast<std::byte*>(pages) + i * page, page, PROT_READ);
  spare.store(reinterpret_cast<std::uintptr_t>(pages), std::memory_order_release);
}

bool map_fixed(std::uintptr_t begin, std::uintptr_t end, int protection, int flags, int descriptor,
               std::uint64_t offset) noexcept {
  do {
    if (::syscall(SYS_mmap, begin, end - begin, protection, flags | MAP_FIXED, descriptor,
                  offset) != -1)
      return true;
  } while (errno == ENOMEM && give_up_spare());
  return false;
}

bool map_zeros(std::uintptr_t begin, std::uintptr_t end, int protection) noexcept {
  return map_fixed(begin, end, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// ---- the ring of patches (guard.3) --------------------------------------------------------------

constexpr std::size_t patch_bytes = std::size_t{256} << 10;

// More patches than one instruction can touch (a gather of 16 unaligned elements touches 32 pages),
// so that a store always completes after its own faults.
constexpr std::size_t ring_patches = 64;

struct patch {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // 0: an unused patch
};

std::atomic_flag sink_lock = ATOMIC_FLAG_INIT;
std::array<patch, ring_patches> ring;  // under sink_lock
std::size_t next_patch = 0;            // under sink_lock

// The void is an empty file: every access to a mapping of it faults. So each patch of a replaced
// range gets memory only when it is touched, and the memory can be taken back.
int void_descriptor = -1;
struct stat void_identity {};

// Holds `sink_lock` with every signal blocked: a handler that interrupts the holder would wait for
// ever.
class sink_holder {
 public:
  sink_holder() noexcept {
    while (sink_lock.test_and_set(std::memory_order_acquire)) ::sched_yield();
  }
  ~sink_holder() { sink_lock.clear(std::memory_order_release); }
  sink_holder(const sink_holder&) = delete;
  sink_holder& operator=(const sink_holder&) = delete;

 private:
  const blocked_signals blocked_;  // destroyed after the lock is released
};

// A host program that closed every descriptor may have opened another file with the same number.
bool void_is_open() noexcept {
  struct stat now {};
  return ::fstat(void_descriptor, &now) == 0 && now.st_ino == void_identity.st_ino &&
         now.st_dev == void_identity.st_dev;
}

// The kernel merges neighbouring mappings of the void if their file offsets continue, so the offset
// is the address.
bool map_void(std::uintptr_t begin, std::uintptr_t end, int protection) noexcept {
  return void_is_open() && map_fixed(begin, end, protection, MAP_SHARED, void_descriptor, begin);
}

void take_back(patch& old) noexcept {
  // If the void is gone, the memory stays: survival is more important than the bound.
  if (old.end != 0) map_void(old.begin, old.end, PROT_READ | PROT_WRITE);
  old = {};
}

void forget_patches(std::uintptr_t begin, std::uintptr_t end) noexcept {
  for (patch& opened : ring)
    if (opened.end != 0 && begin < opened.end && opened.begin < end) opened = {};
}

// Gives memory to the patch around a faulting page. At the first fault it extends the void from
// the page to the part that is already void. Then it maps private memory over one aligned patch of
// 256 KiB and enters it in the ring; the patch that was in that place of the ring becomes void
// again. Patches never overlap: else one could be taken back while another still claims its pages,
// and an access there would fault for ever. The caller holds the sink.
bool open_patch(slot& range, std::uintptr_t page, int protection) noexcept {
  const std::uintptr_t end = range.end.load(std::memory_order_relaxed);
  if (page < range.void_from) {
    if (!map_void(page, range.void_from, protection)) return false;
    range.void_from = page;
  }
  patch fresh{std::max(align_down(page, patch_bytes), range.void_from),
              std::min(align_down(page, patch_bytes) + patch_bytes, end)};
  // Another thread may have opened this patch first.
  for (const patch& opened : ring)
    if (opened.begin <= page && page < opened.end) return true;
  // A patch that begins after this page becomes a part of `fresh`.
  forget_patches(fresh.begin, fresh.end);
  take_back(ring[next_patch]);
  if (!map_zeros(fresh.begin, fresh.end, protection)) {
    // Too many mappings: take all patches back to make room, and try once more.
    for (patch& opened : ring) take_back(opened);
    if (!map_zeros(fresh.begin, fresh.end, protection)) return false;
  }
  ring[next_patch] = fresh;
  next_patch = (next_patch + 1) % ring_patches;
  return true;
}

// ---- one fault ----------------------------------------------------------------------------------

// Records that the pages from `first` on are replaced. A forked child inherits these pages, so its
// gap ends where they begin (see stand_in).
void note_replaced(slot& range, std::uintptr_t first) noexcept {
  const sink_holder held;
  range.void_from = std::min(range.void_from, first);
}

// Replaces a range from the faulting page to its end and marks it. If no patch can be opened, it
// falls back to plain zeros, first for the rest of the range and then for all of it.
bool replace_rest(slot& range, std::uintptr_t page) noexcept {
  range.mark->set(range.file_offset + (page - range.begin));
  const int protection = range.protection.load(std::memory_order_relaxed);
  if (range.kind.load(std::memory_order_relaxed) == replacement::sink) {
    const sink_holder held;
    if (open_patch(range, page, protection)) return true;
  }
  const std::uintptr_t end = range.end.load(std::memory_order_relaxed);
  if (map_zeros(page, end, protection)) {
    note_replaced(range, page);
    return true;
  }
  // Splitting a mapping can exceed the limit on their number; replacing it whole cannot. This gives
  // up bytes that were intact; the mark is set to the first byte to show it.
  range.mark->set(range.file_offset);
  if (!map_zeros(range.begin, end, protection)) return false;
  note_replaced(range, range.begin);
  return true;
}

// Finds the guarded range of an address and replaces its rest. Returns false if the address is in
// no guarded range, or if nothing could be mapped. Cost: O(ranges), without locks.
bool repair(std::uintptr_t address) noexcept {
  for (chunk* listed = first_chunk.load(std::memory_order_acquire); listed != nullptr;
       listed = listed->next.load(std::memory_order_relaxed)) {
    for (slot& candidate : listed->slots) {
      if (candidate.now.load(std::memory_order_relaxed) != slot::active) continue;
      // Increment `handlers` first, then look at the state. The destructor changes the state first
      // and then waits for `handlers` to become zero, so that one of the two sees the other.
      candidate.handlers.fetch_add(1, std::memory_order_seq_cst);
      bool done = false;
      if (candidate.now.load(std::memory_order_seq_cst) == slot::active &&
          candidate.begin <= address && address < candidate.end.load(std::memory_order_acquire))
        done = replace_rest(candidate, align_down(address, system_page_bytes()));
      candidate.handlers.fetch_sub(1, std::memory_order_release);
      if (done) return true;
    }
  }
  return false;
}

// ---- the handler --------------------------------------------------------------------------------

bool access_raised(const siginfo_t* info) noexcept {
  return info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR ||
         info->si_code == BUS_MCEERR_AR;
}

void handle(int number, siginfo_t* info, void* context) {
  const int before = errno;
  if (!access_raised(info) || !repair(reinterpret_cast<std::uintptr_t>(info->si_addr)))
    pass_on(number, info, context);
  errno = before;
}

// ---- fork ---------------------------------------------------------------------------------------

sigset_t before_fork;

void prepare_fork() {
  registering().lock();
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (sink_lock.test_and_set(std::memory_order_acquire)) ::sched_yield();
  before_fork = before;
}

void resume_after_fork() {
  const sigset_t before = before_fork;
  sink_lock.clear(std::memory_order_release);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  registering().unlock();
}

// In a child, a range that is not inherited is a gap in the address space. The void is mapped
// there, so that accesses behave as in a range whose file was lost; the mark is set at once.
// Returns false if another library's fork handler has already mapped something into the gap.
bool stand_in(slot& range) noexcept {
  range.mark->set(range.file_offset);
  const std::uintptr_t begin = range.begin;
  if (begin < range.void_from) {
    const int protection = range.protection.load(std::memory_order_relaxed);
    const bool empty = void_is_open();
    const int flags =
        MAP_FIXED_NOREPLACE | (empty ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (!map_fixed(begin, range.void_from, protection, flags, empty ? void_descriptor : -1,
                   empty ? begin : 0))
      return false;
    range.void_from = begin;
  }
  range.stands_in = true;
  return true;
}

void start_child() {
  for (chunk* listed = first_chunk.load(); listed != nullptr; listed = listed->next.load()) {
    for (slot& range : listed->slots) {
      range.handlers.store(0, std::memory_order_relaxed);  // their threads are in the parent
      if (range.now.load() != slot::active || range.inherited_by_fork || stand_in(range)) continue;
      range.now.store(slot::retired);
      forget_patches(range.begin, range.end.load());
    }
  }
  resume_after_fork();
}

constexpr fork_handlers handlers{prepare_fork, resume_after_fork, start_child};
[[maybe_unused]] const int registered_at_load = on_fork(forking_part::guarded_ranges, handlers);

// ---- installing ---------------------------------------------------------------------------------

// Prepares what the handler needs, and installs it in front if it is not. The caller holds
// `registering`.
void install() {
  if (void_descriptor < 0) {
    system_page_bytes();  // called here, so that no handler makes the first call
    const int made = beyond_standard_streams(::memfd_create("shale void", MFD_CLOEXEC));
    if (made < 0)
      throw error::from_errno(errc::io, "the guard of mappings could not be set up", errno);
    ::fstat(made, &void_identity);
    void_descriptor = made;
  }
  keep_spare();
  install_in_front(handle);
}

}  // namespace

guarded_range::guarded_range(const description& range) {
  const std::lock_guard lock(registering());
  install();
  if (free_slots().empty()) add_chunk();
  slot_ = free_slots().back();
  free_slots().pop_back();
  slot_->begin = reinterpret_cast<std::uintptr_t>(range.address);
  slot_->end.store(slot_->begin + range.bytes, std::memory_order_relaxed);
  slot_->file_offset = range.file_offset;
  slot_->protection.store(range.protection, std::memory_order_relaxed);
  slot_->kind.store(range.kind, std::memory_order_relaxed);
  slot_->inherited_by_fork = range.inherited_by_fork;
  slot_->stands_in = false;
  slot_->mark = range.mark;
  slot_->void_from = slot_->begin + range.bytes;
  slot_->now.store(slot::active, std::memory_order_release);
  registered.fetch_add(1, std::memory_order_relaxed);
}

guarded_range::~guarded_range() {
  if (slot_ == nullptr) return;
  const std::lock_guard lock(registering());
  slot_->now.store(slot::retired, std::memory_order_seq_cst);
  while (slot_->handlers.load(std::memory_order_seq_cst) != 0) ::sched_yield();
  {
    const sink_holder held;
    forget_patches(slot_->begin, slot_->end.load(std::memory_order_relaxed));
  }
  slot_->now.store(slot::unused, std::memory_order_relaxed);
  free_slots().push_back(slot_);  // cannot allocate: every slot was in it before
  registered.fetch_sub(1, std::memory_order_relaxed);
}

guarded_range::guarded_range(guarded_range&& other) noexcept
    : slot_(std::exchange(other.slot_, nullptr)) {}

guarded_range& guarded_range::operator=(guarded_range&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

void guarded_range::resize(std::size_t bytes) noexcept {
  const sink_holder held;
  const std::uintptr_t end = slot_->begin + bytes;
  const std::uintptr_t before = slot_->end.exchange(end, std::memory_order_acq_rel);
  // The new bytes are not replaced. (A range in which something was replaced is never extended.)
  if (slot_->void_from == before) slot_->void_from = end;
}

void guarded_range::change(int protection, replacement kind) noexcept {
  slot_->protection.store(protection, std::memory_order_relaxed);
  slot_->kind.store(kind, std::memory_order_seq_cst);
}

void guarded_range::let_children_inherit() noexcept { slot_->inherited_by_fork = true; }

void guarded_range::note_replaced() noexcept { detail::note_replaced(*slot_, slot_->begin); }

bool guarded_range::stands_in_for_parents() const noexcept {
  return slot_ != nullptr && slot_->stands_in;
}

void unblock_fault_signal() noexcept {
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &signal, nullptr);
}

std::size_t guarded_ranges() noexcept { return registered.load(std::memory_order_relaxed); }

}  // namespace shale::detail
