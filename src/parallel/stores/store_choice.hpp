// Chooses between ordinary and non-temporal stores (see nontemporal_copy.hpp) for the outputs of a
// pass, by measurements in this process.
//
// No property of the machine tells which stores are faster. It depends on the memory, on the caches
// that this process really gets (a virtual machine shows those of its host), on the number of
// operands, and on how many threads work. So the first units of large passes try both in turns,
// until each has 24 samples. The medians of their times per byte decide for later passes of the
// same *traffic*: those that store in the same way (store_pattern), read about as much for each byte
// that they write (nothing, one byte, more), write about as many bytes (powers of two), and run on
// one thread or on several.
//
// Another trial reviews a decision later. If the difference was small, the decision lasts for 4
// passes. Decisions with a clear difference last four times as long each time: 16 passes, then 64,
// up to 4096.
//
// Invariants
//   stores.1  results do not depend on the choice
//   stores.2  a pass stores as usual and measures nothing if it writes less than 4 MiB, if it also
//             reads its output, or if its output is mapped from a file
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "parallel/blocks/nontemporal_copy.hpp"
#include "parallel/operands/loop_operand.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::parallel {

enum class store_mode : std::uint8_t { ordinary, nontemporal };

/// How a pass comes to its stores.
enum class store_pattern : std::uint8_t {
  light,    ///< memory is slower than its kernels
  heavy,    ///< its kernels may be slower than memory
  crossed,  ///< it stores along one axis what lies along another
};

/// The samples of one kind of traffic, and the decision that follows from them.
/// Threads  any, at any time
class store_trial {
 public:
  /// The samples of each mode that make a decision.
  static constexpr std::size_t samples_wanted = 24;

  /// Counts a pass. Begins a new trial if the decision is due for a review.
  void pass_begins() noexcept;

  /// The decision; nothing while a trial runs.
  std::optional<store_mode> decision() const noexcept;

  /// The mode of the next unit of a trial. `threads` units in a row get the same mode.
  store_mode next(int threads) noexcept;

  /// Adds a sample: a unit took `nanoseconds` for each byte that it wrote.
  void add(store_mode mode, double nanoseconds) noexcept;

 private:
  enum : std::uint8_t { undecided = 2 };

  std::atomic<std::uint8_t> decided_ = undecided;  // a store_mode, or undecided
  std::atomic<std::uint32_t> units_ = 0;           // of this trial
  detail::fork_safe_mutex mutex_{};                // for all below
  std::array<std::array<double, samples_wanted>, 2> samples_{};
  std::array<std::size_t, 2> taken_{};
  std::uint64_t passes_ = 0;  // since the decision
  std::uint64_t review_ = 4;  // passes before the next review
};

/// How the units of one pass store.
/// Threads  any, at any time
class store_choice {
 public:
  /// `threads` threads work on the pass. `allowed` tells whether its body can store non-temporally.
  store_choice(std::span<const loop_operand> operands, store_pattern pattern, bool allowed,
               int threads);

  /// Whether units of this pass may store non-temporally.
  bool may_be_nontemporal() const noexcept {
    return trial_ != nullptr || fixed_ == store_mode::nontemporal;
  }

  /// Runs `body(mode)`, which writes `bytes` bytes. They are visible to other threads that
  /// synchronise with this one afterwards, whatever the mode.
  template <class Body>
  void run(std::size_t bytes, Body&& body) {
    const std::optional<store_mode> decided = trial_ ? trial_->decision() : fixed_;
    const store_mode mode = decided ? *decided : trial_->next(threads_);
    using clock = std::chrono::steady_clock;
    const clock::time_point start = decided ? clock::time_point() : clock::now();
    body(mode);
    if (mode == store_mode::nontemporal) order_nontemporal_stores();
    if (decided || bytes == 0) return;
    const std::chrono::duration<double, std::nano> taken = clock::now() - start;
    trial_->add(mode, taken.count() / static_cast<double>(bytes));
  }

  /// Makes all passes that have a choice use one mode, without measuring, until it is called with
  /// nothing. For tests.
  static void force(std::optional<store_mode> mode) noexcept;

 private:
  store_trial* trial_ = nullptr;  // null: every unit uses `fixed_`
  store_mode fixed_ = store_mode::ordinary;
  int threads_;
};

}  // namespace shale::parallel
