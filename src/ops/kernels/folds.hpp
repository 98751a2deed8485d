// What the reducers share: virtual lanes, compensated sums, and the way from a fold to a reducer.
//
// Floating-point folds run in a fixed number of virtual lanes: value i of a run belongs to lane
// i mod lanes, and lanes are combined by a fixed tree. Vectors of any width compute the same lanes,
// so every instruction set gives the same bits.
#pragma once

#include "ops/kernels/loops.hpp"
#include "ops/kernels/reduce_strided.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

inline constexpr int lanes = 16;
inline constexpr int vector_doubles = vector_bytes / 8;
inline constexpr int vectors = lanes / vector_doubles;

typedef double doubles __attribute__((vector_size(vector_bytes)));
typedef float narrow_floats __attribute__((vector_size(vector_bytes / 2)));

inline doubles load(const double* from) {
  doubles result;
  __builtin_memcpy(&result, from, sizeof(result));
  return result;
}
inline doubles load(const float* from) {
  narrow_floats narrow;
  __builtin_memcpy(&narrow, from, sizeof(narrow));
  return __builtin_convertvector(narrow, doubles);
}

/// One value a virtual lane.
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

/// A sum and the rounding errors left out of it, as far as doubles hold them.
struct exact_sum {
  double high;
  double low;

  /// The compensation means nothing once the plain sum is infinite or NaN.
  double value() const {
    const double total = high + low;
    return total - total == 0 ? total : high;
  }
};

/// a + b = sum + error, exactly.
/// Source   D. E. Knuth, The Art of Computer Programming 2, section 4.2.2
template <class Number>
inline Number rounding_error(Number a, Number b, Number sum) {
  const Number part = sum - a;
  return (a - (sum - part)) + (b - part);
}

inline exact_sum add(exact_sum a, exact_sum b) {
  const double high = a.high + b.high;
  return {high, (a.low + b.low) + rounding_error(a.high, b.high, high)};
}
inline exact_sum add(exact_sum a, double b) { return add(a, exact_sum{b, 0}); }

/// Lanes to `parts` totals (lane i to total i mod parts), by halves.
template <int parts>
inline void combine(double* values) {
  for (int half = lanes / 2; half >= parts; half /= 2)
    for (int i = 0; i < half; ++i) values[i] += values[i + half];
}

/// The values of a run as doubles or floats, in place or converted into `room`.
template <class T, class Wide>
inline const Wide* widened(const T* values, index_t count, Wide* room) {
  if constexpr (std::is_same_v<T, Wide>) {
    return values;
  } else {
    SHALE_INDEPENDENT
    for (index_t i = 0; i < count; ++i) room[i] = to<Wide>(values[i]);
    return room;
  }
}

/// The real type that holds a T exactly and is summed in lanes.
template <class T>
using lane_type = std::conditional_t<is_small<T> || std::is_same_v<T, float>, float, double>;

/// T, or the type of a complex T's parts; and how many of them.
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

// A Fold has
//   State, Value, Columns (accumulators of a tile of columns, at most column_bytes)
//   static State empty();
//   static void run(State&, const Value*, index_t count);
//   static void merge(State& into, const State& from);
//   static void begin(Columns&, index_t count);
//   static void row(Columns&, const Value*, index_t count, index_t before);
//   static State column(const Columns&, index_t which, index_t rows);

template <class Fold>
struct folding {
  using State = typename Fold::State;
  using Value = typename Fold::Value;
  using Columns = typename Fold::Columns;
  static_assert(sizeof(State) % 8 == 0 && sizeof(Columns) <= column_bytes);

  static void start(std::byte* states, index_t count) {
    auto* each = reinterpret_cast<State*>(states);
    for (index_t i = 0; i < count; ++i) each[i] = Fold::empty();
  }

  static void merge(std::byte* into, const std::byte* from, index_t count) {
    auto* a = reinterpret_cast<State*>(into);
    const auto* b = reinterpret_cast<const State*>(from);
    for (index_t i = 0; i < count; ++i) Fold::merge(a[i], b[i]);
  }

  static void run(std::byte* state, const std::byte* values, index_t count) {
    Fold::run(*reinterpret_cast<State*>(state), reinterpret_cast<const Value*>(values), count);
  }

  static void begin(std::byte* columns, index_t count) {
    Fold::begin(*reinterpret_cast<Columns*>(columns), count);
  }

  static void rows(std::byte* columns, const std::byte* values, index_t row_stride, index_t count,
                   index_t rows, index_t before) {
    for (index_t row = 0; row < rows; ++row)
      Fold::row(*reinterpret_cast<Columns*>(columns),
                reinterpret_cast<const Value*>(values + row * row_stride), count, before + row);
  }

  static void end(const std::byte* columns, std::byte* states, index_t state_stride, index_t count,
                  index_t rows) {
    for (index_t i = 0; i < count; ++i)
      Fold::merge(*reinterpret_cast<State*>(states + i * state_stride),
                  Fold::column(*reinterpret_cast<const Columns*>(columns), i, rows));
  }

  static void accumulate(std::byte* const* data, const index_t* strides_bytes, index_t inner,
                         index_t outer) {
    static constexpr fold_shape shape{sizeof(Value), run, begin, rows, end};
    reduce_strided(shape, data, strides_bytes, inner, outer);
  }
};

/// `Finish{}(state, parameter)` is the result, converted to Out.
template <class Fold, class Out, class Finish>
void finish(const std::byte* states, std::byte* results, index_t count, double parameter) {
  const auto* each = reinterpret_cast<const typename Fold::State*>(states);
  auto* out = reinterpret_cast<Out*>(results);
  for (index_t i = 0; i < count; ++i) out[i] = to<Out>(Finish{}(each[i], parameter));
}

template <class Fold, class Out, class Finish>
constexpr reducer reducer_for(Finish) {
  using folds = folding<Fold>;
  return {sizeof(typename Fold::State), type_of<Out>, folds::start, folds::accumulate, folds::merge,
          finish<Fold, Out, Finish>};
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
