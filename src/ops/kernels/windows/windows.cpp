// Kernels of `correlate` and `convolve`: sums of products of a row of weights with the windows of a
// row of inputs.
//
// A loop over the taps that adds to a row of sums would load and store each sum once for every tap.
// Here, a few vectors of sums stay in registers over all taps of all rows. They are added to memory
// once.
#include "ops/kernels/dispatch/window_table.hpp"
#include "ops/kernels/elementwise/elements.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

template <class Part>
struct vector_of {
  typedef Part type __attribute__((vector_size(vector_bytes)));
};

// The vectors of sums that a loop over all taps keeps in registers. The smallest register file has
// 16 vectors, and the loop needs two more.
constexpr int vectors_max = 8;

/// How a vector of sums takes a vector of inputs, for elements of one part each. `Part` has an
/// arithmetic that neither overflows nor traps.
template <class Part>
struct plain_sum {
  using part = Part;
  using vector = typename vector_of<Part>::type;
  using weight = vector;
  static constexpr int parts = 1;

  static weight load_weight(const Part* at) { return *at - vector{}; }
  static vector add(vector sum, weight by, vector input) { return sum + by * input; }
};

/// Bytes of bools count as 1 unless they are 0.
struct bool_sum : plain_sum<std::uint8_t> {
  static weight load_weight(const std::uint8_t* at) {
    const std::uint8_t number = *at < 1 ? *at : 1;
    return number - vector{};
  }
  static vector add(vector sum, weight by, vector input) {
    return sum | (as_bits<vector>(input != 0) & by);  // a comparison gives all bits or none
  }
};

/// Complex numbers: real and imaginary parts alternate.
template <class Part>
struct complex_sum {
  using part = Part;
  using vector = typename vector_of<Part>::type;
  static constexpr int parts = 2;
  struct weight {
    vector real;
    vector imaginary;  // with the sign of the product that it makes: -, +, -, +, …
  };

  static weight load_weight(const Part* at) {
    weight result{at[0] - vector{}, vector{}};
    const Part signs[2] = {flipped(at[1]), at[1]};
    for (int lane = 0; lane < vector_bytes / static_cast<int>(sizeof(Part)); ++lane)
      result.imaginary[lane] = signs[lane % 2];
    return result;
  }
  static vector add(vector sum, const weight& by, vector input) {
    return sum + (by.real * input + by.imaginary * swapped(input));
  }

 private:
  static vector swapped(vector a) {
    if constexpr (vector_bytes / sizeof(Part) == 2) return __builtin_shufflevector(a, a, 1, 0);
    else if constexpr (vector_bytes / sizeof(Part) == 4)
      return __builtin_shufflevector(a, a, 1, 0, 3, 2);
    else if constexpr (vector_bytes / sizeof(Part) == 8)
      return __builtin_shufflevector(a, a, 1, 0, 3, 2, 5, 4, 7, 6);
    else return __builtin_shufflevector(a, a, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  }
};

template <class Vector, class Part>
inline Vector load(const Part* from) {
  Vector result;
  __builtin_memcpy(&result, from, sizeof result);
  return result;
}

/// The rows of one call. Positions and counts below are in parts.
template <class Sum>
struct window_rows {
  using part = typename Sum::part;

  const window_row* rows;
  index_t row_count;
  index_t taps;

