// Collects the words that name a form: what a kept value depends on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shale/dims.hpp"

namespace shale::parallel {

/// A list of words and its hash.
/// Cost     allocates nothing
class form_key {
 public:
  void add(std::uint64_t word) noexcept {
    if (used_ == words_max) {
      overflown_ = true;
      return;
    }
    words_[used_++] = word;
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
    hash_ = (hash_ ^ word) * odd;
    hash_ ^= hash_ >> 32;
  }
  void add(const dims& values) noexcept {
    for (const index_t value : values) add(static_cast<std::uint64_t>(value));
  }

  /// Whether a word did not fit. Such a key names nothing.
  bool overflown() const noexcept { return overflown_; }

  std::span<const std::uint64_t> words() const noexcept { return {words_.data(), used_}; }
  std::uint64_t hash() const noexcept { return hash_; }

 private:
  static constexpr std::size_t words_max = 160;

  bool overflown_ = false;
  std::size_t used_ = 0;
  std::uint64_t hash_ = 0;
  std::array<std::uint64_t, words_max> words_;  // only the first used_ are set
};

}  // namespace shale::parallel
