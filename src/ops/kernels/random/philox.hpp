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

/// Word k of block i is `word[4 * i + k]`.
struct words {
  alignas(64) u32 word[4 * blocks_max];
};

/// The numbers of the blocks are the first two words of their counters.
struct block_numbers {
  alignas(64) u64 number[blocks_max];
};

// The products of the lower halves of 64-bit lanes. GCC 12 would compile a plain product of
// integers to a product of all 64 bits. Encryption then takes 1.4 (AVX-512) to 6 times as long
// (measured).
//
// `upper_half` moves the upper half of a lane down, by a shuffle: a shift would use the port of the
// products. What it leaves in the upper half has no meaning.
//
// `blocks_in_order` takes the first two words of as many blocks as there are lanes, a pair in each
// lane, and the other two. It puts them in the order of memory, block after block.
#if defined(__AVX512F__)
typedef u64 lanes __attribute__((vector_size(64)));
// The forms with masks, because GCC 12 warns of uninitialized vectors inside the others.
inline lanes product_of_halves(lanes a, lanes b) {
  return (lanes)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)b);
}
inline lanes upper_half(lanes a) {
  return (lanes)_mm512_maskz_shuffle_epi32(0xffff, (__m512i)a, _MM_PERM_DDBB);
}
inline void blocks_in_order(lanes first, lanes second, lanes (&out)[2]) {
  out[0] = __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
  out[1] = __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
}
#elif defined(__AVX2__)
typedef u64 lanes __attribute__((vector_size(32)));
inline lanes product_of_halves(lanes a, lanes b) {
  return (lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
inline lanes upper_half(lanes a) { return (lanes)_mm256_shuffle_epi32((__m256i)a, 0xf5); }
inline void blocks_in_order(lanes first, lanes second, lanes (&out)[2]) {
  out[0] = __builtin_shufflevector(first, second, 0, 4, 1, 5);
  out[1] = __builtin_shufflevector(first, second, 2, 6, 3, 7);
}
#else
typedef u64 lanes __attribute__((vector_size(16)));
#if defined(__SSE2__)
inline lanes product_of_halves(lanes a, lanes b) {
  return (lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
}
inline lanes upper_half(lanes a) { return (lanes)_mm_shuffle_epi32((__m128i)a, 0xf5); }
#else
inline lanes product_of_halves(lanes a, lanes b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
inline lanes upper_half(lanes a) { return a >> 32; }
#endif
inline void blocks_in_order(lanes first, lanes second, lanes (&out)[2]) {
  out[0] = __builtin_shufflevector(first, second, 0, 2);
  out[1] = __builtin_shufflevector(first, second, 1, 3);
}
#endif

inline constexpr int lane_count = static_cast<int>(sizeof(lanes) / sizeof(u64));

/// The words of pairs: `low` in the lower halves of lanes, `high` in the upper ones. Upper halves of
/// the operands have no meaning.
inline lanes pairs(lanes low, lanes high) { return (low & 0xffffffffu) | high << 32; }

/// Encrypts the counters of blocks. Their third word is `third`, and their last one 0. It may
/// encrypt a few blocks more.
/// Source   J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as
///          1, 2, 3, SC11 (2011): the multipliers, the Weyl constants and ten rounds
inline void encrypt(const block_numbers& blocks, u32 third, u64 seed, int count, words& encrypted) {
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
    lanes w;
    __builtin_memcpy(&w, &blocks.number[i], sizeof(w));
    lanes x = upper_half(w), y = zero + third, z = zero;
#pragma GCC unroll 10
    for (const auto& key : keys) {
      const lanes product_w = product_of_halves(w, factor_a);
      const lanes product_y = product_of_halves(y, factor_c);
      w = upper_half(product_y) ^ x ^ (zero + key[0]);
      y = upper_half(product_w) ^ z ^ (zero + key[1]);
      x = product_y;
      z = product_w;
    }
    lanes in_order[2];
    blocks_in_order(pairs(w, x), pairs(y, z), in_order);
    __builtin_memcpy(&encrypted.word[4 * i], in_order, sizeof(in_order));
  }
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
