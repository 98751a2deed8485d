// The words that random numbers are made of, by Philox4x32-10 written as in its paper.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace shale::test {

using four_words = std::array<std::uint32_t, 4>;
using two_words = std::array<std::uint32_t, 2>;

inline four_words philox(four_words counter, two_words key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(left)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// The words of the element at a position, if each element has `width` of them.
inline std::vector<std::uint32_t> words_of(std::uint64_t seed, std::uint64_t position,
                                           std::uint32_t width) {
  const std::uint64_t block = position / (4 / width);
  const four_words all =
      philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), width, 0},
             {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const auto* first = all.data() + position % (4 / width) * width;
  return {first, first + width};
}

inline std::uint32_t word(std::uint64_t seed, std::uint64_t position) {
  return words_of(seed, position, 1)[0];
}
inline std::uint64_t long_word(std::uint64_t seed, std::uint64_t position) {
  const auto words = words_of(seed, position, 2);
  return std::uint64_t{words[1]} << 32 | words[0];
}

}  // namespace shale::test
