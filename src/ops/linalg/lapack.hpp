// Calls LAPACK, and the two functions of BLAS that work on its matrices, for the four types that it
// knows: float, double, and complex numbers of each.
//
// These are the Fortran functions that the OpenBLAS of matrix products contains, so a process needs
// no second library. Matrices are column-major; `leading` is the distance of their columns in
// elements. Arguments are valid, because LAPACK prints a message about others and goes on. No
// function looks for NaN.
//
// Invariants
//   lapack.1  a thread holds a blas_buffer while it is inside (see blas_buffer.hpp)
//   lapack.2  a matrix is computed by one thread, and no function keeps a state between calls
//   lapack.3  numbers are of 32 bits: `integer_of` refuses others before memory is used
#pragma once

#include <complex>
#include <cstdint>

#include "shale/dtype.hpp"
#include "shale/index.hpp"

namespace shale::ops::lapack {

/// The integers of LAPACK.
using integer = std::int32_t;

using types = type_list<float, double, std::complex<float>, std::complex<double>>;

template <class T>
struct real {
  using type = T;
};
template <class T>
struct real<std::complex<T>> {
  using type = T;
};

/// The type of magnitudes of T.
template <class T>
using real_of = typename real<T>::type;

template <class T>
inline constexpr bool is_complex = !std::is_same_v<T, real_of<T>>;

/// An extent, or a number of elements of work memory, as LAPACK takes it.
/// Throws   unsupported (it does not fit in 32 bits)
integer integer_of(index_t number);

/// Which triangle holds the elements of a symmetric or triangular matrix, and what is done to a
/// matrix before it is used: the letters that LAPACK knows.
enum class part : char { lower = 'L', upper = 'U' };
enum class operation : char { none = 'N', transpose = 'T', conjugate_transpose = 'C' };
enum class diagonal : char { stored = 'N', ones = 'U' };
enum class side : char { left = 'L', right = 'R' };

// ---- systems of equations -----------------------------------------------------------------------

// Each function returns LAPACK's `info`: 0, or what the comment says.

/// a = p l u, packed into `a`. Pivots count from 1. Returns the number, from 1, of the first pivot
/// that is zero.
template <class T>
integer getrf(integer rows, integer columns, T* a, integer leading, integer* pivots);

/// b = a^-1 b, from the result of getrf.
template <class T>
void getrs(integer n, integer right_sides, const T* factors, const integer* pivots, T* b);

/// a = a^-1, from the result of getrf. The work memory has getri_work elements.
template <class T>
index_t getri_work(integer n);
template <class T>
integer getri(integer n, T* factors, const integer* pivots, T* work, integer work_count);

/// The Cholesky factor of a triangle of `a`, in place; the other triangle is not touched. Returns
/// the order, from 1, of the first leading minor that is not positive.
template <class T>
integer potrf(part stored, integer n, T* a);

/// b = a^-1 b, and the triangle of a^-1, from the result of potrf. potri returns the number of the
/// first zero on the diagonal.
template <class T>
void potrs(part stored, integer n, integer right_sides, const T* factor, T* b);
template <class T>
integer potri(part stored, integer n, T* factor);

/// b = op(a)^-1 b for a triangular matrix.
template <class T>
void trsm(part stored, operation how, diagonal ends, integer n, integer right_sides, const T* a,
          T* b);

}  // namespace shale::ops::lapack
