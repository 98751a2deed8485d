// Provides the parts that reducers share: virtual lanes, compensated sums, and a template that
// makes a reducer from a fold.
//
// Floating-point addition is not associative, so the order of additions decides the bits of a sum.
// Vector code adds in several lanes at once, and wider vectors have more lanes. To make the order
// independent of the width, folds use 16 *virtual lanes*: value i of a run belongs to lane i mod
// 16, and the lanes are combined by a fixed tree of halves at the end of the run. AVX-512 computes
// the 16 lanes of doubles in two vectors, AVX2 in four, the baseline in eight; all give the same
// bits.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <utility>

#include "ops/kernels/elementwise/loops.hpp"
#include "ops/kernels/elementwise/rounding_error.hpp"
#include "ops/kernels/elementwise/small_float_vectors.hpp"
#include "ops/kernels/strided/reduce_strided.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

inline constexpr int lanes = 16;
inline constexpr int vector_doubles = vector_bytes / 8;
inline constexpr int vectors = lanes / vector_doubles;

typedef double doubles __attribute__((vector_size(vector_bytes)));

inline doubles load(const double* address) {
  doubles result;
  __builtin_memcpy(&result, address, sizeof(result));
  return result;
}
// GCC 12 converts a vector in two halves by __builtin_convertvector, which takes three times as many
// instructions for 64 bytes.
inline doubles load(const float* address) {
#if defined(__AVX512F__)
  // Not _mm512_cvtps_pd: GCC 12 warns of an uninitialized vector inside it.
  return (doubles)_mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(address));
#elif defined(__AVX__)
  return (doubles)_mm256_cvtps_pd(_mm_loadu_ps(address));
#else
  typedef float narrow_floats __attribute__((vector_size(vector_bytes / 2)));
  narrow_floats narrow;
  __builtin_memcpy(&narrow, address, sizeof(narrow));
  return __builtin_convertvector(narrow, doubles);
#endif
}

/// One double for each virtual lane.
struct lane_array {
  doubles part[vectors];

  double at(int lane) const { return part[lane / vector_doubles][lane % vector_doubles]; }
  void store(double* to) const { __builtin_memcpy(to, part, sizeof(part)); }
};

inline lane_array spread(double value) {
  lane_array result;
  for (auto& part : result.part) part = doubles{} + value;
  return result;
}

// ---- compensated sums --------------------------------------------------------------------------

/// A sum in about twice the precision of double: `high` is the rounded sum, and `low` is the sum of
/// the rounding errors that the additions to `high` made.
struct sum_with_errors {
  double high;
  double low;

  /// The sum. If `high` is infinite or NaN, `low` has no meaning and is left out.
  double value() const {
    const double total = high + low;
    return total - total == 0 ? total : high;
  }
};

inline sum_with_errors add(sum_with_errors a, sum_with_errors b) {
  const double high = a.high + b.high;
  return {high, (a.low + b.low) + rounding_error(a.high, b.high, high)};
}
inline sum_with_errors add(sum_with_errors a, double b) { return add(a, sum_with_errors{b, 0}); }

/// Combines the lanes to `parts` totals, by halves; lane i goes to total i mod parts. Complex
/// numbers have two parts, so their real and imaginary parts lie in alternating lanes.
template <int parts, int left = lanes / 2>
inline void combine(double* values) {
  for (int i = 0; i < left; ++i) values[i] += values[i + left];
  if constexpr (left / 2 >= parts) combine<parts, left / 2>(values);
}

/// Returns the values of a run as type Wide: in place, or converted into `room`.
template <class T, class Wide>
inline const Wide* widened(const T* values, index_t count, Wide* room) {
  if constexpr (std::is_same_v<T, Wide>) {
    return values;
  } else {
    constexpr bool has_vectors = std::is_same_v<T, half> || std::is_same_v<T, brain>;
    if constexpr (has_vectors && std::is_same_v<Wide, float>) {
      widen_run(values, room, count);
      return room;
    }
    SHALE_INDEPENDENT
    for (index_t i = 0; i < count; ++i) room[i] = to<Wide>(values[i]);
    return room;
  }
}

