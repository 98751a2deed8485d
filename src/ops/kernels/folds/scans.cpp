// Scanners of sums, products and extrema. They continue from the states of the reducers of the same
// name.
//
// In a run, each result needs the one before it, so a plain loop waits for every addition. Sums of
// eight neighbours are therefore computed in one vector, in three steps: each adds to every lane
// the lane that is 1, 2, then 4 places before it. The other scans cut a run into four parts: the
// reducer's own fold, which is vectorised, gives the state with which each part begins, and then
// the four parts are scanned at the same time.
#include "ops/kernels/folds/extremum_folds.hpp"
#include "ops/kernels/folds/product_folds.hpp"
#include "ops/kernels/folds/sum_folds.hpp"
#include "ops/kernels/strided/scan_strided.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

// ---- sums of neighbours ------------------------------------------------------------------------

/// Eight values. Instruction sets with narrower vectors compute them in several, in the same order.
template <class Number>
struct eight_of {
  typedef Number vector __attribute__((vector_size(8 * sizeof(Number))));
};
template <class Number>
using eight = typename eight_of<Number>::vector;

/// Converts every lane. GCC 12 converts a vector of 64 bytes in two halves by
/// __builtin_convertvector.
template <class From, class To>
inline void convert_lanes(const From& from, To& to) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<From, eight<float>> && std::is_same_v<To, eight<double>>)
    to = (To)_mm512_maskz_cvtps_pd(0xff, (__m256)from);
  else if constexpr (std::is_same_v<From, eight<double>> && std::is_same_v<To, eight<float>>)
    to = (To)_mm512_maskz_cvtpd_ps(0xff, (__m512d)from);
  else
#endif
    to = __builtin_convertvector(from, To);
}

/// Adds to every lane all lanes before it.
template <class Vector>
inline void add_lanes_before(Vector& v) {
  const Vector zero{};
  v += __builtin_shufflevector(v, zero, 8, 0, 1, 2, 3, 4, 5, 6);
  v += __builtin_shufflevector(v, zero, 8, 8, 0, 1, 2, 3, 4, 5);
  v += __builtin_shufflevector(v, zero, 8, 8, 8, 8, 0, 1, 2, 3);
}

/// Scans the sums of numbers, beginning with `sum`. Returns the last one.
template <class Sum, class Number, class Result>
inline Sum scan_sums(Sum sum, const Number* numbers, Result* results, index_t count) {
  index_t i = 0;
  for (; i + 8 <= count; i += 8) {
    eight<Number> narrow;
    __builtin_memcpy(&narrow, numbers + i, sizeof(narrow));
    eight<Sum> sums;
    convert_lanes(narrow, sums);
    add_lanes_before(sums);
    const Sum last = sums[7];
    sums += sum;
    sum += last;
    eight<Result> rounded;
    convert_lanes(sums, rounded);
    __builtin_memcpy(results + i, &rounded, sizeof(rounded));
  }
  for (; i < count; ++i) {
    sum += static_cast<Sum>(numbers[i]);
    results[i] = static_cast<Result>(sum);
  }
  return sum;
}

// ---- how a state goes on -----------------------------------------------------------------------

// A Scan says how the state of a Fold goes through values one by one. It has
//   Fold, Result
//   Running (what of the state changes with every value)
//   static Running take(const State&);
//   static void put(State&, const Running&);
//   static Running next(Running, Value);
//   static Result result(const Running&);
// If it has a member `in_vectors` that is true, it also has
//   static Running run(Running, const Value*, Result*, index_t count);

template <class Scan>
inline constexpr bool has_vectors = requires {
  requires Scan::in_vectors;
};

template <class T>
struct sum_scan_in_double {
  using Fold = sum_in_double<T>;
  using State = typename Fold::State;
  using Result = T;
  static constexpr int parts = Fold::parts;
  static constexpr bool in_vectors = parts == 1;
  struct Running {
    double sum[parts];
  };

  static Running take(const State& state) {
    Running running;
    for (int part = 0; part < parts; ++part) running.sum[part] = state.sum[part];
    return running;
  }
  static void put(State& state, const Running& running) {
    for (int part = 0; part < parts; ++part) state.sum[part] = running.sum[part];
  }
  static Running next(Running running, T value) {
    if constexpr (parts == 1) {
      running.sum[0] += static_cast<double>(to<float>(value));
    } else {
      running.sum[0] += static_cast<double>(value.real);
      running.sum[1] += static_cast<double>(value.imaginary);
    }
    return running;
  }
  static T result(const Running& running) {
    if constexpr (parts == 1) return to<T>(running.sum[0]);
    else return to<T>(complex_of<double>{running.sum[0], running.sum[1]});
  }
  static Running run(Running running, const T* values, T* results, index_t count) {
    double& sum = running.sum[0];
    if constexpr (std::is_same_v<T, float>) {
      sum = scan_sums(sum, values, results, count);
    } else {
      alignas(64) float numbers[scan_run_elements];
      alignas(64) double sums[scan_run_elements];
      sum = scan_sums(sum, widened(values, count, numbers), sums, count);
      SHALE_INDEPENDENT
      for (index_t i = 0; i < count; ++i) results[i] = to<T>(sums[i]);
    }
    return running;
  }
};

