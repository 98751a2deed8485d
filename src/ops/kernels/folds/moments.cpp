// Reducers of variance and standard deviation.
#include "ops/kernels/folds/folds.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

/// Converts a value to double. A bool is converted in steps that compilers compute in vectors of
/// bytes; they would widen a comparison to the size of a double first.
template <class T>
inline double wide(T value) {
  if constexpr (is_boolean<T>) {
    const auto negative = static_cast<std::uint8_t>(0u - value.byte);
    return static_cast<double>(static_cast<std::uint8_t>((value.byte | negative) >> 7));
  } else {
    return to<double>(value);
  }
}

/// Integers that a double does not hold exactly. The moments of their distances from one of them
/// are computed: the distances are rounded once each, so they are exact if values are close
/// together.
template <class T>
inline constexpr bool is_long = std::is_integral_v<T> && sizeof(T) == 8;

/// The upper and the lower half of an integer of 64 bits: value = upper * 2^32 + lower. Differences
/// of halves are exact.
template <class T>
inline double upper(T value) {
  using Half = std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>;
  return static_cast<double>(static_cast<Half>(value >> 32));
}
template <class T>
inline double lower(T value) {
  return static_cast<double>(static_cast<std::uint32_t>(value));
}
inline constexpr double two_to_32 = 4294967296.0;

/// value - origin, rounded once.
template <class T>
inline double distance_from(T origin, T value) {
  return (upper(value) - upper(origin)) * two_to_32 + (lower(value) - lower(origin));
}
inline double distance_from(double origin, double value) { return value - origin; }

/// A value without rounding.
template <class T>
inline sum_with_errors exactly(T value) {
  const double high = upper(value) * two_to_32;
  const double sum = high + lower(value);
  return {sum, rounding_error(high, lower(value), sum)};
}
inline sum_with_errors exactly(double value) { return {value, 0}; }

/// Folds values into their count, their mean, and the sum of squared distances from the mean. The
/// textbook formula, mean of squares minus square of mean, cancels nearly all digits if the mean is
/// large against the deviation; distances from the mean do not cancel.
///
/// There are three operations. A run sums the distances from a centre. Two states are merged by the
/// formula of Chan, Golub and LeVeque, which adds a term for the distance between the two means.
/// Columns use an update of Welford's kind, which corrects mean and squares after a few rows. The
/// mean has two doubles, because the distance between two means may be far smaller than the
/// rounding error of either.
/// Source   T. F. Chan, G. H. Golub, R. J. LeVeque, Updating formulae and a pairwise algorithm for
///          computing sample variances (1979); B. P. Welford, Note on a method for calculating
///          corrected sums of squares and products, Technometrics 4 (1962)
template <class T>
struct moments {
  static constexpr int parts = parts_of<T>::count;
  using Part = typename parts_of<T>::type;
  using Lane = std::conditional_t<std::is_same_v<Part, float>, float, double>;
  using Origin = std::conditional_t<is_long<Part>, Part, double>;
  struct State {
    std::int64_t count;
    sum_with_errors mean[parts];
    double squares;
  };
  using Value = T;
  /// Whether columns are folded as distances from their first row. Values of 8 bytes may have as
  /// many digits as a double. If they are close together, their differences are exact, or nearly
  /// so. A mean of integers of 4 bytes has too few digits after the point in a double; the mean of
  /// the differences has more.
  static constexpr bool has_origin =
      sizeof(Part) == 8 || (std::is_integral_v<Part> && sizeof(Part) == 4);
  /// The first row (if has_origin), and the mean and the squares so far of each column.
  struct Columns {
    Origin first[tile_columns * parts];
    double mean[tile_columns * parts];
    double squares[tile_columns * parts];
  };

  static constexpr bool value_is_centre = std::is_same_v<Part, float> || is_small<Part>;

  static State empty() { return {}; }

  // The value as distances are computed from it.
  static Origin origin_of(Part value) {
    if constexpr (is_long<Part>) return value;
    else return wide(value);
  }

  // Sums the distances d from a centre, and their squares. With n values, the mean is the centre
  // plus sum(d) / n, and the squares from the mean are sum(d * d) - sum(d)^2 / n. Float and smaller
  // types take the first value as the centre: at least an n-th of the squares is left, and the
  // errors of doubles are far smaller. Other types take the mean, which a first loop computes; it
  // also brings the run into the cache. 64-bit integers are replaced by their distances from the
  // first one.
  static void run(State& state, const T* values, index_t count) {
    alignas(64) Lane room[std::is_same_v<Part, Lane> ? 1 : run_elements * parts];
    const index_t total = count * parts;
    const Lane* numbers = room;
    if constexpr (is_boolean<T>)
      for (index_t i = 0; i < count; ++i) room[i] = wide(values[i]);
    else if constexpr (is_long<T>)
      for (index_t i = 0; i < count; ++i) room[i] = distance_from(values[0], values[i]);
    else numbers = widened(reinterpret_cast<const Part*>(values), total, room);

    State here{count, {}, 0};
    if constexpr (value_is_centre) {
      for (int part = 0; part < parts; ++part)
        here.mean[part].high = wide(reinterpret_cast<const Part*>(values)[part]);
    } else {
      mean_of(numbers, count, here);
    }
    double centres[lanes];
    for (int lane = 0; lane < lanes; ++lane) centres[lane] = here.mean[lane % parts].high;
    lane_array distance = spread(0), square = spread(0), centre;
    __builtin_memcpy(centre.part, centres, sizeof(centres));
    const auto* const next = reinterpret_cast<const std::byte*>(values + count);
    index_t i = 0;
    for (; i + lanes <= total; i += lanes) {
      // After a first loop this one works in the cache, so the next run can be brought in
      // meanwhile.
      if constexpr (!value_is_centre)
        for (index_t at = 0; at < lanes * static_cast<index_t>(sizeof(Part)); at += 64)
          __builtin_prefetch(next + i * static_cast<index_t>(sizeof(Part)) + at);
      for (int k = 0; k < vectors; ++k) {
        const doubles away = load(numbers + i + k * vector_doubles) - centre.part[k];
        distance.part[k] += away;
        square.part[k] += away * away;
      }
    }
    double distances[lanes], squares[lanes];
    distance.store(distances);
    square.store(squares);
    for (int lane = 0; i < total; ++i, ++lane) {
      const double away = static_cast<double>(numbers[i]) - centres[lane];
      distances[lane] += away;
      squares[lane] += away * away;
    }
    combine<parts>(distances);
    combine<parts>(squares);
    for (int part = 0; part < parts; ++part) {
      const double shift = distances[part] / static_cast<double>(count);
      here.mean[part] = add(here.mean[part], shift);
      here.squares += squares[part] - distances[part] * shift;
    }
    if constexpr (is_long<T>) here.mean[0] = add(exactly(values[0]), here.mean[0]);
    merge(state, here);
  }

