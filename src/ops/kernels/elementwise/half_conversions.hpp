// Converts runs of float16 to float32 and back, by instructions of the processor where it has them.
//
// Results have the bits of `widen` and `narrow_to`. The processor makes signalling NaNs quiet when it
// widens them, so vectors with a NaN are widened one element at a time.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ops/kernels/elementwise/loops.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr index_t halves_at_once = 16;

/// Widens a vector. Returns false, and stores nothing, if one of the elements is NaN.
inline bool widen_vector(const half* from, float* to) {
  __m256i narrow;
  __builtin_memcpy(&narrow, from, sizeof(narrow));
  const __m512 wide = _mm512_maskz_cvtph_ps(0xffff, narrow);
  if (_mm512_cmp_ps_mask(wide, wide, _CMP_UNORD_Q) != 0) return false;
  __builtin_memcpy(to, &wide, sizeof(wide));
  return true;
}

inline void narrow_vector(const float* from, half* to) {
  __m512 wide;
  __builtin_memcpy(&wide, from, sizeof(wide));
  const __m256i narrow =
      _mm512_maskz_cvtps_ph(0xffff, wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __builtin_memcpy(to, &narrow, sizeof(narrow));
}
#elif defined(__F16C__)
inline constexpr index_t halves_at_once = 8;

inline bool widen_vector(const half* from, float* to) {
  __m128i narrow;
  __builtin_memcpy(&narrow, from, sizeof(narrow));
  const __m256 wide = _mm256_cvtph_ps(narrow);
  if (_mm256_movemask_ps(_mm256_cmp_ps(wide, wide, _CMP_UNORD_Q)) != 0) return false;
  __builtin_memcpy(to, &wide, sizeof(wide));
  return true;
}

inline void narrow_vector(const float* from, half* to) {
  __m256 wide;
  __builtin_memcpy(&wide, from, sizeof(wide));
  const __m128i narrow = _mm256_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __builtin_memcpy(to, &narrow, sizeof(narrow));
}
#endif

inline void widen_run(const half* from, float* to, index_t count) {
#if defined(__AVX512F__) || defined(__F16C__)
  const index_t in_vectors = count - count % halves_at_once;
  for (index_t i = 0; i < in_vectors; i += halves_at_once)
    if (!widen_vector(from + i, to + i))
      for (index_t k = 0; k < halves_at_once; ++k) to[i + k] = widen(from[i + k]);
  for (index_t i = in_vectors; i < count; ++i) to[i] = widen(from[i]);
#else
  SHALE_INDEPENDENT
  for (index_t i = 0; i < count; ++i) to[i] = widen(from[i]);
#endif
}

inline void narrow_run(const float* from, half* to, index_t count) {
#if defined(__AVX512F__) || defined(__F16C__)
  const index_t in_vectors = count - count % halves_at_once;
  for (index_t i = 0; i < in_vectors; i += halves_at_once) narrow_vector(from + i, to + i);
  for (index_t i = in_vectors; i < count; ++i) to[i] = narrow_to<half>(from[i]);
#else
  SHALE_INDEPENDENT
  for (index_t i = 0; i < count; ++i) to[i] = narrow_to<half>(from[i]);
#endif
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
