// Folds of sums. Reducers and scanners share them.
#pragma once

#include "ops/kernels/folds/folds.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

/// Sums of types narrower than float64. The sum is a double, which has at least 29 bits more than
/// the values, so its rounding errors are far below the precision of the result.
template <class T>
struct sum_in_double {
  static constexpr int parts = parts_of<T>::count;
  using Part = typename parts_of<T>::type;
  struct State {
    std::int64_t count;
    double sum[parts];
  };
  using Value = T;
  struct Columns {
    double sum[tile_columns * parts];
  };

  static State empty() { return {}; }

  static void run(State& state, const T* values, index_t count) {
    alignas(64) float room[std::is_same_v<Part, float> ? 1 : run_elements * parts];
    const auto* source = reinterpret_cast<const Part*>(values);
    const float* floats = widened(source, count * parts, room);
    const index_t total = count * parts;
    lane_array sums = spread(0);
    index_t i = 0;
    for (; i + lanes <= total; i += lanes)
      for (int k = 0; k < vectors; ++k) sums.part[k] += load(floats + i + k * vector_doubles);
    double totals[lanes];
    sums.store(totals);
    for (int lane = 0; i < total; ++i, ++lane) totals[lane] += static_cast<double>(floats[i]);
    end_run(state, totals, count);
  }

  // The additions to a lane wait for each other. So a run alone leaves the processor idle for half
  // of the time, if its lanes need few vectors.
  static constexpr bool folds_two_runs = vectors <= 4;

  static void run_two(State& state, const T* values) {
    constexpr index_t run_parts = run_elements * parts;
    alignas(64) float room[std::is_same_v<Part, float> ? 1 : 2 * run_parts];
    const float* first = widened(reinterpret_cast<const Part*>(values), 2 * run_parts, room);
    const float* second = first + run_parts;
    lane_array first_sums = spread(0), second_sums = spread(0);
    for (index_t i = 0; i < run_parts; i += lanes) {
      for (int k = 0; k < vectors; ++k) first_sums.part[k] += load(first + i + k * vector_doubles);
      for (int k = 0; k < vectors; ++k)
        second_sums.part[k] += load(second + i + k * vector_doubles);
    }
    double totals[lanes];
    first_sums.store(totals);
    end_run(state, totals, run_elements);
    second_sums.store(totals);
    end_run(state, totals, run_elements);
  }

  static void end_run(State& state, double* totals, index_t count) {
    combine<parts>(totals);
    for (int part = 0; part < parts; ++part) state.sum[part] += totals[part];
    state.count += count;
  }

  static void merge(State& into, const State& from) {
    for (int part = 0; part < parts; ++part) into.sum[part] += from.sum[part];
    into.count += from.count;
  }

  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count * parts; ++i) columns.sum[i] = 0;
  }

  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    const auto numbers = stack.template of<Part>();
    SHALE_INDEPENDENT
    for (index_t i = over.first * parts; i < over.last * parts; ++i)
      columns.sum[i] = numbers.fold(i, columns.sum[i], [](double sum, Part value, int) {
        return sum + static_cast<double>(to<float>(value));
      });
  }

  static State column(const Columns& columns, index_t index, index_t rows) {
    State state{rows, {}};
    for (int part = 0; part < parts; ++part) state.sum[part] = columns.sum[index * parts + part];
    return state;
  }

  static double total(const State& state, int part) { return state.sum[part]; }
};

/// Sums of float64. The rounding error of each addition is computed exactly and summed in a
/// second number, so the result is nearly as accurate as a sum in twice the precision.
/// Source   T. Ogita, S. M. Rump, S. Oishi, Accurate sum and dot product (2005), algorithm Sum2
template <class T>
struct compensated_sum {
  static constexpr int parts = parts_of<T>::count;
  struct State {
    std::int64_t count;
    sum_with_errors sum[parts];
  };
  using Value = T;
  struct Columns {
    double high[tile_columns * parts];
    double low[tile_columns * parts];
  };

