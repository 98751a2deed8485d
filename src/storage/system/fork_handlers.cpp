#include "storage/system/fork_handlers.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <type_traits>

namespace shale::detail {

namespace {

constexpr std::size_t parts = static_cast<std::size_t>(forking_part::guarded_ranges) + 1;

constinit std::atomic<unsigned> generation = 0;
constinit std::array<std::atomic<const fork_handlers*>, parts> registered{};

// Serialises forks, and guards `preparing`. Nothing here has a destructor: static objects may fork
// while the process ends.
constinit std::mutex forking;
static_assert(std::is_trivially_destructible_v<std::mutex>);
constinit std::array<const fork_handlers*, parts> preparing{};  // for the fork in progress

void call(void (*handler)()) {
  if (handler != nullptr) handler();
}

void prepare() {
  forking.lock();
  for (std::size_t part = 0; part < parts; ++part) {
    preparing[part] = registered[part].load(std::memory_order_acquire);
    if (preparing[part] != nullptr) call(preparing[part]->prepare);
  }
}

void go_on(void (*fork_handlers::*handler)()) {
  for (std::size_t part = parts; part-- > 0;)
    if (preparing[part] != nullptr) call(preparing[part]->*handler);
  forking.unlock();
}

void go_on_in_parent() { go_on(&fork_handlers::in_parent); }

void go_on_in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  go_on(&fork_handlers::in_child);
}

int install() noexcept {
  static const int result = ::pthread_atfork(prepare, go_on_in_parent, go_on_in_child);
  return result;
}

// This runs at program start, so that no thread forks while another one installs the handlers.
[[maybe_unused]] const int installed_at_load = install();

}  // namespace

int on_fork(forking_part part, const fork_handlers& handlers) noexcept {
  registered[static_cast<std::size_t>(part)].store(&handlers, std::memory_order_release);
  return install();
}

unsigned fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

bool owning_process::is_this_one() const noexcept {
  return generation_ == fork_generation() && process_ == ::getpid();
}

}  // namespace shale::detail
