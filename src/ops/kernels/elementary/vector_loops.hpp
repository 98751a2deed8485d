// Makes kernels from functions of whole vectors, SLEEF's and our own.
#pragma once

#if defined(SHALE_X86_KERNELS)
#include <immintrin.h>
#include <sleef.h>

#include "ops/kernels/elementwise/loops.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

// SLEEF's function names end in the vector's element type, its width and the instruction set.
#if defined(__AVX512F__)
struct floats {
  using element = float;
  using vector = __m512;
};
struct doubles {
  using element = double;
  using vector = __m512d;
};
#define SHALE_SLEEF_FLOAT(name) Sleef_finz_##name##f16_u10avx512f
#define SHALE_SLEEF_DOUBLE(name) Sleef_finz_##name##d8_u10avx512f
#define SHALE_SLEEF_FLOAT_HYPOT Sleef_finz_hypotf16_u05avx512f
#define SHALE_SLEEF_DOUBLE_HYPOT Sleef_finz_hypotd8_u05avx512f
#elif defined(__AVX2__)
struct floats {
  using element = float;
  using vector = __m256;
};
struct doubles {
  using element = double;
  using vector = __m256d;
};
#define SHALE_SLEEF_FLOAT(name) Sleef_finz_##name##f8_u10avx2
#define SHALE_SLEEF_DOUBLE(name) Sleef_finz_##name##d4_u10avx2
#define SHALE_SLEEF_FLOAT_HYPOT Sleef_finz_hypotf8_u05avx2
#define SHALE_SLEEF_DOUBLE_HYPOT Sleef_finz_hypotd4_u05avx2
#else
struct doubles {
  using element = double;
  using vector = __m128d;
};
#define SHALE_SLEEF_DOUBLE(name) Sleef_##name##d2_u10sse2
#endif

template <class Lanes>
inline constexpr int width_of = sizeof(typename Lanes::vector) / sizeof(typename Lanes::element);

template <class Lanes>
inline typename Lanes::vector load(const typename Lanes::element* address) {
  typename Lanes::vector result;
  __builtin_memcpy(&result, address, sizeof(result));
  return result;
}

/// Loads the last `count` (< width) elements. The other lanes repeat the first of them, so that
/// they cause no slow special case.
template <class Lanes>
inline typename Lanes::vector load_tail(const typename Lanes::element* address, index_t count) {
  typename Lanes::element values[width_of<Lanes>];
  for (int i = 0; i < width_of<Lanes>; ++i) values[i] = address[i < count ? i : 0];
  return load<Lanes>(values);
}

template <class Lanes>
inline void store(typename Lanes::vector values, typename Lanes::element* to, index_t count) {
  __builtin_memcpy(to, &values, static_cast<std::size_t>(count) * sizeof(*to));
}

/// Applies `Function`, which maps each lane of a vector on its own.
template <class Lanes, class Function>
void unary_vectors(std::byte* const* data, index_t count) {
  using T = typename Lanes::element;
  constexpr index_t width = width_of<Lanes>;
  auto* out = reinterpret_cast<T*>(data[0]);
  const auto* a = reinterpret_cast<const T*>(data[1]);
  index_t i = 0;
  for (; i + width <= count; i += width)
    store<Lanes>(Function{}(load<Lanes>(a + i)), out + i, width);
  if (i < count) store<Lanes>(Function{}(load_tail<Lanes>(a + i, count - i)), out + i, count - i);
}

template <class Lanes, class Function>
void binary_vectors(std::byte* const* data, index_t count) {
  using T = typename Lanes::element;
  constexpr index_t width = width_of<Lanes>;
  auto* out = reinterpret_cast<T*>(data[0]);
  const auto* a = reinterpret_cast<const T*>(data[1]);
  const auto* b = reinterpret_cast<const T*>(data[2]);
  index_t i = 0;
  for (; i + width <= count; i += width)
    store<Lanes>(Function{}(load<Lanes>(a + i), load<Lanes>(b + i)), out + i, width);
  if (i < count)
    store<Lanes>(Function{}(load_tail<Lanes>(a + i, count - i), load_tail<Lanes>(b + i, count - i)),
                 out + i, count - i);
}

template <class Lanes, class Function>
void set_vector(kernel_table& table, operation op, Function) {
  using T = typename Lanes::element;
  table.set(op, type_of<T>, &run<&unary_vectors<Lanes, Function>, sizeof(T), sizeof(T)>);
}

template <class Lanes, class Function>
void set_vectors(kernel_table& table, operation op, Function) {
  using T = typename Lanes::element;
  table.set(op, type_of<T>,
            &run<&binary_vectors<Lanes, Function>, sizeof(T), sizeof(T), sizeof(T)>);
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA

#endif
