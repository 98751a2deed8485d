// Folds of products. Reducers and scanners share them.
#pragma once

#include "ops/kernels/folds/folds.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

template <class T>
struct float_product {
  using Lane = lane_type<T>;
  using State = double;
  using Value = T;
  struct Columns {
    double product[tile_columns];
  };

  static State empty() { return 1; }
  static void run(State& state, const T* values, index_t count) {
    alignas(64) Lane room[std::is_same_v<T, Lane> ? 1 : run_elements];
    const Lane* numbers = widened(values, count, room);
    lane_array products = spread(1);
    index_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (int k = 0; k < vectors; ++k) products.part[k] *= load(numbers + i + k * vector_doubles);
    double totals[lanes];
    products.store(totals);
    for (int lane = 0; i < count; ++i, ++lane) totals[lane] *= static_cast<double>(numbers[i]);
    for (int half = lanes / 2; half >= 1; half /= 2)
      for (int lane = 0; lane < half; ++lane) totals[lane] *= totals[lane + half];
    state *= totals[0];
  }
  static void merge(State& into, const State& from) { into *= from; }
  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) columns.product[i] = 1;
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    SHALE_INDEPENDENT
    for (index_t i = over.first; i < over.last; ++i)
      columns.product[i] = stack.fold(i, columns.product[i], [](double so_far, T value, int) {
        return so_far * to<double>(value);
      });
  }
  static State column(const Columns& columns, index_t index, index_t) {
    return columns.product[index];
  }
};

/// Multiplies in order, in doubles, without lanes: complex products are rare.
template <class T>
struct complex_product {
  using State = complex_of<double>;
  using Value = T;
  struct Columns {
    complex_of<double> product[tile_columns];
  };

  static complex_of<double> times(complex_of<double> a, complex_of<double> b) {
    return {a.real * b.real + flipped(a.imaginary) * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  }
  static State empty() { return {1, 0}; }
  static void run(State& state, const T* values, index_t count) {
    for (index_t i = 0; i < count; ++i) state = times(state, to<complex_of<double>>(values[i]));
  }
  static void merge(State& into, const State& from) { into = times(into, from); }
  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) columns.product[i] = {1, 0};
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    for (index_t i = over.first; i < over.last; ++i)
      columns.product[i] = stack.fold(i, columns.product[i], [](State so_far, T value, int) {
        return times(so_far, to<complex_of<double>>(value));
      });
  }
  static State column(const Columns& columns, index_t index, index_t) {
    return columns.product[index];
  }
};

/// Products modulo 2^64.
template <class T>
struct integer_product {
  using State = std::uint64_t;
  using Value = T;
  struct Columns {
    std::uint64_t product[tile_columns];
  };

  static State empty() { return 1; }
  static void run(State& state, const T* values, index_t count) {
    std::uint64_t product = 1;
    for (index_t i = 0; i < count; ++i) product *= static_cast<std::uint64_t>(number(values[i]));
    state *= product;
  }
  static void merge(State& into, const State& from) { into *= from; }
  static void begin(Columns& columns, index_t count) {
    for (index_t i = 0; i < count; ++i) columns.product[i] = 1;
  }
  template <int height>
  static void rows(Columns& columns, const stacked_rows<T, height>& stack, column_range over,
                   index_t) {
    SHALE_INDEPENDENT
    for (index_t i = over.first; i < over.last; ++i)
      columns.product[i] =
          stack.fold(i, columns.product[i], [](std::uint64_t so_far, T value, int) {
            return so_far * static_cast<std::uint64_t>(number(value));
          });
  }
  static State column(const Columns& columns, index_t index, index_t) {
    return columns.product[index];
  }
};

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