template <class T>
struct compensated_sum_scan {
  using Fold = compensated_sum<T>;
  using State = typename Fold::State;
  using Result = T;
  static constexpr int parts = Fold::parts;
  struct Running {
    sum_with_errors sum[parts];
  };

  static Running take(const State& state) {
    Running running;
    for (int part = 0; part < parts; ++part) running.sum[part] = state.sum[part];
    return running;
  }
  static void put(State& state, const Running& running) {
    for (int part = 0; part < parts; ++part) state.sum[part] = running.sum[part];
  }
  static sum_with_errors plus(sum_with_errors so_far, double value) {
    const double high = so_far.high + value;
    return {high, so_far.low + rounding_error(so_far.high, value, high)};
  }
  static Running next(Running running, T value) {
    if constexpr (parts == 1) {
      running.sum[0] = plus(running.sum[0], value);
    } else {
      running.sum[0] = plus(running.sum[0], value.real);
      running.sum[1] = plus(running.sum[1], value.imaginary);
    }
    return running;
  }
  static T result(const Running& running) {
    if constexpr (parts == 1) return running.sum[0].value();
    else return {running.sum[0].value(), running.sum[1].value()};
  }
};

template <class T>
struct integer_sum_scan {
  using Fold = integer_sum<T>;
  using State = typename Fold::State;
  using Result = std::conditional_t<is_signed<T> || is_boolean<T>, std::int64_t, std::uint64_t>;
  using Running = std::uint64_t;
  static constexpr bool in_vectors = true;

  static std::uint64_t widen(T value) { return static_cast<std::uint64_t>(number(value)); }
  static Running take(const State& state) { return state; }
  static void put(State& state, const Running& running) { state = running; }
  static Running next(Running running, T value) { return running + widen(value); }
  static Result result(const Running& running) { return static_cast<Result>(running); }
  static Running run(Running running, const T* values, Result* results, index_t count) {
    alignas(64) std::uint64_t numbers[scan_run_elements];
    SHALE_INDEPENDENT
    for (index_t i = 0; i < count; ++i) numbers[i] = widen(values[i]);
    return scan_sums(running, numbers, results, count);
  }
};

/// A scan whose state is a single number, or a complex one.
template <class Fold_, class Result_, class Next, class Finish>
struct plain_scan {
  using Fold = Fold_;
  using State = typename Fold::State;
  using Result = Result_;
  using Running = State;

  static Running take(const State& state) { return state; }
  static void put(State& state, const Running& running) { state = running; }
  static Running next(const Running& running, typename Fold::Value value) {
    return Next{}(running, value);
  }
  static Result result(const Running& running) { return to<Result>(Finish{}(running)); }
};

// ---- from a scan to a scanner ------------------------------------------------------------------

/// The parts of a run that are scanned at the same time.
inline constexpr int run_parts = 4;

template <class Scan>
struct scanning {
  using Fold = typename Scan::Fold;
  using State = typename Scan::State;
  using Value = typename Fold::Value;
  using Result = typename Scan::Result;
  using Running = typename Scan::Running;
  static_assert(sizeof(Running) <= 32);

  static Running scan_part(Running running, const Value* values, Result* results, index_t count) {
    for (index_t i = 0; i < count; ++i) {
      running = Scan::next(running, values[i]);
      results[i] = Scan::result(running);
    }
    return running;
  }

  static void run(std::byte* state_bytes, const std::byte* value_bytes, std::byte* result_bytes,
                  index_t count) {
    auto& state = *reinterpret_cast<State*>(state_bytes);
    const auto* values = reinterpret_cast<const Value*>(value_bytes);
    auto* results = reinterpret_cast<Result*>(result_bytes);
    if constexpr (has_vectors<Scan>)
      return Scan::put(state, Scan::run(Scan::take(state), values, results, count));
    const index_t part = count / run_parts;
    Running running[run_parts];
    running[0] = Scan::take(state);
    if (part >= lanes) {
      State before = state;
      for (int k = 1; k < run_parts; ++k) {
        Fold::run(before, values + (k - 1) * part, part);
        running[k] = Scan::take(before);
      }
      for (index_t i = 0; i < part; ++i) {
        for (int k = 0; k < run_parts; ++k) {
          running[k] = Scan::next(running[k], values[k * part + i]);
          results[k * part + i] = Scan::result(running[k]);
        }
      }
      const index_t done = run_parts * part;
      running[0] = scan_part(running[run_parts - 1], values + done, results + done, count - done);
    } else {
      running[0] = scan_part(running[0], values, results, count);
    }
    Scan::put(state, running[0]);
  }

