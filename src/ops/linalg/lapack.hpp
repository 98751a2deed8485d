// Calls LAPACK, and the two functions of BLAS that work on its matrices, for the four types that it
// knows: float, double, and complex numbers of each.
//
// These are the Fortran functions that the OpenBLAS of matrix products contains, so a process needs
// no second library. Matrices are column-major; `leading` is the distance of their columns in
// elements. Callers pass valid arguments only, because LAPACK prints a message about invalid ones
// and goes on. No function looks for NaN.
//
// LAPACK counts rows, columns and pivots from 1. Its numbers stay so in this file and in those that
// call it; public results and errors count from 0.
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

/// The integer type of LAPACK.
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

// Functions that return an `integer` return LAPACK's `info`: 0, or what the comment says.

/// a = p l u, packed into `a`. Pivots count from 1. Returns the number, from 1, of the first pivot
/// that is zero.
template <class T>
integer getrf(integer rows, integer columns, T* a, integer leading, integer* pivots);

/// b = a^-1 b, from the result of getrf.
template <class T>
void getrs(integer n, integer right_sides, const T* factors, const integer* pivots, T* b);

/// a = a^-1, from the result of getrf. The work memory has getri_work elements. Returns the number,
/// from 1, of the first pivot that is zero.
template <class T>
index_t getri_work(integer n);
template <class T>
integer getri(integer n, T* factors, const integer* pivots, T* work, integer work_count);

/// The Cholesky factor of a triangle of `a`, in place; the other triangle is not touched. Returns
/// the order, from 1, of the first leading minor that is not positive.
template <class T>
integer potrf(part stored, integer n, T* a);

/// From the result of potrf, potrs computes b = a^-1 b, and potri the triangle of a^-1. potri
/// returns the number, from 1, of the first zero on the diagonal.
template <class T>
void potrs(part stored, integer n, integer right_sides, const T* factor, T* b);
template <class T>
integer potri(part stored, integer n, T* factor);

/// b = op(a)^-1 b for a triangular matrix.
template <class T>
void trsm(part stored, operation op, diagonal ends, integer n, integer right_sides, const T* a,
          T* b);

// ---- orthogonal factors -------------------------------------------------------------------------

/// a = q r, by Householder reflections: r in the upper triangle, the reflections below it and in
/// `scales`. The work memory has geqrf_work elements.
/// Throws   unsupported (geqrf_work and the other functions of work sizes: the size does not fit in
///          32 bits)
template <class T>
index_t geqrf_work(integer rows, integer columns);
template <class T>
void geqrf(integer rows, integer columns, T* a, T* scales, T* work, integer work_count);

/// The first `columns` columns of q, in place, from `reflections` of geqrf.
template <class T>
index_t orgqr_work(integer rows, integer columns, integer reflections);
template <class T>
void orgqr(integer rows, integer columns, integer reflections, T* a, const T* scales, T* work,
           integer work_count);

/// c = op(q) c or c op(q). The reflections have as many rows as q.
template <class T>
index_t ormqr_work(side where, integer rows, integer columns, integer reflections);
template <class T>
void ormqr(side where, operation op, integer rows, integer columns, integer reflections, const T* a,
           const T* scales, T* c, T* work, integer work_count);

/// The Cholesky factor of `a`, whose rows and columns are put into the order of the pivots, the
/// largest first. The factorization stops when all pivots that are left are at most `tolerance`. A
/// negative tolerance stands for n epsilon times the largest element of the diagonal. Pivots count
/// from 1. `work` has 2 n elements. Returns the rank.
template <class T>
integer pstrf(part stored, integer n, T* a, integer* pivots, real_of<T> tolerance,
              real_of<T>* work);

// ---- eigenvalues and singular values ------------------------------------------------------------

/// Sizes of the three kinds of work memory.
struct work_sizes {
  index_t elements = 1;
  index_t reals = 1;
  index_t integers = 1;
};

/// The work memory itself.
template <class T>
struct work_memory {
  T* elements;
  real_of<T>* reals;
  integer* integers;
  work_sizes sizes;
};

/// Whether vectors are wanted besides values. `reduced` and `full` differ for singular vectors.
enum class vectors : char { none = 'N', reduced = 'S', full = 'A' };

/// The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors in place of it (not with
/// `none`). Returns a number above 0 if it does not converge.
/// Throws   unsupported (eigh_work: the sizes do not fit in 32 bits)
template <class T>
work_sizes eigh_work(vectors wanted, integer n);
template <class T>
integer eigh(vectors wanted, part stored, integer n, T* a, real_of<T>* values,
             const work_memory<T>& work);

/// The singular values, descending, and vectors: u has as many rows as `a`, `vh` as many columns.
/// `a` is overwritten. Returns a number above 0 if it does not converge.
/// Throws   unsupported (svd_work)
template <class T>
work_sizes svd_work(vectors wanted, integer rows, integer columns);
template <class T>
integer svd(vectors wanted, integer rows, integer columns, T* a, real_of<T>* values, T* u, T* vh,
            const work_memory<T>& work);

/// The eigenvalues of any square matrix and its right eigenvectors, of magnitude 1 (not with
/// `none`). For real T, values are `values` + i `imaginary`, and pairs of conjugate vectors are two
/// columns: real and imaginary parts. `a` is overwritten. Returns a number above 0 if it does not
/// converge.
template <class T>
work_sizes eig_work(vectors wanted, integer n);
template <class T>
integer eig(vectors wanted, integer n, T* a, T* values, real_of<T>* imaginary, T* right,
            const work_memory<T>& work);

// ---- products -----------------------------------------------------------------------------------

/// c = op(a) op(b) for matrices without gaps, rows x inner times inner x columns.
template <class T>
void gemm(operation of_a, operation of_b, integer rows, integer columns, integer inner, const T* a,
          const T* b, T* c);

}  // namespace shale::ops::lapack
