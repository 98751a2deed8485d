// Encrypts counters with Philox4x32-10, many of them side by side in vector lanes. random.cpp says
// what counters and words mean.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Blocks that are computed side by side. Their words and results lie in the L1 cache.
inline constexpr int blocks_max = 64;

/// Word k of block i is the lower half of `word[k][i]`. The upper half has no meaning.
struct words {
  alignas(64) u64 word[4][blocks_max];
};

// The products of the lower halves of 64-bit lanes. GCC 12 would compile a plain product of
// integers to a product of all 64 bits. Encryption then takes 1.4 (AVX-512) to 6 times as long
// (measured).
#if defined(__AVX512F__)
typedef u64 lanes __attribute__((vector_size(64)));
inline lanes product_of_halves(lanes a, lanes b) {
  // Not _mm512_mul_epu32: GCC 12 warns of an uninitialized vector inside it.
  return (lanes)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
typedef u64 lanes __attribute__((vector_size(32)));
inline lanes product_of_halves(lanes a, lanes b) {
  return (lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
#elif defined(__SSE2__)
typedef u64 lanes __attribute__((vector_size(16)));
inline lanes product_of_halves(lanes a, lanes b) {
  return (lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
}
#else
typedef u64 lanes __attribute__((vector_size(16)));
inline lanes product_of_halves(lanes a, lanes b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
#endif

inline constexpr int lane_count = static_cast<int>(sizeof(lanes) / sizeof(u64));

/// Encrypts the counters whose words lie in `blocks`. It may encrypt a few blocks more.
/// Source   J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as
///          1, 2, 3, SC11 (2011): the multipliers, the Weyl constants and ten rounds
inline void encrypt(words& blocks, u64 seed, int count) {
  constexpr int rounds = 10;
  u64 keys[rounds][2];
  u32 key_a = static_cast<u32>(seed), key_b = static_cast<u32>(seed >> 32);
  for (auto& key : keys) {
    key[0] = key_a;
    key[1] = key_b;
    key_a += 0x9E3779B9u;
    key_b += 0xBB67AE85u;
  }
  const lanes zero = {};
  const lanes factor_a = zero + 0xD2511F53u, factor_c = zero + 0xCD9E8D57u;
  for (int i = 0; i < count; i += lane_count) {
    auto& a = *reinterpret_cast<lanes*>(&blocks.word[0][i]);
    auto& b = *reinterpret_cast<lanes*>(&blocks.word[1][i]);
    auto& c = *reinterpret_cast<lanes*>(&blocks.word[2][i]);
    auto& d = *reinterpret_cast<lanes*>(&blocks.word[3][i]);
    lanes w = a, x = b, y = c, z = d;
#pragma GCC unroll 10
    for (const auto& key : keys) {
      const lanes product_w = product_of_halves(w, factor_a);
      const lanes product_y = product_of_halves(y, factor_c);
      w = (product_y >> 32) ^ x ^ (zero + key[0]);
      y = (product_w >> 32) ^ z ^ (zero + key[1]);
      x = product_y;
      z = product_w;
    }
    a = w;
    b = x;
    c = y;
    d = z;
  }
}

inline u64 joined(u32 low, u32 high) { return u64{high} << 32 | low; }

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
