#include "parallel/stores/store_choice.hpp"

#include <algorithm>
#include <bit>

namespace shale::parallel {

namespace {

// A smaller output may still be in a cache when it is read again. The time of the pass that writes
// it does not show that gain.
constexpr std::uint64_t nontemporal_bytes_min = std::uint64_t{4} << 20;

// Non-temporal stores must be faster by a thirtieth: a difference below that is noise.
constexpr double gain_min = 0.97;

constexpr std::uint64_t review_max = 4096;

// Traffic is classified by the pattern of the stores, by the operands that are read for each one
// written (none, one, more), by the bytes that are written (powers of two), and by the threads (one
// or several).
constexpr std::size_t patterns = 3;
constexpr std::size_t read_kinds = 3;
constexpr std::size_t size_kinds = 12;

store_trial& trial_of(store_pattern pattern, std::uint64_t read, std::uint64_t written,
                      int threads) {
  static std::array<store_trial, patterns * read_kinds * size_kinds * 2> trials;
  const std::size_t reads = read < written / 2 ? 0 : read < written + written / 2 ? 1 : 2;
  const auto size = std::min<std::size_t>(
      static_cast<std::size_t>(std::bit_width(written / nontemporal_bytes_min)) - 1,
      size_kinds - 1);
  const std::size_t kind = static_cast<std::size_t>(pattern) * read_kinds + reads;
  return trials[(kind * size_kinds + size) * 2 + (threads > 1 ? 1 : 0)];
}

// Whether non-temporal stores may be faster at all: an output that is read in the same pass is in
// the cache, and the pages of mapped files are written by faults.
bool may_bypass_caches(std::span<const loop_operand> operands) {
  for (const loop_operand& out : operands) {
    if (!out.written) continue;
    if (out.updated || out.tiles) return false;
    const storage_kind kind = out.values.storage().kind();
    if (kind != storage_kind::heap && kind != storage_kind::adopted) return false;
    for (const loop_operand& other : operands)
      if (!other.written && !other.tiles &&
          other.values.storage().data() == out.values.storage().data())
        return false;
  }
  return true;
}

constexpr std::uint8_t not_forced = 2;
std::atomic<std::uint8_t> forced = not_forced;

}  // namespace

void store_trial::pass_begins() noexcept {
  if (decided_.load(std::memory_order_relaxed) == undecided) return;
  const std::lock_guard lock(mutex_);
  if (++passes_ < review_) return;
  passes_ = 0;
  taken_ = {};
  units_.store(0, std::memory_order_relaxed);
  decided_.store(undecided, std::memory_order_relaxed);
}

std::optional<store_mode> store_trial::decision() const noexcept {
  const std::uint8_t decided = decided_.load(std::memory_order_relaxed);
  if (decided == undecided) return std::nullopt;
  return static_cast<store_mode>(decided);
}

store_mode store_trial::next(int threads) noexcept {
  const std::uint32_t unit = units_.fetch_add(1, std::memory_order_relaxed);
  return static_cast<store_mode>(unit / static_cast<std::uint32_t>(std::max(threads, 1)) % 2);
}

void store_trial::add(store_mode mode, double nanoseconds) noexcept {
  const std::lock_guard lock(mutex_);
  if (decided_.load(std::memory_order_relaxed) != undecided) return;
  const auto index = static_cast<std::size_t>(mode);
  if (taken_[index] < samples_wanted) samples_[index][taken_[index]++] = nanoseconds;
  if (taken_[0] < samples_wanted || taken_[1] < samples_wanted) return;
  std::array<double, 2> median{};
  for (std::size_t k = 0; k < 2; ++k) {
    auto* const middle = samples_[k].data() + samples_wanted / 2;
    std::nth_element(samples_[k].begin(), middle, samples_[k].end());
    median[k] = *middle;
  }
  const bool faster = median[1] < gain_min * median[0];
  // A clear decision lasts longer each time.
  const bool clear = faster || median[0] < gain_min * median[1];
  review_ = clear ? std::min(review_ * 4, review_max) : 4;
  passes_ = 0;
  decided_.store(static_cast<std::uint8_t>(faster ? store_mode::nontemporal : store_mode::ordinary),
                 std::memory_order_relaxed);
}

store_choice::store_choice(std::span<const loop_operand> operands, store_pattern pattern,
                           bool allowed, int threads)
    : threads_(threads) {
  if (!has_nontemporal_stores || !allowed || !may_bypass_caches(operands)) return;
  if (const std::uint8_t mode = forced.load(std::memory_order_relaxed); mode != not_forced) {
    fixed_ = static_cast<store_mode>(mode);
    return;
  }
  std::uint64_t written = 0;
  for (const loop_operand& operand : operands)
    if (operand.written) written += operand.values.size_bytes();
  if (written < nontemporal_bytes_min) return;
  trial_ = &trial_of(pattern, bytes_read_once(operands), written, threads);
  trial_->pass_begins();
}

void store_choice::force(std::optional<store_mode> mode) noexcept {
  forced.store(mode ? static_cast<std::uint8_t>(*mode) : not_forced, std::memory_order_relaxed);
}

}  // namespace shale::parallel