  static void begin(std::byte* columns, const std::byte* states, index_t state_stride,
                    index_t count) {
    auto* running = reinterpret_cast<Running*>(columns);
    for (index_t i = 0; i < count; ++i)
      running[i] = Scan::take(*reinterpret_cast<const State*>(states + i * state_stride));
  }

  static void row(std::byte* columns, const std::byte* value_bytes, std::byte* result_bytes,
                  index_t count) {
    auto* running = reinterpret_cast<Running*>(columns);
    const auto* values = reinterpret_cast<const Value*>(value_bytes);
    auto* results = reinterpret_cast<Result*>(result_bytes);
    SHALE_INDEPENDENT
    for (index_t i = 0; i < count; ++i) {
      running[i] = Scan::next(running[i], values[i]);
      results[i] = Scan::result(running[i]);
    }
  }

  static void end(const std::byte* columns, std::byte* states, index_t state_stride,
                  index_t count) {
    const auto* running = reinterpret_cast<const Running*>(columns);
    for (index_t i = 0; i < count; ++i)
      Scan::put(*reinterpret_cast<State*>(states + i * state_stride), running[i]);
  }

  static void scan(std::byte* const* data, const index_t* strides, index_t inner, index_t outer) {
    static constexpr scan_shape shape{sizeof(Value), sizeof(Result), run, begin, row, end};
    scan_strided(shape, {data[0],
                         data[1],
                         data[2],
                         {inner, strides[0], strides[1], strides[2]},
                         {outer, strides[3], strides[4], strides[5]}});
  }
};

template <class Scan>
constexpr scanner scanner_for() {
  return {type_of<typename Scan::Result>, scanning<Scan>::scan};
}

template <class Fold, class Result, class Next, class Finish>
constexpr scanner plain_scanner(Next, Finish) {
  return scanner_for<plain_scan<Fold, Result, Next, Finish>>();
}

// ---- the table ---------------------------------------------------------------------------------

template <class T>
void fill_integer_scans(kernel_table& table, dtype type) {
  using Total = typename integer_sum_scan<T>::Result;
  table.set(scan::sum, type, scanner_for<integer_sum_scan<T>>());
  table.set(scan::product, type,
            plain_scanner<integer_product<T>, Total>(
                [](std::uint64_t product, T value) {
                  return product * static_cast<std::uint64_t>(number(value));
                },
                [](std::uint64_t product) { return product; }));
}

template <class T, template <class, bool> class Fold, bool largest>
constexpr scanner extremum_scanner() {
  using Best = typename Fold<T, largest>::State;
  return plain_scanner<Fold<T, largest>, T>(
      [](Best best, T value) {
        return Best{Fold<T, largest>::better(best.value, Fold<T, largest>::number_of(value))};
      },
      [](Best best) { return best.value; });
}

template <class T, template <class, bool> class Fold>
void fill_extremum_scans(kernel_table& table) {
  table.set(scan::minimum, type_of<T>, extremum_scanner<T, Fold, false>());
  table.set(scan::maximum, type_of<T>, extremum_scanner<T, Fold, true>());
}

}  // namespace

void fill_scans(kernel_table& table) {
  for_types(type_list<half, brain, float, complex_of<float>>{}, [&]<class T>(T) {
    table.set(scan::sum, type_of<T>, scanner_for<sum_scan_in_double<T>>());
  });
  for_types(type_list<double, complex_of<double>>{}, [&]<class T>(T) {
    table.set(scan::sum, type_of<T>, scanner_for<compensated_sum_scan<T>>());
  });
  const auto unchanged = [](auto state) { return state; };
  for_types(type_list<half, brain, float, double>{}, [&]<class T>(T) {
    table.set(scan::product, type_of<T>,
              plain_scanner<float_product<T>, T>(
                  [](double product, T value) { return product * to<double>(value); }, unchanged));
  });
  for_types(complexes{}, [&]<class T>(T) {
    table.set(scan::product, type_of<T>,
              plain_scanner<complex_product<T>, T>(
                  [](complex_of<double> product, T value) {
                    return complex_product<T>::times(product, to<complex_of<double>>(value));
                  },
                  unchanged));
  });
  for_types(integers{}, [&]<class T>(T) {
    fill_integer_scans<T>(table, type_of<T>);
    fill_extremum_scans<T, integer_extremum>(table);
  });
  fill_integer_scans<boolean>(table, dtype::boolean);
  fill_extremum_scans<boolean, integer_extremum>(table);
  for_types(type_list<half, brain, float, double>{},
            [&]<class T>(T) { fill_extremum_scans<T, float_extremum>(table); });
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