  /// Calls `take(weight, input)` for every tap of every row, in their order.
  template <class Take>
  inline void for_each_tap(Take take) const {
    for (index_t row = 0; row < row_count; ++row) {
      const auto* input = reinterpret_cast<const part*>(rows[row].input);
      const auto* weights = reinterpret_cast<const part*>(rows[row].weights);
      for (index_t tap = 0; tap < taps; ++tap, input += Sum::parts, weights += Sum::parts)
        take(Sum::load_weight(weights), input);
    }
  }
};

/// Computes `count` vectors of sums. All but the last one follow one another from `first` on. The
/// last one lies at `last`, where it may overlap the others; its old sums are `last_sums`.
template <class Sum, int count>
inline void add_vectors(typename Sum::part* sums, const window_rows<Sum>& rows, index_t first,
                        index_t last, typename Sum::vector last_sums) {
  using vector = typename Sum::vector;
  constexpr int lanes = vector_bytes / static_cast<int>(sizeof(typename Sum::part));
  vector held[count];
  for (int k = 0; k + 1 < count; ++k) held[k] = load<vector>(sums + first + k * lanes);
  held[count - 1] = last_sums;
  rows.for_each_tap([&](const typename Sum::weight& weight, const typename Sum::part* input) {
    for (int k = 0; k + 1 < count; ++k)
      held[k] = Sum::add(held[k], weight, load<vector>(input + first + k * lanes));
    held[count - 1] = Sum::add(held[count - 1], weight, load<vector>(input + last));
  });
  for (int k = 0; k + 1 < count; ++k)
    __builtin_memcpy(sums + first + k * lanes, &held[k], sizeof(vector));
  __builtin_memcpy(sums + last, &held[count - 1], sizeof(vector));
}

/// Sums that fill no vector.
template <class Sum>
inline void add_few(typename Sum::part* sums, const window_rows<Sum>& rows, index_t count) {
  using vector = typename Sum::vector;
  const auto bytes = static_cast<std::size_t>(count) * sizeof(typename Sum::part);
  vector held{};
  __builtin_memcpy(&held, sums, bytes);
  rows.for_each_tap([&](const typename Sum::weight& weight, const typename Sum::part* input) {
    vector some{};
    __builtin_memcpy(&some, input, bytes);
    held = Sum::add(held, weight, some);
  });
  __builtin_memcpy(sums, &held, bytes);
}

template <class Sum>
void run(std::byte* sum_bytes, const window_row* first_row, index_t row_count, index_t taps,
         index_t element_count) {
  constexpr index_t lanes = vector_bytes / sizeof(typename Sum::part);
  using vector = typename Sum::vector;
  auto* sums = reinterpret_cast<typename Sum::part*>(sum_bytes);
  const window_rows<Sum> rows{first_row, row_count, taps};
  const index_t count = element_count * Sum::parts;
  if (count < lanes) return add_few<Sum>(sums, rows, count);
  // The last vector may overlap others, which are stored before. It starts from the old sums, too,
  // so that it stores the same elements.
  const index_t last = count - lanes;
  const auto last_sums = load<vector>(sums + last);
  index_t first = 0;
  for (; first + vectors_max * lanes <= count; first += vectors_max * lanes) {
    const index_t own_last = first + (vectors_max - 1) * lanes;
    add_vectors<Sum, vectors_max>(sums, rows, first, own_last, load<vector>(sums + own_last));
  }
  switch ((count - first + lanes - 1) / lanes) {
    case 1:
      return add_vectors<Sum, 1>(sums, rows, first, last, last_sums);
    case 2:
      return add_vectors<Sum, 2>(sums, rows, first, last, last_sums);
    case 3:
      return add_vectors<Sum, 3>(sums, rows, first, last, last_sums);
    case 4:
      return add_vectors<Sum, 4>(sums, rows, first, last, last_sums);
    case 5:
      return add_vectors<Sum, 5>(sums, rows, first, last, last_sums);
    case 6:
      return add_vectors<Sum, 6>(sums, rows, first, last, last_sums);
    case 7:
      return add_vectors<Sum, 7>(sums, rows, first, last, last_sums);
    case 8:
      return add_vectors<Sum, 8>(sums, rows, first, last, last_sums);
    default:
      return;
  }
}

}  // namespace

void fill_windows(window_table& table) {
  for_types(wide_floats{}, [&](auto value) {
    using T = decltype(value);
    table.set(type_of<T>, &run<plain_sum<T>>);
  });
  // Both signs wrap alike.
  for_types(integers{}, [&](auto value) {
    using T = decltype(value);
    table.set(type_of<T>, &run<plain_sum<std::make_unsigned_t<T>>>);
  });
  table.set(dtype::boolean, &run<bool_sum>);
  table.set(dtype::complex64, &run<complex_sum<float>>);
  table.set(dtype::complex128, &run<complex_sum<double>>);
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
