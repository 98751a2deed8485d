// Reducers of sums, means, products and counts.
#include "ops/kernels/folds/product_folds.hpp"
#include "ops/kernels/folds/sum_folds.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

// ---- sums of floats ----------------------------------------------------------------------------

template <class T, class Fold>
void fill_float_sums(kernel_table& table) {
  using Wide = std::conditional_t<Fold::parts == 1, double, complex_of<double>>;
  table.set(reduction::sum, type_of<T>,
            reducer_for<Fold, T>([](const typename Fold::State& state, double) {
              if constexpr (Fold::parts == 1) return Fold::total(state, 0);
              else return Wide{Fold::total(state, 0), Fold::total(state, 1)};
            }));
  table.set(reduction::mean, type_of<T>,
            reducer_for<Fold, T>([](const typename Fold::State& state, double) {
              const auto count = static_cast<double>(state.count);
              if constexpr (Fold::parts == 1) return Fold::total(state, 0) / count;
              else return Wide{Fold::total(state, 0) / count, Fold::total(state, 1) / count};
            }));
}

// ---- sums of integers --------------------------------------------------------------------------

/// The exact sum, for means. The lower and the upper 32 bits of 64-bit values are summed
/// separately, so that neither sum overflows in a run or in a tile of columns.
template <class T>
struct integer_mean {
  struct State {
    std::int64_t count;
    sum_with_errors sum;
  };
  using Value = T;
  static constexpr bool halves = sizeof(T) == 8;
  struct Columns {
    std::int64_t low[tile_columns];
    std::int64_t high[halves ? tile_columns : 1];
  };
  using Run = std::conditional_t<(sizeof(T) < 4), std::int32_t, std::int64_t>;

  static State empty() { return {}; }
  static std::int64_t low_half(T value) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) & 0xffffffffu);
  }
  static std::int64_t high_half(T value) {
    if constexpr (halves) return static_cast<std::int64_t>(value >> 32);
    else return 0;
  }
  static sum_with_errors whole(std::int64_t low, std::int64_t high) {
    // A double holds 53 bits, so a 64-bit sum is converted in two halves, which are exact.
    const sum_with_errors upper = add(sum_with_errors{static_cast<double>(high >> 32) * 0x1p64, 0},
                                      static_cast<double>(high & 0xffffffff) * 0x1p32);
    return add(add(upper, static_cast<double>(low >> 32) * 0x1p32),
               static_cast<double>(low & 0xffffffff));
  }

  static void run(State& state, const T* values, index_t count) {
    Run low = 0;
    std::int64_t high = 0;
    if constexpr (halves) {
      for (index_t i = 0; i < count; ++i) low += low_half(values[i]);
      for (index_t i = 0; i < count; ++i) high += high_half(values[i]);
    } else {
      for (index_t i = 0; i < count; ++i) low += static_cast<Run>(number(values[i]));
    }
    state.sum = add(state.sum, whole(low, high));
    state.count += count;
  }
  static void merge(State& into, const State& from) {
    into.sum = add(into.sum, from.sum);
    into.count += from.count;
  }
  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) columns.low[i] = 0;
    if constexpr (halves)
      for (index_t i = 0; i < count; ++i) columns.high[i] = 0;
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    SHALE_INDEPENDENT
    for (index_t i = over.first; i < over.last; ++i) {
      columns.low[i] = stack.fold(i, columns.low[i], [](std::int64_t sum, T value, int) {
        if constexpr (halves) return sum + low_half(value);
        else return sum + static_cast<std::int64_t>(number(value));
      });
      if constexpr (halves)
        columns.high[i] = stack.fold(i, columns.high[i], [](std::int64_t sum, T value, int) {
          return sum + high_half(value);
        });
    }
  }
  static State column(const Columns& columns, index_t index, index_t rows) {
    return {rows, whole(columns.low[index], halves ? columns.high[halves ? index : 0] : 0)};
  }
};

template <class T>
void fill_integer_sums(kernel_table& table, dtype type) {
  using Total = std::conditional_t<is_signed<T>, std::int64_t, std::uint64_t>;
  const auto as_it_is = [](std::uint64_t state, double) { return state; };
  const auto mean = [](const typename integer_mean<T>::State& state, double) {
    return state.sum.value() / static_cast<double>(state.count);
  };
  reducer sum = reducer_for<integer_sum<T>, Total>(as_it_is);
  if (type == dtype::boolean) sum.result = dtype::int64;
  table.set(reduction::sum, type, sum);
  table.set(reduction::mean, type, reducer_for<integer_mean<T>, double>(mean));
}

// ---- products ----------------------------------------------------------------------------------

template <class T>
void fill_integer_product(kernel_table& table, dtype type) {
  using Total = std::conditional_t<is_signed<T>, std::int64_t, std::uint64_t>;
  reducer product =
      reducer_for<integer_product<T>, Total>([](std::uint64_t state, double) { return state; });
  if (type == dtype::boolean) product.result = dtype::int64;
  table.set(reduction::product, type, product);
}

// ---- counts ------------------------------------------------------------------------------------

/// Counts the values that are nonzero.
template <class T>
struct count_of {
  using State = std::int64_t;
  using Value = T;
  struct Columns {
    std::int64_t count[tile_columns];
  };

