#include "parallel/executor/memory_tokens.hpp"

#include <algorithm>

namespace shale::parallel {

std::size_t memory_tokens::left_bytes() const noexcept {
  return budget_bytes_ - std::min(held_bytes_.load(std::memory_order_relaxed), budget_bytes_);
}

std::size_t memory_tokens::held_bytes() const noexcept {
  return held_bytes_.load(std::memory_order_relaxed);
}

void memory_tokens::take(std::size_t bytes) noexcept {
  note_peak(held_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

std::size_t memory_tokens::take_at_most(std::size_t bytes) noexcept {
  std::size_t held = held_bytes_.load(std::memory_order_relaxed);
  const auto left = [&] { return budget_bytes_ - std::min(held, budget_bytes_); };
  std::size_t taken = std::min(bytes, left());
  while (!held_bytes_.compare_exchange_weak(held, held + taken, std::memory_order_relaxed))
    taken = std::min(bytes, left());
  note_peak(held + taken);
  return taken;
}

void memory_tokens::note_peak(std::size_t held) noexcept {
  std::size_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (held > peak && !peak_bytes_.compare_exchange_weak(peak, held, std::memory_order_relaxed)) {
  }
}

void memory_tokens::give(std::size_t bytes) noexcept {
  held_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace shale::parallel
