// Finds the smallest or largest value of a run of floats, in vectors. The reducers of extrema and
// of their positions share it.
#pragma once

#include "ops/kernels/folds/folds.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

typedef float vector_of_float __attribute__((vector_size(vector_bytes)));
typedef double vector_of_double __attribute__((vector_size(vector_bytes)));

/// The value that every other one beats, or equals.
template <class Wide, bool largest>
inline Wide worst_float() {
  return largest ? -static_cast<Wide>(__builtin_inff()) : static_cast<Wide>(__builtin_inff());
}

template <bool largest, class Number>
inline bool beats(Number a, Number b) {
  return largest ? a > b : a < b;
}

template <class Wide>
struct run_extremum {
  Wide value;  // of the values that are numbers, without regard to the sign of zero
  bool has_nan;
};

/// An extremum does not depend on the order of comparisons, so vectors of any width give the same
/// result.
template <bool largest, class Wide>
inline run_extremum<Wide> extremum_of_run(const Wide* numbers, index_t count) {
  using Vector = std::conditional_t<std::is_same_v<Wide, float>, vector_of_float, vector_of_double>;
  constexpr int width = vector_bytes / static_cast<int>(sizeof(Wide));
  constexpr int used = 4;
  Vector best[used];
  Vector unordered[used];  // NaN once one was seen
  for (int k = 0; k < used; ++k) {
    best[k] = Vector{} + worst_float<Wide, largest>();
    unordered[k] = Vector{};
  }
  index_t i = 0;
  for (; i + used * width <= count; i += used * width) {
    for (int k = 0; k < used; ++k) {
      Vector value;
      __builtin_memcpy(&value, numbers + i + k * width, sizeof(value));
      best[k] = (largest ? value > best[k] : value < best[k]) ? value : best[k];
      unordered[k] = value == value ? unordered[k] : value;
    }
  }
  run_extremum<Wide> found{worst_float<Wide, largest>(), false};
  for (int k = 0; k < used; ++k) {
    for (int lane = 0; lane < width; ++lane) {
      const Wide value = best[k][lane];
      found.value = beats<largest>(value, found.value) ? value : found.value;
      found.has_nan |= unordered[k][lane] != 0;
    }
  }
  for (; i < count; ++i) {
    found.value = beats<largest>(numbers[i], found.value) ? numbers[i] : found.value;
    found.has_nan |= numbers[i] != numbers[i];
  }
  return found;
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