  static State empty() { return 0; }
  static void run(State& state, const T* values, index_t count) {
    // Counters as narrow as the values: a vector of these is counted as it is.
    using Counter = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
    constexpr index_t counters = sizeof(T) <= 2 ? 64 : 1;
    static_assert(run_elements / counters < index_t{1} << 8 * sizeof(Counter));
    std::int32_t found = 0;
    index_t i = 0;
    if constexpr (counters > 1) {
      Counter found_by[counters] = {};
      for (; i + counters <= count; i += counters)
        for (index_t k = 0; k < counters; ++k)
          found_by[k] = static_cast<Counter>(found_by[k] + (is_nonzero(values[i + k]) ? 1 : 0));
      for (const Counter each : found_by) found += each;
    }
    for (; i < count; ++i) found += is_nonzero(values[i]) ? 1 : 0;
    state += found;
  }
  static void merge(State& into, const State& from) { into += from; }
  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) columns.count[i] = 0;
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    SHALE_INDEPENDENT
    for (index_t i = over.first; i < over.last; ++i)
      columns.count[i] = stack.fold(i, columns.count[i], [](std::int64_t found, T value, int) {
        return found + (is_nonzero(value) ? 1 : 0);
      });
  }
  static State column(const Columns& columns, index_t index, index_t) {
    return columns.count[index];
  }
};

// ---- any and all -------------------------------------------------------------------------------

/// Whether any value is nonzero, or any is zero: 0 or 1.
template <class T, bool nonzero>
struct any_of {
  using State = std::int64_t;
  using Value = T;
  struct Columns {
    std::uint8_t found[tile_columns];
  };

  static State empty() { return 0; }
  static void run(State& state, const T* values, index_t count) {
    if (state != 0) return;
    // As wide as the values, so that comparisons of vectors need no conversion.
    using Found = std::conditional_t<
        sizeof(T) == 1, std::uint8_t,
        std::conditional_t<sizeof(T) == 2, std::uint16_t,
                           std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
    Found found = 0;
    if constexpr (nonzero && std::is_unsigned_v<T>) {
      for (index_t i = 0; i < count; ++i) found |= values[i];
    } else {
      for (index_t i = 0; i < count; ++i)
        found |= static_cast<Found>(is_nonzero(values[i]) == nonzero ? 1 : 0);
    }
    state = found != 0 ? 1 : 0;
  }
  static void merge(State& into, const State& from) { into |= from; }
  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) columns.found[i] = 0;
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    SHALE_INDEPENDENT
    for (index_t i = over.first; i < over.last; ++i)
      columns.found[i] = stack.fold(i, columns.found[i], [](std::uint8_t found, T value, int) {
        return static_cast<std::uint8_t>(found | (is_nonzero(value) == nonzero ? 1 : 0));
      });
  }
  static State column(const Columns& columns, index_t index, index_t) {
    return columns.found[index];
  }
};

template <class T, class... Types>
void fill_counts(kernel_table& table, Types... types) {
  const reducer count =
      reducer_for<count_of<T>, std::int64_t>([](std::int64_t state, double) { return state; });
  const reducer any =
      reducer_for<any_of<T, true>, boolean>([](std::int64_t state, double) { return state; });
  const reducer all = reducer_for<any_of<T, false>, boolean>(
      [](std::int64_t state, double) { return static_cast<std::int64_t>(state == 0); });
  (table.set(reduction::count_nonzero, types, count), ...);
  (table.set(reduction::any, types, any), ...);
  (table.set(reduction::all, types, all), ...);
}

}  // namespace

void fill_sums(kernel_table& table) {
  fill_float_sums<half, sum_in_double<half>>(table);
  fill_float_sums<brain, sum_in_double<brain>>(table);
  fill_float_sums<float, sum_in_double<float>>(table);
  fill_float_sums<complex_of<float>, sum_in_double<complex_of<float>>>(table);
  fill_float_sums<double, compensated_sum<double>>(table);
  fill_float_sums<complex_of<double>, compensated_sum<complex_of<double>>>(table);

  const auto unchanged = [](auto state, double) { return state; };
  for_types(type_list<half, brain, float, double>{}, [&]<class T>(T) {
    table.set(reduction::product, type_of<T>, reducer_for<float_product<T>, T>(unchanged));
  });
  for_types(complexes{}, [&]<class T>(T) {
    table.set(reduction::product, type_of<T>, reducer_for<complex_product<T>, T>(unchanged));
  });

  fill_integer_sums<boolean>(table, dtype::boolean);  // to int64
  fill_integer_product<boolean>(table, dtype::boolean);
  for_types(integers{}, [&]<class T>(T) {
    fill_integer_sums<T>(table, type_of<T>);
    fill_integer_product<T>(table, type_of<T>);
  });

  fill_counts<std::uint8_t>(table, dtype::boolean, dtype::int8, dtype::uint8);
  fill_counts<std::uint16_t>(table, dtype::int16, dtype::uint16);
  fill_counts<half>(table, dtype::float16, dtype::bfloat16);
  fill_counts<std::uint32_t>(table, dtype::int32, dtype::uint32);
  fill_counts<std::uint64_t>(table, dtype::int64, dtype::uint64);
  fill_counts<float>(table, dtype::float32);
  fill_counts<double>(table, dtype::float64);
  fill_counts<complex_of<float>>(table, dtype::complex64);
  fill_counts<complex_of<double>>(table, dtype::complex128);
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
