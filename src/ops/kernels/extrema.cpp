// Reducers of minimum and maximum. The result is NaN if any value is NaN; -0 is below +0.
#include "ops/kernels/folds.hpp"

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
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, index_t count, index_t) {
    SHALE_INDEPENDENT
    for (index_t i = 0; i < count; ++i)
      columns.best[i] = stack.fold(i, columns.best[i], [](Number best, T value, int) {
        return better(best, number(value));
      });
  }
  static State column(const Columns& columns, index_t index, index_t) {
    return {columns.best[index]};
  }
};

typedef float vector_of_float __attribute__((vector_size(vector_bytes)));
typedef double vector_of_double __attribute__((vector_size(vector_bytes)));

template <class T, bool largest>
struct float_extremum {
  /// The type in which values are compared; float16 and bfloat16 are compared as float32.
  using Wide = lane_type<T>;
  using Bits = std::conditional_t<sizeof(Wide) == 4, std::uint32_t, std::uint64_t>;
  using Vector = std::conditional_t<std::is_same_v<Wide, float>, vector_of_float, vector_of_double>;
  using State = extremum<Wide>;
  using Value = T;
  struct Columns {
    Wide best[tile_columns];
  };
  static constexpr int width = vector_bytes / static_cast<int>(sizeof(Wide));
  static constexpr int used = 4;

  static constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  static Wide worst() {
    return largest ? -static_cast<Wide>(__builtin_inff()) : static_cast<Wide>(__builtin_inff());
  }
  static Wide nan() { return static_cast<Wide>(__builtin_nanf("")); }
  static bool beats(Wide a, Wide b) { return largest ? a > b : a < b; }

  static Wide better(Wide a, Wide b) {
    const Bits bits_a = as_bits<Bits>(a), bits_b = as_bits<Bits>(b);
    const Wide equal = as_bits<Wide>(largest ? bits_a & bits_b : bits_a | bits_b);
    return beats(a, b) ? a : beats(b, a) ? b : a == b ? equal : nan();
  }

  static State empty() { return {worst()}; }

  // The lanes find the extremum without regard to NaN and to the sign of zero, and note whether a
  // NaN was seen. If the extremum is zero, a second loop finds its sign. An extremum does not
  // depend on the order of comparisons, so vectors of any width give the same bits.
  static void run(State& state, const T* values, index_t count) {
    alignas(64) Wide room[std::is_same_v<T, Wide> ? 1 : run_elements];
    const Wide* numbers = widened(values, count, room);
    Vector best[used];
    Vector unordered[used];  // NaN once one was seen
    for (int k = 0; k < used; ++k) {
      best[k] = Vector{} + worst();
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
    Wide found = worst();
    bool not_a_number = false;
    for (int k = 0; k < used; ++k) {
      for (int lane = 0; lane < width; ++lane) {
        found = beats(best[k][lane], found) ? best[k][lane] : found;
        not_a_number |= unordered[k][lane] != 0;
      }
    }
    for (; i < count; ++i) {
      found = beats(numbers[i], found) ? numbers[i] : found;
      not_a_number |= numbers[i] != numbers[i];
    }
    if (not_a_number) found = nan();
    else if (found == 0) found = zero(numbers, count);
    state.value = better(state.value, found);
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
    for (index_t i = 0; i < count; ++i) columns.best[i] = worst();
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, index_t count, index_t) {
    SHALE_INDEPENDENT
    for (index_t i = 0; i < count; ++i)
      columns.best[i] = stack.fold(i, columns.best[i], [](Wide best, T value, int) {
        return better(best, to<Wide>(value));
      });
  }
  static State column(const Columns& columns, index_t index, index_t) {
    return {columns.best[index]};
  }
};

template <class T, template <class, bool> class Fold>
void fill(kernel_table& table) {
  const auto value = [](const auto& state, double) { return state.value; };
  table.set(reduction::minimum, type_of<T>, reducer_for<Fold<T, false>, T>(value));
  table.set(reduction::maximum, type_of<T>, reducer_for<Fold<T, true>, T>(value));
}

}  // namespace

void fill_extrema(kernel_table& table) {
  for_types(integers{}, [&]<class T>(T) { fill<T, integer_extremum>(table); });
  for_types(type_list<half, brain, float, double>{},
            [&]<class T>(T) { fill<T, float_extremum>(table); });
  fill<boolean, integer_extremum>(table);
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
