// Exponentials of vectors of complex numbers. A number's parts lie side by side in memory; they are
// taken apart into a vector of real and one of imaginary parts.
//
// e^(x + iy) = e^x cos y + i e^x sin y. For complex64, sines and products are in double. Numbers
// for which a factor is not finite, or nearly 0 or infinite, get the result of the C library.
#pragma once

#include "ops/kernels/elementary/complex_library.hpp"
#include "ops/kernels/elementary/float_functions.hpp"
#include "ops/kernels/elementary/vector_loops.hpp"

#if defined(SHALE_X86_KERNELS) && defined(__AVX2__)

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

template <class Lanes>
struct complex_lanes {
  typename Lanes::vector real, imaginary;
};

// The numbers of two vectors, taken apart and put together again. Between the two, lanes have
// another order than in memory.
#if defined(__AVX512F__)
inline __m512 real_parts(__m512 a, __m512 b) { return _mm512_shuffle_ps(a, b, 0x88); }
inline __m512 imaginary_parts(__m512 a, __m512 b) { return _mm512_shuffle_ps(a, b, 0xdd); }
inline __m512 first_numbers(__m512 real, __m512 imaginary) {
  return _mm512_unpacklo_ps(real, imaginary);
}
inline __m512 last_numbers(__m512 real, __m512 imaginary) {
  return _mm512_unpackhi_ps(real, imaginary);
}
inline __m512d real_parts(__m512d a, __m512d b) { return _mm512_unpacklo_pd(a, b); }
inline __m512d imaginary_parts(__m512d a, __m512d b) { return _mm512_unpackhi_pd(a, b); }
inline __m512d first_numbers(__m512d real, __m512d imaginary) {
  return _mm512_unpacklo_pd(real, imaginary);
}
inline __m512d last_numbers(__m512d real, __m512d imaginary) {
  return _mm512_unpackhi_pd(real, imaginary);
}
#else
inline __m256 real_parts(__m256 a, __m256 b) { return _mm256_shuffle_ps(a, b, 0x88); }
inline __m256 imaginary_parts(__m256 a, __m256 b) { return _mm256_shuffle_ps(a, b, 0xdd); }
inline __m256 first_numbers(__m256 real, __m256 imaginary) {
  return _mm256_unpacklo_ps(real, imaginary);
}
inline __m256 last_numbers(__m256 real, __m256 imaginary) {
  return _mm256_unpackhi_ps(real, imaginary);
}
inline __m256d real_parts(__m256d a, __m256d b) { return _mm256_unpacklo_pd(a, b); }
inline __m256d imaginary_parts(__m256d a, __m256d b) { return _mm256_unpackhi_pd(a, b); }
inline __m256d first_numbers(__m256d real, __m256d imaginary) {
  return _mm256_unpacklo_pd(real, imaginary);
}
inline __m256d last_numbers(__m256d real, __m256d imaginary) {
  return _mm256_unpackhi_pd(real, imaginary);
}
#endif

/// Whether a lane is between the limits. NaN is not.
template <class T>
inline bool is_inside(T part, T limit) {
  return part < limit && part > -limit;
}

/// Gives lanes with a part beyond its limit the result of the C library.
template <class Lanes>
inline void exponentials_by_library(const complex_lanes<Lanes>& a,
                                    typename Lanes::element real_limit,
                                    typename Lanes::element imaginary_limit,
                                    complex_lanes<Lanes>& result) {
  for (int i = 0; i < width_of<Lanes>; ++i) {
    if (is_inside(a.real[i], real_limit) && is_inside(a.imaginary[i], imaginary_limit)) continue;
    typename Lanes::element number[2] = {a.real[i], a.imaginary[i]};
    exponential_by_library(number);
    result.real[i] = number[0];
    result.imaginary[i] = number[1];
  }
}

inline void exponential(const complex_lanes<floats>& a, complex_lanes<floats>& result) {
  constexpr float real_limit = 87;
  const halves size = widened_lanes(exponential(a.real)), angle = widened_lanes(a.imaginary);
  result.real =
      narrowed_lanes({size.low * sine_of<true>(angle.low), size.high * sine_of<true>(angle.high)});
  result.imaginary = narrowed_lanes(
      {size.low * sine_of<false>(angle.low), size.high * sine_of<false>(angle.high)});
  if (any_lane(either(is_not_less(magnitude(a.real), all_lanes(real_limit)),
                      is_not_less(magnitude(a.imaginary), all_lanes(angle_limit))))) [[unlikely]]
    exponentials_by_library<floats>(a, real_limit, angle_limit, result);
}

/// Calls `Function` with the numbers of two vectors at a time.
template <class Lanes, class Function>
void complex_vectors(std::byte* const* data, index_t count) {
  using T = typename Lanes::element;
  constexpr index_t width = width_of<Lanes>;
  auto* out = reinterpret_cast<T*>(data[0]);
  const auto* a = reinterpret_cast<const T*>(data[1]);
  const auto apply = [](const T* from, T* to) {
    const auto first = load<Lanes>(from), last = load<Lanes>(from + width);
    complex_lanes<Lanes> result;
    Function{}({real_parts(first, last), imaginary_parts(first, last)}, result);
    store<Lanes>(first_numbers(result.real, result.imaginary), to, width);
    store<Lanes>(last_numbers(result.real, result.imaginary), to + width, width);
  };
  const index_t parts = 2 * count;
  index_t i = 0;
  for (; i + 2 * width <= parts; i += 2 * width) apply(a + i, out + i);
  if (i == parts) return;
  // Lanes behind the end repeat the first number, so that they cause no slow special case.
  T from[2 * width], to[2 * width];
  for (index_t k = 0; k < 2 * width; ++k) from[k] = a[k < parts - i ? i + k : i + k % 2];
  apply(from, to);
  __builtin_memcpy(out + i, to, static_cast<std::size_t>(parts - i) * sizeof(T));
}

template <class Lanes, class Function>
void set_complex_vector(kernel_table& table, operation op, Function) {
  constexpr std::size_t bytes = 2 * sizeof(typename Lanes::element);
  table.set(op, type_of<complex_of<typename Lanes::element>>,
            &run<&complex_vectors<Lanes, Function>, bytes, bytes>);
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA

#endif