/// The floating type that holds every T exactly, from which lanes are loaded.
template <class T>
using lane_type = std::conditional_t<is_small<T> || std::is_same_v<T, float>, float, double>;

/// The type of the parts of T, and their number: 1 for real types, 2 for complex ones.
template <class T>
struct parts_of {
  using type = T;
  static constexpr int count = 1;
};
template <class Part>
struct parts_of<complex_of<Part>> {
  using type = Part;
  static constexpr int count = 2;
};

// ---- from a fold to a reducer ------------------------------------------------------------------

/// Columns that are folded side by side: from `first` up to `last`, which is not among them.
struct column_range {
  index_t first;
  index_t last;
};

/// The same columns of several rows.
template <class Value, int height>
struct stacked_rows {
  const Value* row[height];

  /// The rows with every value seen as its parts: the two of a complex value, or the value itself.
  template <class Part>
  stacked_rows<Part, height> of() const {
    stacked_rows<Part, height> parts;
    for (int k = 0; k < height; ++k) parts.row[k] = reinterpret_cast<const Part*>(row[k]);
    return parts;
  }

  /// Folds column i, from the first row to the last: `total = step(total, value, k)` for row k.
  template <class Total, class Step>
  [[gnu::always_inline]] Total fold(index_t i, Total total, Step step) const {
    [&]<int... k>(std::integer_sequence<int, k...>) __attribute__((always_inline)) {
      ((total = step(total, row[k][i], k)), ...);
    }
    (std::make_integer_sequence<int, height>{});
    return total;
  }
};

// A Fold is written for two shapes of memory. `run` folds a run of contiguous values into one
// state. `begin`, `rows` and `column` fold rows of values into a row of accumulators, one for each
// column, and make a state of each. `rows` folds several rows at once, so that an accumulator is
// loaded and stored once for all of them. A Fold has
//   State, Value, Columns (accumulators of a tile of columns, at most column_bytes)
//   static State empty();
//   static void run(State&, const Value*, index_t count);
//   static void merge(State& into, const State& from);
//   static void begin(Columns&, index_t count);
//   static void rows(Columns&, const stacked_rows<Value, height>&, column_range, index_t before);
//   static State column(const Columns&, index_t index, index_t rows);
// If its member `folds_two_runs` is true, then `run_two(State&, const Value*)` folds two whole
// runs, one after the other in memory, to the bits of two calls of `run`. If it has a member
// `reads_positions`, then `run` and `column` have one more parameter, the run_positions of the run
// or of the column's rows.

template <class Fold>
inline constexpr bool reads_positions = requires {
  Fold::reads_positions;
};

template <class Fold>
inline constexpr bool folds_two_runs = requires {
  requires Fold::folds_two_runs;
};

/// The columns of a stack that are folded before the next ones are.
inline constexpr index_t strip_columns = 64;

template <class Fold>
struct folding {
  using State = typename Fold::State;
  using Value = typename Fold::Value;
  using Columns = typename Fold::Columns;
  static_assert(sizeof(State) % 8 == 0 && sizeof(Columns) <= column_bytes);

  static void start(std::byte* states, index_t count) {
    auto* empty = reinterpret_cast<State*>(states);
    for (index_t i = 0; i < count; ++i) empty[i] = Fold::empty();
  }

  static void merge(std::byte* into, const std::byte* from, index_t count) {
    auto* a = reinterpret_cast<State*>(into);
    const auto* b = reinterpret_cast<const State*>(from);
    for (index_t i = 0; i < count; ++i) Fold::merge(a[i], b[i]);
  }

  static void run(std::byte* state, const std::byte* values, index_t count,
                  const run_positions& positions) {
    auto& into = *reinterpret_cast<State*>(state);
    const auto* run = reinterpret_cast<const Value*>(values);
    if constexpr (reads_positions<Fold>) Fold::run(into, run, count, positions);
    else Fold::run(into, run, count);
  }

  static void run_two(std::byte* state, const std::byte* values) {
    if constexpr (folds_two_runs<Fold>)
      Fold::run_two(*reinterpret_cast<State*>(state), reinterpret_cast<const Value*>(values));
  }

