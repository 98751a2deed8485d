#include "ops/leaves/rolling_lanes.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/grid.hpp"
#include "shale/convert.hpp"
#include "shale/dtype.hpp"
#include "shale/error.hpp"

namespace shale::ops {

namespace {

// ---- states: what is known of some elements -----------------------------------------------------

// A state takes elements by `add`, and `joined` gives the state of the elements of two of them.

struct double_total {
  double sum = 0;

  template <class Number>
  void add(Number element) {
    sum += static_cast<double>(element);
  }
  static double_total joined(const double_total& a, const double_total& b) {
    return {a.sum + b.sum};
  }
  double value() const { return sum; }
};

// A sum, and the sum of its rounding errors (algorithm Sum2). The reducers of folds.hpp compute the
// same way, but a file that is compiled for each instruction set shares no code with this one.
struct compensated_total {
  double sum = 0;
  double error = 0;

  void add(double element) { *this = joined(*this, {element, 0}); }

  // The error of an addition is exact unless the sum overflows (Knuth).
  static compensated_total joined(const compensated_total& a, const compensated_total& b) {
    const double both = a.sum + b.sum;
    const double part = both - a.sum;
    const double lost = (a.sum - (both - part)) + (b.sum - part);
    return {both, (a.error + b.error) + lost};
  }

  // Errors beside an infinite sum, or NaN, have no meaning.
  double value() const { return std::isfinite(sum) ? sum + error : sum; }
};

template <class Total>
struct complex_total {
  Total real;
  Total imaginary;

  template <class Part>
  void add(const std::complex<Part>& element) {
    real.add(static_cast<double>(element.real()));
    imaginary.add(static_cast<double>(element.imag()));
  }
  static complex_total joined(const complex_total& a, const complex_total& b) {
    return {Total::joined(a.real, b.real), Total::joined(a.imaginary, b.imaginary)};
  }
  std::complex<double> value() const { return {real.value(), imaginary.value()}; }
};

// Modulo 2^64.
struct wrapping_total {
  std::uint64_t sum = 0;

  template <class Integer>
  void add(Integer element) {
    sum += static_cast<std::uint64_t>(element);
  }
  static wrapping_total joined(const wrapping_total& a, const wrapping_total& b) {
    return {a.sum + b.sum};
  }
  std::uint64_t value() const { return sum; }
};

// The exact sum of integers, for means.
struct whole_total {
  __extension__ using wide = __int128;
  wide sum = 0;

  template <class Integer>
  void add(Integer element) {
    sum += element;
  }
  static whole_total joined(const whole_total& a, const whole_total& b) { return {a.sum + b.sum}; }
  double value() const { return static_cast<double>(sum); }
};

// Returns NaN if either is NaN; -0 is less than +0.
template <bool largest, class Number>
Number more_extreme(Number a, Number b) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) return std::signbit(a) == largest ? b : a;
  }
  return (a > b) == largest ? a : b;
}

template <bool largest, class Number>
constexpr Number least_extreme() {
  using limits = std::numeric_limits<Number>;
  if constexpr (limits::has_infinity) return largest ? -limits::infinity() : limits::infinity();
  else return largest ? limits::lowest() : limits::max();
}

template <bool largest, class Number>
struct extreme_element {
  Number found = least_extreme<largest, Number>();

  void add(Number element) { found = more_extreme<largest>(found, element); }
  static extreme_element joined(const extreme_element& a, const extreme_element& b) {
    return {more_extreme<largest>(a.found, b.found)};
  }
  Number value() const { return found; }
};

// ---- elements -----------------------------------------------------------------------------------

// The type in which elements are stored: a bool is any byte.
template <class T>
using stored_type = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

// The number that an element stands for.
template <class T>
auto number_in(stored_type<T> element) {
  if constexpr (std::is_same_v<T, bool>) return static_cast<std::uint8_t>(element != 0 ? 1 : 0);
  else if constexpr (detail::is_small_float<T>) return static_cast<float>(element);
  else return element;
}

// ---- lanes --------------------------------------------------------------------------------------

// A box of elements and the results of its windows: [before, along, after].
struct box_of_windows {
  const std::byte* from;
  std::byte* to;
  index_t before;
  index_t count;  // windows along the axis; there are count + width - 1 elements
  index_t after;
  index_t width;
  index_t first;
};

// States of this many windows stay in the cache if windows are short.
constexpr index_t held_states = 4096;
constexpr index_t columns_min = 8;
constexpr index_t columns_max = 64;

template <class T, class Result, class State, class Finish>
class lane_reducer {
 public:
  lane_reducer(const box_of_windows& box, Finish finish)
      : box_(box),
        finish_(finish),
        columns_max_(
            box.after == 1 ? 1 : std::clamp(held_states / box.width, columns_min, columns_max)),
        backwards_(static_cast<std::size_t>(std::min(box.width, box.count) * columns_max_)),
        states_(static_cast<std::size_t>(columns_max_)) {}

  void run() {
    const index_t length = box_.count + box_.width - 1;
    for (index_t row = 0; row < box_.before; ++row)
      for (index_t column = 0; column < box_.after; column += columns_max_) {
        from_ =
            reinterpret_cast<const stored_type<T>*>(box_.from) + row * length * box_.after + column;
        to_ = reinterpret_cast<Result*>(box_.to) + row * box_.count * box_.after + column;
        const index_t columns = std::min(columns_max_, box_.after - column);
        if (columns == 1) reduce_columns(std::integral_constant<index_t, 1>{});
        else reduce_columns(columns);
      }
  }

