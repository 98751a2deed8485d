// Folds of minimum and maximum. Reducers and scanners share them. The result is NaN if any value is
// NaN; -0 is below +0.
#pragma once

#include "ops/kernels/folds/extremum_of_run.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

template <class T>
struct alignas(8) extremum {
  T value;
};

template <class T, bool largest>
struct integer_extremum {
  using Number = decltype(number(T{}));
  using State = extremum<Number>;
  using Value = T;
  struct Columns {
    Number best[tile_columns];
  };

  static Number number_of(T value) { return number(value); }
  static Number better(Number a, Number b) { return largest ? (a > b ? a : b) : (a < b ? a : b); }
  static State empty() { return {largest ? lowest<Number> : highest<Number>}; }
  static void run(State& state, const T* values, index_t count) {
    Number best = state.value;
    for (index_t i = 0; i < count; ++i) best = better(best, number(values[i]));
    state.value = best;
  }
  static void merge(State& into, const State& from) { into.value = better(into.value, from.value); }
  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) columns.best[i] = empty().value;
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    SHALE_INDEPENDENT
    for (index_t i = over.first; i < over.last; ++i)
      columns.best[i] = stack.fold(i, columns.best[i], [](Number best, T value, int) {
        return better(best, number(value));
      });
  }
  static State column(const Columns& columns, index_t index, index_t) {
    return {columns.best[index]};
  }
};

template <class T, bool largest>
struct float_extremum {
  /// The type in which values are compared; float16 and bfloat16 are compared as float32.
  using Wide = lane_type<T>;
  using Bits = std::conditional_t<sizeof(Wide) == 4, std::uint32_t, std::uint64_t>;
  using State = extremum<Wide>;
  using Value = T;
  /// An integer that orders values as a float_extremum does: -0 is below +0, and every NaN is one
  /// key, which wins. Compilers compare integers in vectors, but not floats with these rules.
  using Key = std::conditional_t<sizeof(Wide) == 4, std::int32_t, std::int64_t>;
  struct Columns {
    Key best[tile_columns];
  };
  static constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  static constexpr Bits infinity = sizeof(Bits) == 4 ? 0x7f800000 : 0x7ff0000000000000;
  static constexpr Key nan_key = static_cast<Key>(largest ? ~sign : sign);
  static Wide worst() { return worst_float<Wide, largest>(); }
  static Wide nan() { return static_cast<Wide>(__builtin_nanf("")); }

  static Wide number_of(T value) { return to<Wide>(value); }
  static Wide better(Wide a, Wide b) {
    const Bits bits_a = as_bits<Bits>(a), bits_b = as_bits<Bits>(b);
    const Wide equal = as_bits<Wide>(largest ? bits_a & bits_b : bits_a | bits_b);
    return beats<largest>(a, b) ? a : beats<largest>(b, a) ? b : a == b ? equal : nan();
  }

  static Key ordered(Key bits) { return bits ^ (bits < 0 ? static_cast<Key>(~sign) : Key{0}); }
  static Key key_of(Wide value) {
    const Bits bits = as_bits<Bits>(value);
    return (bits & ~sign) > infinity ? nan_key : ordered(static_cast<Key>(bits));
  }
  static Wide value_of(Key key) {
    return key == nan_key ? nan() : as_bits<Wide>(static_cast<Bits>(ordered(key)));
  }

  static State empty() { return {worst()}; }

  // If the extremum is zero, a second loop finds its sign.
  static void run(State& state, const T* values, index_t count) {
    alignas(64) Wide room[std::is_same_v<T, Wide> ? 1 : run_elements];
    const Wide* numbers = widened(values, count, room);
    const run_extremum<Wide> found = extremum_of_run<largest>(numbers, count);
    const Wide value = found.has_nan      ? nan()
                       : found.value == 0 ? zero(numbers, count)
                                          : found.value;
    state.value = better(state.value, value);
  }

  /// The extremum of a run whose extremum is zero: -0 is the minimum if the run contains it, and +0
  /// is the maximum if the run contains it.
  static Wide zero(const Wide* numbers, index_t count) {
    const Bits wanted = largest ? 0 : sign;
    Bits found = 0;
    for (index_t i = 0; i < count; ++i)
      found |= as_bits<Bits>(numbers[i]) == wanted ? Bits{1} : Bits{0};
    return as_bits<Wide>((found != 0) != largest ? sign : Bits{0});
  }

  static void merge(State& into, const State& from) { into.value = better(into.value, from.value); }
  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) columns.best[i] = key_of(worst());
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    SHALE_INDEPENDENT
    for (index_t i = over.first; i < over.last; ++i)
      columns.best[i] = stack.fold(i, columns.best[i], [](Key best, T value, int) {
        const Key key = key_of(to<Wide>(value));
        return (largest ? key > best : key < best) ? key : best;
      });
  }
  static State column(const Columns& columns, index_t index, index_t) {
    return {value_of(columns.best[index])};
  }
};

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