  static State empty() { return {}; }

  static void run(State& state, const T* values, index_t count) {
    const auto* doubles_in = reinterpret_cast<const double*>(values);
    const index_t total = count * parts;
    lane_array high = spread(0), low = spread(0);
    index_t i = 0;
    for (; i + lanes <= total; i += lanes) {
      for (int k = 0; k < vectors; ++k) {
        const doubles value = load(doubles_in + i + k * vector_doubles);
        const doubles before = high.part[k];
        const doubles after = before + value;
        low.part[k] += rounding_error(before, value, after);
        high.part[k] = after;
      }
    }
    double totals[lanes], errors[lanes];
    high.store(totals);
    low.store(errors);
    for (int lane = 0; i < total; ++i, ++lane) {
      const double after = totals[lane] + doubles_in[i];
      errors[lane] += rounding_error(totals[lane], doubles_in[i], after);
      totals[lane] = after;
    }
    for (int half = lanes / 2; half >= parts; half /= 2) {
      for (int lane = 0; lane < half; ++lane) {
        const sum_with_errors both = add(sum_with_errors{totals[lane], errors[lane]},
                                         sum_with_errors{totals[lane + half], errors[lane + half]});
        totals[lane] = both.high;
        errors[lane] = both.low;
      }
    }
    for (int part = 0; part < parts; ++part)
      state.sum[part] = add(state.sum[part], sum_with_errors{totals[part], errors[part]});
    state.count += count;
  }

  static void merge(State& into, const State& from) {
    for (int part = 0; part < parts; ++part) into.sum[part] = add(into.sum[part], from.sum[part]);
    into.count += from.count;
  }

  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count * parts; ++i) columns.high[i] = columns.low[i] = 0;
  }

  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    const auto numbers = stack.template of<double>();
    SHALE_INDEPENDENT
    for (index_t i = over.first * parts; i < over.last * parts; ++i) {
      const sum_with_errors sum = numbers.fold(
          i, sum_with_errors{columns.high[i], columns.low[i]},
          [](sum_with_errors so_far, double value, int) {
            const double high = so_far.high + value;
            return sum_with_errors{high, so_far.low + rounding_error(so_far.high, value, high)};
          });
      columns.high[i] = sum.high;
      columns.low[i] = sum.low;
    }
  }

  static State column(const Columns& columns, index_t index, index_t rows) {
    State state{rows, {}};
    for (int part = 0; part < parts; ++part)
      state.sum[part] = {columns.high[index * parts + part], columns.low[index * parts + part]};
    return state;
  }

  static double total(const State& state, int part) { return state.sum[part].value(); }
};

/// Sums modulo 2^64. A bool counts as 0 or 1.
template <class T>
struct integer_sum {
  using State = std::uint64_t;
  using Value = T;
  struct Columns {
    std::uint64_t sum[tile_columns];
  };
  /// The type of a run's sum. It is narrow for narrow values, since a vector then has more lanes; a
  /// run of 2048 values cannot overflow it.
  using Run = std::conditional_t<(sizeof(T) < 4), std::int32_t, std::uint64_t>;

  static State empty() { return 0; }
  static void run(State& state, const T* values, index_t count) {
    Run sum = 0;
    for (index_t i = 0; i < count; ++i) sum += static_cast<Run>(number(values[i]));
    state += static_cast<std::uint64_t>(sum);
  }
  static void merge(State& into, const State& from) { into += from; }
  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) columns.sum[i] = 0;
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    SHALE_INDEPENDENT
    for (index_t i = over.first; i < over.last; ++i)
      columns.sum[i] = stack.fold(i, columns.sum[i], [](std::uint64_t sum, T value, int) {
        return sum + static_cast<std::uint64_t>(number(value));
      });
  }
  static State column(const Columns& columns, index_t index, index_t) { return columns.sum[index]; }
};

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