  static void mean_of(const Lane* numbers, index_t count, State& here) {
    const index_t total = count * parts;
    double sums[lanes];
    lane_array sum = spread(0);
    index_t i = 0;
    for (; i + lanes <= total; i += lanes)
      for (int k = 0; k < vectors; ++k) sum.part[k] += load(numbers + i + k * vector_doubles);
    sum.store(sums);
    for (int lane = 0; i < total; ++i, ++lane) sums[lane] += static_cast<double>(numbers[i]);
    combine<parts>(sums);
    for (int part = 0; part < parts; ++part)
      here.mean[part].high = sums[part] / static_cast<double>(count);
  }

  static void merge(State& into, const State& from) {
    if (from.count == 0) return;
    if (into.count == 0) {
      into = from;
      return;
    }
    const auto total = static_cast<double>(into.count + from.count);
    const double share = static_cast<double>(from.count) / total;
    double apart = 0;
    for (int part = 0; part < parts; ++part) {
      const sum_with_errors to_here{-into.mean[part].high, -into.mean[part].low};
      const double distance = add(from.mean[part], to_here).value();
      into.mean[part] = add(into.mean[part], distance * share);
      apart += distance * distance;
    }
    into.squares += from.squares + apart * (static_cast<double>(into.count) * share);
    into.count += from.count;
  }

  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count * parts; ++i) columns.squares[i] = 0;
  }

  // Takes in the rows of a stack at once. With n rows before, their mean m, and the distances d of
  // the new values from m: the sum of squared distances from m grows by the sum of d * d, and the
  // mean moves by s / (n + height), where s is the sum of d. Distances from the moved mean are
  // smaller, by s * s / (n + height) in all. From the second stack on, this takes away at most half
  // of the squares. In the first stack the first d is 0, and at least a quarter of the squares is
  // left.
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t before) {
    const auto numbers = stack.template of<Part>();
    if (before == 0) {
      for (index_t i = over.first * parts; i < over.last * parts; ++i) {
        columns.first[i] = has_origin ? origin_of(numbers.row[0][i]) : Origin{};
        columns.mean[i] = has_origin ? 0 : wide(numbers.row[0][i]);
      }
    }
    const double share = 1.0 / static_cast<double>(before + height);
    SHALE_INDEPENDENT
    for (index_t i = over.first * parts; i < over.last * parts; ++i) {
      const double mean = columns.mean[i];
      const Origin origin = columns.first[i];
      struct so_far {
        double sum;
        double squares;
      };
      const so_far away = numbers.fold(i, so_far{0, 0}, [&](so_far stacked, Part value, int) {
        const double number = has_origin ? distance_from(origin, origin_of(value)) : wide(value);
        const double distance = number - mean;
        return so_far{stacked.sum + distance, stacked.squares + distance * distance};
      });
      const double moved = away.sum * share;
      columns.mean[i] = mean + moved;
      columns.squares[i] += away.squares - away.sum * moved;
    }
  }

  static State column(const Columns& columns, index_t index, index_t rows) {
    State state{rows, {}, 0};
    for (int part = 0; part < parts; ++part) {
      state.mean[part] =
          add(exactly(columns.first[index * parts + part]), columns.mean[index * parts + part]);
      state.squares += columns.squares[index * parts + part];
    }
    return state;
  }

  /// The variance; NaN if at most `correction` values were folded.
  static double variance(const State& state, double correction) {
    const double freedom = static_cast<double>(state.count) - correction;
    return freedom > 0 ? state.squares / freedom : __builtin_nan("");
  }
};

template <class T, class Out>
void fill(kernel_table& table, dtype type) {
  using State = typename moments<T>::State;
  table.set(reduction::variance, type,
            reducer_for<moments<T>, Out>([](const State& state, double correction) {
              return moments<T>::variance(state, correction);
            }));
  table.set(reduction::deviation, type,
            reducer_for<moments<T>, Out>([](const State& state, double correction) {
              return __builtin_sqrt(moments<T>::variance(state, correction));
            }));
}

}  // namespace

void fill_moments(kernel_table& table) {
  // Bools and integers give float64, complex values the real type of their parts.
  fill<boolean, double>(table, dtype::boolean);
  for_types(integers{}, [&]<class T>(T) { fill<T, double>(table, type_of<T>); });
  for_types(type_list<half, brain, float, double>{},
            [&]<class T>(T) { fill<T, T>(table, type_of<T>); });
  fill<complex_of<float>, float>(table, dtype::complex64);
  fill<complex_of<double>, double>(table, dtype::complex128);
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