  static void begin(std::byte* columns, index_t count) {
    Fold::begin(*reinterpret_cast<Columns*>(columns), count);
  }

  static void rows(std::byte* columns, const std::byte* values, index_t row_stride, index_t count,
                   index_t rows, index_t before) {
    index_t row = 0;
    for (; row + stack_rows <= rows; row += stack_rows)
      fold_stack<stack_rows>(columns, values + row * row_stride, row_stride, count, before + row,
                             row + 2 * stack_rows <= rows);
    for (; row < rows; ++row)
      fold_stack<1>(columns, values + row * row_stride, row_stride, count, before + row, false);
  }

  // Processors read ahead along one page at most, so they do not see that the next rows follow.
  // These are prefetched while a stack is folded, in strips, since a processor waits for few
  // prefetches at once.
  template <int height>
  static void fold_stack(std::byte* columns, const std::byte* values, index_t row_stride,
                         index_t count, index_t before, bool prefetch) {
    stacked_rows<Value, height> stack;
    for (int k = 0; k < height; ++k)
      stack.row[k] = reinterpret_cast<const Value*>(values + k * row_stride);
    const std::byte* const next = values + height * row_stride;
    for (index_t first = 0; first < count; first += strip_columns) {
      const index_t last = first + strip_columns < count ? first + strip_columns : count;
      const column_range strip{first, last};
      if (prefetch) {
        for (int k = 0; k < height; ++k) prefetch_columns(next + k * row_stride, strip);
      }
      Fold::rows(*reinterpret_cast<Columns*>(columns), stack, strip, before);
    }
  }

  static void prefetch_columns(const std::byte* row, column_range strip) {
    const index_t end = strip.last * static_cast<index_t>(sizeof(Value));
    for (index_t at = strip.first * static_cast<index_t>(sizeof(Value)); at < end; at += 64)
      __builtin_prefetch(row + at);
  }

  static void end(const std::byte* columns, std::byte* states, index_t state_stride, index_t count,
                  index_t rows, const run_positions& positions) {
    const auto& from = *reinterpret_cast<const Columns*>(columns);
    for (index_t i = 0; i < count; ++i) {
      auto& into = *reinterpret_cast<State*>(states + i * state_stride);
      if constexpr (reads_positions<Fold>) Fold::merge(into, Fold::column(from, i, positions));
      else Fold::merge(into, Fold::column(from, i, rows));
    }
  }

  static void accumulate(std::byte* const* data, const index_t* strides, index_t inner,
                         index_t outer) {
    static constexpr fold_shape shape{
        sizeof(Value), run, folds_two_runs<Fold> ? &run_two : nullptr, begin, rows, end};
    folded_block block{data[0], data[1], 0, {inner, 0, 0, 0}, {outer, 0, 0, 0}};
    if constexpr (reads_positions<Fold>) {
      block.first_position = *reinterpret_cast<const index_t*>(data[2]);
      block.inner = {inner, strides[0], strides[1], strides[2]};
      block.outer = {outer, strides[3], strides[4], strides[5]};
    } else {
      block.inner = {inner, strides[0], strides[1], 0};
      block.outer = {outer, strides[2], strides[3], 0};
    }
    reduce_strided(shape, block);
  }
};

/// Writes the results: `Finish{}(state, parameter)`, converted to Out.
template <class Fold, class Out, class Finish>
void finish(const std::byte* states, std::byte* results, index_t count, double parameter) {
  const auto* state = reinterpret_cast<const typename Fold::State*>(states);
  auto* out = reinterpret_cast<Out*>(results);
  for (index_t i = 0; i < count; ++i) out[i] = to<Out>(Finish{}(state[i], parameter));
}

template <class Fold, class Out, class Finish>
constexpr reducer reducer_for(Finish) {
  using folds = folding<Fold>;
  return {sizeof(typename Fold::State),
          type_of<Out>,
          folds::start,
          folds::accumulate,
          folds::merge,
          finish<Fold, Out, Finish>,
          reads_positions<Fold>};
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
