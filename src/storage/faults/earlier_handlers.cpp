#include "storage/faults/earlier_handlers.hpp"

#include <pthread.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace shale::detail {

namespace {

// The handlers that were installed before ours. Entry 0 is older than this library. The host
// program installed each later one over ours, and ours was then put in front of it again.
constexpr std::size_t chain_max = 8;
std::array<struct sigaction, chain_max> earlier;
// Whether each of them had asked to be called only once (SA_RESETHAND) and has been called.
std::array<std::atomic<bool>, chain_max> spent;
std::atomic<std::size_t> earlier_count = 0;

// The fault that this thread is passing on, and the number of handlers that it was passed to. If
// such a handler of the host calls ours again, the fault goes to the handler before it.
struct passing_on {
  std::size_t handlers = 0;
  const siginfo_t* info = nullptr;
  const void* context = nullptr;
  const void* frame = nullptr;
};
[[gnu::tls_model("initial-exec")]] thread_local passing_on passing;

// Returns whether this call comes from inside a handler that the fault was passed to. Such a
// handler may call ours directly, for example because it was installed over ours and calls its
// predecessor. The fault must then go to the next older handler; else the two would call each other
// for ever.
//
// `passing` describes the fault that this thread passed on last. Three facts decide together:
//   1. handlers > 0: a handler that we called has not returned.
//   2. The fault is the same one. A handler passes on its arguments, so at least one of the two
//      pointers is equal. (It may pass a copy or null for the other.)
//   3. This call is deeper in the stack (at a lower address) than the call that began to pass on.
// The third is needed because a handler may leave by a jump (siglongjmp). Then `handlers` is never
// decremented, and the kernel may put the next fault at the same addresses. That fault is not
// deeper than the recorded frame, so it counts as a new one, and passing begins again.
bool is_passing(const siginfo_t* info, const void* context, const void* frame) noexcept {
  return passing.handlers > 0 && (info == passing.info || context == passing.context) &&
         reinterpret_cast<std::uintptr_t>(frame) < reinterpret_cast<std::uintptr_t>(passing.frame);
}

// Whether an access raised the signal. Another process can raise it too, and so can the report of a
// damaged page that nobody touched.
bool is_raised_by_access(const siginfo_t* info) noexcept {
  return info->si_code > 0 && info->si_code != BUS_MCEERR_AO;
}

void die_of(int number, const siginfo_t* info) noexcept {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(number, &by_default, nullptr);
  // On return the access faults again and ends the process at the right place. A signal that no
  // access raised must be sent again.
  if (!is_raised_by_access(info)) raise(number);
}

bool are_equal(const struct sigaction& installed, signal_handler handler) noexcept {
  return (installed.sa_flags & SA_SIGINFO) != 0 && installed.sa_sigaction == handler;
}

bool are_equal(const struct sigaction& a, const struct sigaction& b) noexcept {
  if (a.sa_flags != b.sa_flags) return false;
  for (int signal_number = 1; signal_number < NSIG; ++signal_number)
    if (sigismember(&a.sa_mask, signal_number) != sigismember(&b.sa_mask, signal_number))
      return false;
  return (a.sa_flags & SA_SIGINFO) != 0 ? a.sa_sigaction == b.sa_sigaction
                                        : a.sa_handler == b.sa_handler;
}

}  // namespace

[[gnu::noinline]] void pass_on(int number, siginfo_t* info, void* context) noexcept {
  const std::size_t count = earlier_count.load(std::memory_order_acquire);
  const void* const frame = __builtin_frame_address(0);
  if (!is_passing(info, context, frame)) passing = {0, info, context, frame};
  const std::size_t index = count - 1 - std::min(passing.handlers, count - 1);
  const struct sigaction& next = earlier[index];
  const bool informed = (next.sa_flags & SA_SIGINFO) != 0;
  const bool by_default = !informed && next.sa_handler == SIG_DFL;
  if (by_default || spent[index].load(std::memory_order_relaxed)) return die_of(number, info);
  if (!informed && next.sa_handler == SIG_IGN) {
    if (is_raised_by_access(info)) die_of(number, info);  // a real fault cannot be ignored
    return;
  }
  if ((next.sa_flags & SA_RESETHAND) != 0) spent[index].store(true, std::memory_order_relaxed);
  // `mask` is the signal mask that the kernel would have set for that handler.
  sigset_t mask = static_cast<const ucontext_t*>(context)->uc_sigmask;
  for (int signal_number = 1; signal_number < NSIG; ++signal_number)
    if (sigismember(&next.sa_mask, signal_number) == 1) sigaddset(&mask, signal_number);
  if ((next.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, number);
  sigset_t present_mask;
  pthread_sigmask(SIG_SETMASK, &mask, &present_mask);
  ++passing.handlers;
  if (informed) next.sa_sigaction(number, info, context);
  else next.sa_handler(number);
  --passing.handlers;
  pthread_sigmask(SIG_SETMASK, &present_mask, nullptr);
}

void install_in_front(signal_handler handler) noexcept {
  struct sigaction current {};
  sigaction(SIGBUS, nullptr, &current);
  const std::size_t count = earlier_count.load(std::memory_order_relaxed);
  if (are_equal(current, handler)) return;
  if (count > 0 && are_equal(current, earlier[count - 1])) {
    spent[count - 1].store(false, std::memory_order_relaxed);  // it is installed anew
  } else {
    if (count == chain_max) return;
    // The entry must be there before our handler can run and use it.
    earlier[count] = current;
    earlier_count.store(count + 1, std::memory_order_release);
  }
  struct sigaction front {};
  front.sa_sigaction = handler;
  front.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&front.sa_mask);
  sigaction(SIGBUS, &front, nullptr);
}

}  // namespace shale::detail
