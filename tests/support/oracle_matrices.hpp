// Matrices of long double complex numbers, as an oracle for linear algebra: they are read from
// tensors index by index, and multiplied by loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "shale/tensor.hpp"
#include "support/random_tensors.hpp"

namespace shale::test {

using number = std::complex<long double>;

struct oracle_matrix {
  index_t rows;
  index_t columns;
  std::vector<number> elements;  // row-major

  oracle_matrix(index_t row_count, index_t column_count)
      : rows(row_count),
        columns(column_count),
        elements(static_cast<std::size_t>(row_count * column_count)) {}

  number& operator()(index_t row, index_t column) {
    return elements[static_cast<std::size_t>(row * columns + column)];
  }
  const number& operator()(index_t row, index_t column) const {
    return elements[static_cast<std::size_t>(row * columns + column)];
  }

  static oracle_matrix identity(index_t n) {
    oracle_matrix made(n, n);
    for (index_t i = 0; i < n; ++i) made(i, i) = 1;
    return made;
  }

  oracle_matrix transposed() const {
    oracle_matrix made(columns, rows);
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) made(j, i) = (*this)(i, j);
    return made;
  }

  oracle_matrix adjoint() const {
    oracle_matrix made = transposed();
    for (number& value : made.elements) value = std::conj(value);
    return made;
  }

  /// The elements on the diagonal and on one side of it; the others are 0.
  oracle_matrix lower() const { return part(true); }
  oracle_matrix upper() const { return part(false); }

  long double largest() const {
    long double most = 0;
    for (const number& value : elements) most = std::max(most, std::abs(value));
    return most;
  }

 private:
  oracle_matrix part(bool below) const {
    oracle_matrix made = *this;
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        if (below ? j > i : j < i) made(i, j) = 0;
    return made;
  }
};

inline oracle_matrix operator*(const oracle_matrix& a, const oracle_matrix& b) {
  oracle_matrix made(a.rows, b.columns);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < b.columns; ++j)
      for (index_t k = 0; k < a.columns; ++k) made(i, j) += a(i, k) * b(k, j);
  return made;
}

inline oracle_matrix operator-(oracle_matrix a, const oracle_matrix& b) {
  for (std::size_t i = 0; i < a.elements.size(); ++i) a.elements[i] -= b.elements[i];
  return a;
}

/// The largest difference of two matrices of one shape; infinite if the shapes differ.
inline long double distance(const oracle_matrix& a, const oracle_matrix& b) {
  if (a.rows != b.rows || a.columns != b.columns)
    return std::numeric_limits<long double>::infinity();
  return (a - b).largest();
}

/// All elements of a tensor, row-major.
inline std::vector<number> numbers_of(const tensor& values) {
  std::vector<number> made;
  const std::size_t item = values.item_bytes();
  for (const index_t position : positions_of(values)) {
    const std::byte* const from = values.storage().data() + position * static_cast<index_t>(item);
    visit(values.dtype(), computing_types{}, [&]<class T>(std::type_identity<T>) {
      T element;
      std::memcpy(&element, from, sizeof(T));
      if constexpr (std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>)
        made.emplace_back(element.real(), element.imag());
      else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
        made.emplace_back(static_cast<float>(element));
      else made.emplace_back(static_cast<long double>(element));
    });
  }
  return made;
}

/// The matrices of the last two axes, row-major over the axes in front.
inline std::vector<oracle_matrix> matrices_of(const tensor& values) {
  const index_t rows = values.shape(-2), columns = values.shape(-1);
  std::vector<oracle_matrix> made;
  const std::vector<number> all = numbers_of(values);
  const auto each = static_cast<std::size_t>(rows * columns);
  index_t count = 1;
  for (index_t axis = 0; axis < values.rank() - 2; ++axis) count *= values.shape(axis);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    made.emplace_back(rows, columns);
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(i * each), each,
                made.back().elements.begin());
  }
  return made;
}

/// Sets the element of a tensor at `position` of its storage.
template <class T>
void set_at(const tensor& values, index_t position, T element) {
  std::memcpy(values.storage().data() + position * static_cast<index_t>(sizeof(T)), &element,
              sizeof(T));
}

/// Sets all matrices of a tensor of floats or complex numbers, rounded to its dtype.
inline void set_matrices(const tensor& values, const std::vector<oracle_matrix>& matrices) {
  const auto positions = positions_of(values);
  std::size_t next = 0;
  visit(values.dtype(), type_list<float, double, std::complex<float>, std::complex<double>>{},
        [&]<class T>(std::type_identity<T>) {
          for (const oracle_matrix& matrix : matrices)
            for (const number& element : matrix.elements) {
              if constexpr (std::is_floating_point_v<T>)
                set_at(values, positions[next++], static_cast<T>(element.real()));
              else set_at(values, positions[next++], static_cast<T>(element));
            }
        });
}

/// A tensor of a random layout whose elements are random numbers of magnitude up to 1 or so.
/// Integers are between -9 and 9, or 0 and 9.
template <class Choose>
tensor random_numbers(Choose&& choose, dtype type, const dims& shape) {
  return visit(type, computing_types{}, [&]<class T>(std::type_identity<T>) {
    const tensor made = random_tensor<T>(choose, shape, sharing::distinct);
    for (const index_t position : positions_of(made)) {
      const auto fraction = [&] { return static_cast<double>(choose(-1000, 1000)) / 1000; };
      if constexpr (std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>) {
        using R = typename T::value_type;
        const auto real_part = static_cast<R>(fraction());
        set_at(made, position, T(real_part, static_cast<R>(fraction())));
      } else if constexpr (std::is_same_v<T, bool>) {
        set_at(made, position, choose(0, 1) == 1);
      } else if constexpr (std::is_integral_v<T>) {
        set_at(made, position, static_cast<T>(choose(std::is_signed_v<T> ? -9 : 0, 9)));
      } else {
        set_at(made, position, static_cast<T>(static_cast<float>(fraction())));
      }
    }
    return made;
  });
}

/// The distance from 1 to the next number of a dtype.
inline long double epsilon_of(dtype type) {
  switch (type) {
    case dtype::bfloat16:
      return 0x1p-7L;
    case dtype::float16:
      return 0x1p-10L;
    case dtype::float32:
    case dtype::complex64:
      return std::numeric_limits<float>::epsilon();
    default:
      return std::numeric_limits<double>::epsilon();
  }
}

}  // namespace shale::test
