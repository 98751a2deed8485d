#include "storage/fault_guard.hpp"

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
#include <utility>
#include <vector>

#include "shale/error.hpp"
#include "storage/pages.hpp"

namespace shale::detail {

// The fields are written before the slot becomes active, and again only when no handler uses it.
struct guarded_range::slot {
  enum state : std::uint8_t { unused, active, retired };

  std::atomic<std::uint8_t> now = unused;
  std::atomic<std::uint32_t> handlers = 0;  // running handlers that may use the slot
  std::uintptr_t begin = 0;
  std::atomic<std::uintptr_t> end = 0;
  std::uint64_t file_offset = 0;
  std::atomic<int> protection = 0;
  std::atomic<replacement> how = replacement::zeros;
  bool inherited_by_fork = true;
  fault_mark* mark = nullptr;
  std::uintptr_t void_from = 0;  // sink: [void_from, end) has been replaced; under `sink_lock`
};

void fault_mark::set(std::uint64_t at) noexcept {
  std::uint64_t lowest = file_offset.load(std::memory_order_relaxed);
  while (at < lowest && !file_offset.compare_exchange_weak(lowest, at, std::memory_order_relaxed)) {
  }
  failed.store(true, std::memory_order_release);
}

namespace {

using slot = guarded_range::slot;

// ---- the list of ranges: chunks that are never freed, so that a handler can walk it unlocked ----

struct chunk {
  std::array<slot, 256> slots;
  std::atomic<chunk*> next = nullptr;
};

std::atomic<chunk*> first_chunk = nullptr;

// Serialises registering; no handler takes it.
std::mutex& registering() {
  static std::mutex& lock = *new std::mutex;
  return lock;
}
std::vector<slot*>& free_slots() {
  static std::vector<slot*>& slots = *new std::vector<slot*>;
  return slots;
}
std::atomic<std::size_t> registered = 0;

void add_chunk() {
  auto& slots = free_slots();
  slots.reserve(slots.capacity() + 256);
  auto* const fresh = new chunk;
  for (auto each = fresh->slots.rbegin(); each != fresh->slots.rend(); ++each)
    slots.push_back(&*each);
  fresh->next.store(first_chunk.load(std::memory_order_relaxed), std::memory_order_relaxed);
  first_chunk.store(fresh, std::memory_order_release);
}

// ---- the system, without what interceptors and libraries put between ----------------------------

// A process at its limit of mappings may not even replace one. These few, kept for that moment,
// make room; each registration keeps them again.
constexpr std::size_t spare_mappings = 16;
std::atomic<std::uintptr_t> spare = 0;

bool give_up_spare() noexcept {
  const std::uintptr_t pages = spare.exchange(0, std::memory_order_acq_rel);
  return pages != 0 && ::syscall(SYS_munmap, pages, spare_mappings * page_bytes()) == 0;
}

void keep_spare() noexcept {
  if (spare.load(std::memory_order_relaxed) != 0) return;
  const std::size_t page = page_bytes();
  void* const pages = ::mmap(nullptr, spare_mappings * page, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return;
  // Neighbours with different protections stay mappings of their own.
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

// ---- the ring of windows (guard.3) --------------------------------------------------------------

constexpr std::size_t window_bytes = std::size_t{256} << 10;

// More than one instruction can touch at once (a gather of 16 unaligned elements: 32 pages), so
// that a store always gets past its own faults.
constexpr std::size_t ring_windows = 64;

struct window {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // 0: none
};

std::atomic_flag sink_lock = ATOMIC_FLAG_INIT;
std::array<window, ring_windows> ring;  // under sink_lock
std::size_t next_window = 0;            // under sink_lock

// An empty file: every access to a mapping of it faults, so that each window of a replaced range
// asks for its memory when it is touched, and can be taken back.
int void_descriptor = -1;
struct stat void_identity {};

// Holds the sink with every signal blocked: a handler that interrupted the holder would wait for
// ever.
class sink_holder {
 public:
  sink_holder() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    while (sink_lock.test_and_set(std::memory_order_acquire)) ::sched_yield();
  }
  ~sink_holder() {
    sink_lock.clear(std::memory_order_release);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  sink_holder(const sink_holder&) = delete;
  sink_holder& operator=(const sink_holder&) = delete;

 private:
  sigset_t before_{};
};

// Neighbouring pieces of the void merge in the kernel's books when their offsets continue.
bool map_void(std::uintptr_t begin, std::uintptr_t end, int protection) noexcept {
  // A host program that closes every descriptor may have given this number to a file of its own.
  struct stat now {};
  if (::fstat(void_descriptor, &now) != 0 || now.st_ino != void_identity.st_ino ||
      now.st_dev != void_identity.st_dev)
    return false;
  return map_fixed(begin, end, protection, MAP_SHARED, void_descriptor, begin);
}

void take_back(window& old) noexcept {
  // Where the void is gone, the memory stays: living on goes before the bound.
  if (old.end != 0) map_void(old.begin, old.end, PROT_READ | PROT_WRITE);
  old = {};
}

bool open_window(slot& in, std::uintptr_t page, int protection) noexcept {
  const std::uintptr_t end = in.end.load(std::memory_order_relaxed);
  if (page < in.void_from) {
    if (!map_void(page, in.void_from, protection)) return false;
    in.void_from = page;
  }
  window fresh{std::max(align_down(page, window_bytes), in.void_from),
               std::min(align_down(page, window_bytes) + window_bytes, end)};
  // Another thread may have faulted in the same window first.
  for (const window& each : ring)
    if (each.begin <= page && page < each.end) return true;
  take_back(ring[next_window]);
  if (!map_zeros(fresh.begin, fresh.end, protection)) {
    // Too many mappings: make room with what this ring holds, once.
    for (window& each : ring) take_back(each);
    if (!map_zeros(fresh.begin, fresh.end, protection)) return false;
  }
  ring[next_window] = fresh;
  next_window = (next_window + 1) % ring_windows;
  return true;
}

void forget_windows(std::uintptr_t begin, std::uintptr_t end) noexcept {
  for (window& each : ring)
    if (each.end != 0 && begin < each.end && each.begin < end) each = {};
}

// ---- one fault ----------------------------------------------------------------------------------

bool replace_rest(slot& in, std::uintptr_t page) noexcept {
  in.mark->set(in.file_offset + (page - in.begin));
  const int protection = in.protection.load(std::memory_order_relaxed);
  if (in.how.load(std::memory_order_relaxed) == replacement::sink) {
    const sink_holder held;
    if (open_window(in, page, protection)) return true;
  }
  const std::uintptr_t end = in.end.load(std::memory_order_relaxed);
  if (map_zeros(page, end, protection)) return true;
  // Splitting a mapping can exceed the limit on their number; replacing it whole cannot. Its intact
  // bytes are given up, under a mark that says so already.
  in.mark->set(in.file_offset);
  return map_zeros(in.begin, end, protection);
}

bool repair(std::uintptr_t address) noexcept {
  for (chunk* each = first_chunk.load(std::memory_order_acquire); each != nullptr;
       each = each->next.load(std::memory_order_relaxed)) {
    for (slot& candidate : each->slots) {
      if (candidate.now.load(std::memory_order_relaxed) != slot::active) continue;
      // Announce first, then look: whoever retires the slot does it the other way round.
      candidate.handlers.fetch_add(1, std::memory_order_seq_cst);
      bool done = false;
      if (candidate.now.load(std::memory_order_seq_cst) == slot::active &&
          candidate.begin <= address && address < candidate.end.load(std::memory_order_acquire))
        done = replace_rest(candidate, align_down(address, page_bytes()));
      candidate.handlers.fetch_sub(1, std::memory_order_release);
      if (done) return true;
    }
  }
  return false;
}

// ---- the handler and those before it ------------------------------------------------------------

// [0] was there before this library; each further one was put over ours by the host program, and
// ours was put in front of it again.
constexpr std::size_t chain_max = 8;
std::array<struct sigaction, chain_max> earlier;
std::atomic<std::size_t> earlier_count = 0;

// The fault that this thread is passing on right now, and to how many handlers: a handler of the
// host that calls ours in turn gets the one before it.
struct passing_on {
  std::size_t handlers = 0;
  const siginfo_t* about = nullptr;
  const void* context = nullptr;
  const void* frame = nullptr;
};
[[gnu::tls_model("initial-exec")]] thread_local passing_on passing;

// A handler that jumped out left its entry behind. A call from inside one is about the same fault
// and deeper in the stack; a new fault with the same addresses is exactly as deep.
bool is_passing(const siginfo_t* about, const void* context, const void* frame) noexcept {
  return passing.handlers > 0 && (about == passing.about || context == passing.context) &&
         reinterpret_cast<std::uintptr_t>(frame) < reinterpret_cast<std::uintptr_t>(passing.frame);
}

void die_of(int number, const siginfo_t* about) noexcept {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(number, &by_default, nullptr);
  // The access faults again on return and ends the process where it happened; a sent signal has to
  // be sent again.
  if (about->si_code <= 0) raise(number);
}

[[gnu::noinline]] void pass_on(int number, siginfo_t* about, void* context) noexcept {
  const std::size_t count = earlier_count.load(std::memory_order_acquire);
  const void* const frame = __builtin_frame_address(0);
  if (!is_passing(about, context, frame)) passing = {0, about, context, frame};
  const std::size_t at = count - 1 - std::min(passing.handlers, count - 1);
  const struct sigaction& next = earlier[at];
  const bool informed = (next.sa_flags & SA_SIGINFO) != 0;
  if (!informed && next.sa_handler == SIG_DFL) return die_of(number, about);
  if (!informed && next.sa_handler == SIG_IGN) {
    if (about->si_code > 0) die_of(number, about);  // a real fault cannot be ignored
    return;
  }
  // The mask that the kernel would have given it.
  sigset_t mask = static_cast<const ucontext_t*>(context)->uc_sigmask;
  for (int each = 1; each < NSIG; ++each)
    if (sigismember(&next.sa_mask, each) == 1) sigaddset(&mask, each);
  if ((next.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, number);
  sigset_t ours;
  pthread_sigmask(SIG_SETMASK, &mask, &ours);
  ++passing.handlers;
  if (informed) next.sa_sigaction(number, about, context);
  else next.sa_handler(number);
  --passing.handlers;
  pthread_sigmask(SIG_SETMASK, &ours, nullptr);
}

bool access_raised(const siginfo_t* about) noexcept {
  return about->si_code == BUS_ADRERR || about->si_code == BUS_OBJERR ||
         about->si_code == BUS_MCEERR_AR;
}

void handle(int number, siginfo_t* about, void* context) {
  const int before = errno;
  if (!access_raised(about) || !repair(reinterpret_cast<std::uintptr_t>(about->si_addr)))
    pass_on(number, about, context);
  errno = before;
}

// ---- fork ---------------------------------------------------------------------------------------

std::atomic<unsigned> forks = 0;
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

void start_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  for (chunk* each = first_chunk.load(); each != nullptr; each = each->next.load()) {
    for (slot& in : each->slots) {
      in.handlers.store(0, std::memory_order_relaxed);  // their threads stayed with the parent
      if (in.now.load() != slot::active || in.inherited_by_fork) continue;
      in.now.store(slot::retired);
      forget_windows(in.begin, in.end.load());
    }
  }
  resume_after_fork();
}

// ---- installing ---------------------------------------------------------------------------------

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handle;
}

// Under `registering`.
void install() {
  if (void_descriptor < 0) {
    page_bytes();  // asked here, so that no handler is the first to ask
    const int made = ::memfd_create("shale void", MFD_CLOEXEC);
    if (made < 0)
      throw error::from_errno(errc::io, "the guard of mappings could not be set up", errno);
    ::fstat(made, &void_identity);
    void_descriptor = made;
    pthread_atfork(prepare_fork, resume_after_fork, start_child);
  }
  keep_spare();
  struct sigaction current {};
  sigaction(SIGBUS, nullptr, &current);
  const std::size_t count = earlier_count.load(std::memory_order_relaxed);
  if (is_ours(current) || count == chain_max) return;
  // In place before ours can run and look for it.
  earlier[count] = current;
  earlier_count.store(count + 1, std::memory_order_release);
  struct sigaction ours {};
  ours.sa_sigaction = handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace

guarded_range::guarded_range(const description& what) {
  const std::lock_guard lock(registering());
  install();
  if (free_slots().empty()) add_chunk();
  slot_ = free_slots().back();
  free_slots().pop_back();
  slot_->begin = reinterpret_cast<std::uintptr_t>(what.address);
  slot_->end.store(slot_->begin + what.bytes, std::memory_order_relaxed);
  slot_->file_offset = what.file_offset;
  slot_->protection.store(what.protection, std::memory_order_relaxed);
  slot_->how.store(what.how, std::memory_order_relaxed);
  slot_->inherited_by_fork = what.inherited_by_fork;
  slot_->mark = what.mark;
  slot_->void_from = slot_->begin + what.bytes;
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
    forget_windows(slot_->begin, slot_->end.load(std::memory_order_relaxed));
  }
  slot_->now.store(slot::unused, std::memory_order_relaxed);
  free_slots().push_back(slot_);  // has room: every slot was in it once
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
  // What is new has not been replaced; had anything been, it would not be continued.
  if (slot_->void_from == before) slot_->void_from = end;
}

void guarded_range::change(int protection, replacement how) noexcept {
  slot_->protection.store(protection, std::memory_order_relaxed);
  slot_->how.store(how, std::memory_order_seq_cst);
}

void unblock_fault_signal() noexcept {
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &signal, nullptr);
}

std::size_t guarded_ranges() noexcept { return registered.load(std::memory_order_relaxed); }

unsigned fork_generation() noexcept { return forks.load(std::memory_order_relaxed); }

}  // namespace shale::detail