 private:
  // Positions count along the whole axis.
  template <class Columns>
  void reduce_columns(Columns columns) {
    const index_t end = box_.first + box_.count;
    for (index_t first = box_.first; first < end;) {
      // The windows from `first` to `last` hold the cut (rolling.2).
      const index_t cut = ceil_div(first, box_.width) * box_.width;
      const index_t last = std::min(cut, end - 1);
      go_backwards(columns, first, last, cut);
      go_forwards(columns, first, last, cut);
      first = last + 1;
    }
  }

  // Keeps, for each window, the state of its elements before the cut.
  template <class Columns>
  void go_backwards(Columns columns, index_t first, index_t last, index_t cut) {
    clear(columns);
    if (last == cut) keep(columns, last - first);
    for (index_t position = cut - 1; position >= first; --position) {
      take(columns, position);
      if (position <= last) keep(columns, position - first);
    }
  }

  // Joins it with the state of the window's elements from the cut on.
  template <class Columns>
  void go_forwards(Columns columns, index_t first, index_t last, index_t cut) {
    clear(columns);
    for (index_t position = cut; position < first + box_.width - 1; ++position)
      take(columns, position);
    for (index_t window = first; window <= last; ++window) {
      take(columns, window + box_.width - 1);
      const State* const kept = backwards_.data() + (window - first) * columns_max_;
      Result* const results = to_ + (window - box_.first) * box_.after;
      for (index_t k = 0; k < columns; ++k)
        results[k] = finish_(State::joined(kept[k], states_[static_cast<std::size_t>(k)]));
    }
  }

  template <class Columns>
  void clear(Columns columns) {
    std::fill_n(states_.begin(), static_cast<index_t>(columns), State{});
  }

  template <class Columns>
  void take(Columns columns, index_t position) {
    const stored_type<T>* const elements = from_ + (position - box_.first) * box_.after;
    State* const states = states_.data();
    for (index_t k = 0; k < columns; ++k) states[k].add(number_in<T>(elements[k]));
  }

  template <class Columns>
  void keep(Columns columns, index_t window) {
    std::copy_n(states_.begin(), static_cast<index_t>(columns),
                backwards_.begin() + window * columns_max_);
  }

  const box_of_windows& box_;
  const Finish finish_;
  const index_t columns_max_;  // lanes that are reduced side by side
  std::vector<State> backwards_;
  std::vector<State> states_;
  const stored_type<T>* from_ = nullptr;  // of the first element of the lanes
  Result* to_ = nullptr;
};

// ---- reductions ---------------------------------------------------------------------------------

template <class T, class Result, class State, class Finish>
void reduce_lanes_of(const box_of_windows& box, Finish finish) {
  lane_reducer<T, Result, State, Finish>(box, finish).run();
}

template <class T, class Result, class State>
void sum_windows(const box_of_windows& box) {
  reduce_lanes_of<T, Result, State>(
      box, [](const State& state) { return convert<Result>(state.value()); });
}

template <class T, class Result, class State>
void average_windows(const box_of_windows& box) {
  const auto count = static_cast<double>(box.width);
  reduce_lanes_of<T, Result, State>(
      box, [count](const State& state) { return convert<Result>(state.value() / count); });
}

template <class T, bool largest>
void find_extremes(const box_of_windows& box) {
  using Number = decltype(number_in<T>(stored_type<T>{}));
  using Result = stored_type<T>;
  reduce_lanes_of<T, Result, extreme_element<largest, Number>>(
      box,
      [](const extreme_element<largest, Number>& state) { return convert<Result>(state.value()); });
}

[[noreturn]] void throw_no_window_reduction(dtype type) {
  throw error(errc::invalid_argument,
              "windows of " + std::string(name(type)) + " do not have this reduction");
}

template <class T>
void reduce_windows_of(reduction kind, const box_of_windows& box) {
  constexpr bool is_double = std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>;
  using total = std::conditional_t<is_double, compensated_total, double_total>;
  if constexpr (detail::is_complex<T>) {
    if (kind == reduction::sum) return sum_windows<T, T, complex_total<total>>(box);
    if (kind == reduction::mean) return average_windows<T, T, complex_total<total>>(box);
  } else {
    if constexpr (std::is_integral_v<T>) {
      constexpr bool is_signed = std::is_signed_v<T> || std::is_same_v<T, bool>;
      using sum_type = std::conditional_t<is_signed, std::int64_t, std::uint64_t>;
      if (kind == reduction::sum) return sum_windows<T, sum_type, wrapping_total>(box);
      if (kind == reduction::mean) return average_windows<T, double, whole_total>(box);
    } else {
      if (kind == reduction::sum) return sum_windows<T, T, total>(box);
      if (kind == reduction::mean) return average_windows<T, T, total>(box);
    }
    if (kind == reduction::minimum) return find_extremes<T, false>(box);
    if (kind == reduction::maximum) return find_extremes<T, true>(box);
  }
  throw_no_window_reduction(dtype_of<T>());
}

}  // namespace

void reduce_windows(reduction kind, const tensor& from, const tensor& to,
                    const windows_along& windows) {
  if (to.size() == 0) return;
  box_of_windows box{.from = from.data(),
                     .to = const_cast<std::byte*>(to.data()),
                     .before = 1,
                     .count = to.shape(windows.axis),
                     .after = 1,
                     .width = windows.width,
                     .first = windows.first};
  for (index_t axis = 0; axis < to.rank(); ++axis)
    if (axis != windows.axis) (axis < windows.axis ? box.before : box.after) *= to.shape(axis);
  visit(from.dtype(), computing_types{},
        [&]<class T>(std::type_identity<T>) { reduce_windows_of<T>(kind, box); });
}

}  // namespace shale::ops
