// Reducers of the positions of minimum and maximum. Among equal values, the first one counts. If
// there is a NaN, the first NaN counts. -0 and +0 are equal.
//
// A run is first searched for its extremum, in vectors. Only if the extremum can change the state,
// the run is searched again, for the extremum's position. In most data this is rare.
#include "ops/kernels/folds/extremum_of_run.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

template <class Number>
struct positioned {
  alignas(8) Number value;
  index_t position;
};

inline constexpr index_t no_position = highest<index_t>;

/// The index of the first value for which `is_wanted` holds, or `count`.
template <class Number, class Wanted>
inline index_t first_of(const Number* values, index_t count, Wanted is_wanted) {
  constexpr index_t step = 32;
  index_t i = 0;
  for (; i + step <= count; i += step) {
    unsigned found = 0;
    for (index_t k = 0; k < step; ++k) found |= is_wanted(values[i + k]) ? 1u : 0u;
    if (found != 0) break;
  }
  while (i < count && !is_wanted(values[i])) ++i;
  return i;
}

/// The lowest position of a value for which `is_wanted` holds. Within a row, positions ascend.
template <class Number, class Wanted>
inline index_t lowest_position(const Number* values, index_t count, const run_positions& positions,
                               Wanted is_wanted) {
  index_t lowest = no_position;
  index_t row_position = positions.first;
  for (index_t done = 0; done < count; done += positions.row_values) {
    const index_t left = count - done;
    const index_t row = left < positions.row_values ? left : positions.row_values;
    const index_t i = first_of(values + done, row, is_wanted);
    const index_t position = row_position + i * positions.step;
    if (i < row && position < lowest) lowest = position;
    row_position += positions.row_step;
  }
  return lowest;
}

/// The row of a column's extremum. Its type is as wide as the values, so that both fit the same
/// vectors; a block has fewer than 2^31 rows.
template <class Number>
using row_number = std::conditional_t<sizeof(Number) == 8, std::int64_t, std::int32_t>;

template <class Number>
struct positioned_columns {
  Number best[tile_columns];
  row_number<Number> row[tile_columns];
};

/// What folds of integers and of floats have in common. `Order` says which of two values wins.
template <class T, class Number, class Order>
struct position_fold {
  static constexpr bool reads_positions = true;
  using State = positioned<Number>;
  using Value = T;
  using Columns = positioned_columns<Number>;

  static State empty() { return {Order::worst(), no_position}; }

  static void merge(State& into, const State& from) {
    const bool before = from.position < into.position;
    if (Order::replaces(into.value, from.value) ||
        (before && !Order::replaces(from.value, into.value)))
      into = from;
  }

  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) {
      columns.best[i] = Order::worst();
      columns.row[i] = 0;
    }
  }

  // Rows come in the order of their positions, so only a better value replaces another one.
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t before) {
    using Row = row_number<Number>;
    const auto first = static_cast<Row>(before);
    SHALE_INDEPENDENT
    for (index_t i = over.first; i < over.last; ++i) {
      Number best = columns.best[i];
      Row row = columns.row[i];
      for (int k = 0; k < height; ++k) {
        const Number value = Order::number_of(stack.row[k][i]);
        const bool replaces = Order::replaces(best, value);
        best = replaces ? value : best;
        row = replaces ? static_cast<Row>(first + k) : row;
      }
      columns.best[i] = best;
      columns.row[i] = row;
    }
  }

  static State column(const Columns& columns, index_t index, const run_positions& positions) {
    return {columns.best[index], positions.first + columns.row[index] * positions.step};
  }
};

template <class T, bool largest>
struct integer_order {
  using Number = decltype(number(T{}));
  static Number worst() { return largest ? lowest<Number> : highest<Number>; }
  static Number number_of(T value) { return number(value); }
  static bool replaces(Number old, Number value) { return beats<largest>(value, old); }
};

template <class T, bool largest>
struct integer_position
    : position_fold<T, typename integer_order<T, largest>::Number, integer_order<T, largest>> {
  using order = integer_order<T, largest>;
  using State = positioned<typename order::Number>;

  static void run(State& state, const T* values, index_t count, const run_positions& positions) {
    auto best = order::worst();
    for (index_t i = 0; i < count; ++i) {
      const auto value = number(values[i]);
      best = beats<largest>(value, best) ? value : best;
    }
    if (beats<largest>(state.value, best)) return;
    if (state.value == best && state.position <= positions.first) return;
    const index_t position = lowest_position(values, count, positions,
                                             [best](T value) { return number(value) == best; });
    integer_position::merge(state, {best, position});
  }
};

template <class T, bool largest>
struct float_order {
  using Number = lane_type<T>;
  static Number worst() { return worst_float<Number, largest>(); }
  static Number number_of(T value) { return to<Number>(value); }

  /// A NaN replaces every number. The comparison is negated because it is false for a NaN.
  static bool replaces(Number old, Number value) {
    const bool keeps = largest ? old >= value : old <= value;
    return (old == old) & !keeps;
  }
};

template <class T, bool largest>
struct float_position : position_fold<T, lane_type<T>, float_order<T, largest>> {
  using order = float_order<T, largest>;
  using Number = lane_type<T>;
  using State = positioned<Number>;

  static void run(State& state, const T* values, index_t count, const run_positions& positions) {
    alignas(64) Number room[std::is_same_v<T, Number> ? 1 : run_elements];
    const Number* numbers = widened(values, count, room);
    const run_extremum<Number> found = extremum_of_run<largest>(numbers, count);
    const Number best = found.has_nan ? static_cast<Number>(__builtin_nanf("")) : found.value;
    if (!order::replaces(state.value, best)) {
      if (order::replaces(best, state.value) || state.position <= positions.first) return;
    }
    const index_t position = found.has_nan
                                 ? lowest_position(numbers, count, positions,
                                                   [](Number value) { return value != value; })
                                 : lowest_position(numbers, count, positions,
                                                   [best](Number value) { return value == best; });
    float_position::merge(state, {best, position});
  }
};

template <class T, template <class, bool> class Fold>
void fill(kernel_table& table) {
  const auto position = [](const auto& state, double) { return state.position; };
  table.set(reduction::arg_minimum, type_of<T>, reducer_for<Fold<T, false>, index_t>(position));
  table.set(reduction::arg_maximum, type_of<T>, reducer_for<Fold<T, true>, index_t>(position));
}

}  // namespace

void fill_arg_extrema(kernel_table& table) {
  for_types(integers{}, [&]<class T>(T) { fill<T, integer_position>(table); });
  for_types(type_list<half, brain, float, double>{},
            [&]<class T>(T) { fill<T, float_position>(table); });
  fill<boolean, integer_position>(table);
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
