// Converts vectors and runs of float16 and bfloat16 to float32 and back, by instructions of the
// processor where it has them.
//
// Results have the bits of `widen` and `narrow_to`, with one exception: the processor makes
// signalling NaNs of float16 quiet when it widens a vector. Runs with a NaN are therefore widened
// one element at a time; functions of vectors make NaNs quiet anyway.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ops/kernels/elementwise/loops.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

#if defined(__AVX512F__)
#define SHALE_SMALL_FLOAT_VECTORS
typedef std::uint32_t small_words __attribute__((vector_size(64)));
inline constexpr index_t smalls_at_once = 16;

inline __m512 widened_vector(const half* from) {
  __m256i narrow;
  __builtin_memcpy(&narrow, from, sizeof(narrow));
  return _mm512_maskz_cvtph_ps(0xffff, narrow);
}
inline __m512 widened_vector(const brain* from) {
  __m256i narrow;
  __builtin_memcpy(&narrow, from, sizeof(narrow));
  return (__m512)((small_words)_mm512_maskz_cvtepu16_epi32(0xffff, narrow) << 16);
}
inline bool has_nan(__m512 wide) { return _mm512_cmp_ps_mask(wide, wide, _CMP_UNORD_Q) != 0; }

inline void narrow_vector(__m512 wide, half* to) {
  const __m256i narrow =
      _mm512_maskz_cvtps_ph(0xffff, wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __builtin_memcpy(to, &narrow, sizeof(narrow));
}
inline void store_words(small_words words, brain* to) {
  const __m256i narrow = _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)words);
  __builtin_memcpy(to, &narrow, sizeof(narrow));
}
#elif defined(__F16C__) && defined(__AVX2__)
#define SHALE_SMALL_FLOAT_VECTORS
typedef std::uint32_t small_words __attribute__((vector_size(32)));
inline constexpr index_t smalls_at_once = 8;

inline __m256 widened_vector(const half* from) {
  __m128i narrow;
  __builtin_memcpy(&narrow, from, sizeof(narrow));
  return _mm256_cvtph_ps(narrow);
}
inline __m256 widened_vector(const brain* from) {
  __m128i narrow;
  __builtin_memcpy(&narrow, from, sizeof(narrow));
  return (__m256)((small_words)_mm256_cvtepu16_epi32(narrow) << 16);
}
inline bool has_nan(__m256 wide) {
  return _mm256_movemask_ps(_mm256_cmp_ps(wide, wide, _CMP_UNORD_Q)) != 0;
}

inline void narrow_vector(__m256 wide, half* to) {
  const __m128i narrow = _mm256_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __builtin_memcpy(to, &narrow, sizeof(narrow));
}
inline void store_words(small_words words, brain* to) {
  const auto all = (__m256i)words;
  const __m128i narrow =
      _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  __builtin_memcpy(to, &narrow, sizeof(narrow));
}
#endif

#if defined(SHALE_SMALL_FLOAT_VECTORS)
/// Rounds to nearest, ties to even, as `narrow_to<brain>`.
template <class Vector>
inline void narrow_vector(Vector wide, brain* to) {
  const auto bits = (small_words)wide;
  const small_words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const small_words nan = (bits >> 16) | 0x40u;
  store_words((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded, to);
}
#endif

template <class Small>
inline void widen_run(const Small* from, float* to, index_t count) {
  index_t in_vectors = 0;
#if defined(SHALE_SMALL_FLOAT_VECTORS)
  in_vectors = count - count % smalls_at_once;
  for (index_t i = 0; i < in_vectors; i += smalls_at_once) {
    const auto wide = widened_vector(from + i);
    if (std::is_same_v<Small, half> && has_nan(wide))
      for (index_t k = 0; k < smalls_at_once; ++k) to[i + k] = widen(from[i + k]);
    else __builtin_memcpy(to + i, &wide, sizeof(wide));
  }
#endif
  SHALE_INDEPENDENT
  for (index_t i = in_vectors; i < count; ++i) to[i] = widen(from[i]);
}

template <class Small>
inline void narrow_run(const float* from, Small* to, index_t count) {
  index_t in_vectors = 0;
#if defined(SHALE_SMALL_FLOAT_VECTORS)
  in_vectors = count - count % smalls_at_once;
  for (index_t i = 0; i < in_vectors; i += smalls_at_once) {
    decltype(widened_vector(to)) wide;
    __builtin_memcpy(&wide, from + i, sizeof(wide));
    narrow_vector(wide, to + i);
  }
#endif
  SHALE_INDEPENDENT
  for (index_t i = in_vectors; i < count; ++i) to[i] = narrow_to<Small>(from[i]);
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
