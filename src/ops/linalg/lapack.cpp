#include "ops/linalg/lapack.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "ops/linalg/fortran_functions.hpp"
#include "shale/error.hpp"

namespace shale::ops::lapack {

extern "C" {
// LAPACK joins texts by this function of Fortran's run-time library. It needs nothing else of that
// library, so with a definition here programs need not be linked to the library. The definition is
// weak, so that programs that are linked to it have the library's own.
__attribute__((weak)) void _gfortran_concat_string(length to_length, char* to, length a_length,
                                                   const char* a, length b_length, const char* b) {
  const length first = std::min(a_length, to_length);
  const length second = std::min(b_length, to_length - first);
  std::memcpy(to, a, first);
  std::memcpy(to + first, b, second);
  std::memset(to + first + second, ' ', to_length - first - second);
}
}

namespace {

// The function for T among the four of one name.
template <class T, auto S, auto D, auto C, auto Z>
constexpr auto choose() {
  if constexpr (std::is_same_v<T, float>) return S;
  else if constexpr (std::is_same_v<T, double>) return D;
  else if constexpr (std::is_same_v<T, c64>) return C;
  else return Z;
}

// The distance of columns must be at least 1, also in matrices without elements.
integer leading_of(integer rows) { return std::max<integer>(rows, 1); }

// The size of work memory, which a query returns as an element. LAPACK may have rounded the size
// down to T, so the next larger number is taken.
template <class T>
index_t work_count(T answer) {
  using R = real_of<T>;
  const R size = std::real(answer);
  return std::max<index_t>(
      1, static_cast<index_t>(std::nextafter(size, std::numeric_limits<R>::infinity())));
}

// The size of work memory for blocks of reflections, `extent` elements for each reflection of a
// block, from LAPACK's answer. LAPACK multiplies in 32 bits, so its answer is wrong for large
// extents. If all reflections fit into one block, LAPACK makes no blocks, and needs `extent`
// elements. For more reflections it would compare the size that it is given with a product that is
// wrong, too.
template <class T>
index_t blocked_work_count(T answer, index_t extent, index_t reflections) {
  constexpr index_t block = 32;           // ILAENV's size of blocks
  constexpr index_t triangles = 65 * 64;  // the factors of a block, which some functions also keep
  const index_t needed = extent * block + triangles;
  if (needed <= std::numeric_limits<integer>::max()) return std::max(work_count(answer), extent);
  if (reflections > block) integer_of(needed);
  return extent;
}

constexpr integer query = -1;

char as_letter(part value) { return static_cast<char>(value); }

}  // namespace

integer integer_of(index_t number) {
  if (number <= std::numeric_limits<integer>::max()) return static_cast<integer>(number);
  throw error(errc::unsupported, "a matrix is too large for LAPACK, which counts in 32 bits",
              {"got " + std::to_string(number) + " rows, columns or elements of work memory, " +
               "wanted at most " + std::to_string(std::numeric_limits<integer>::max())});
}

template <class T>
integer getrf(integer rows, integer columns, T* a, integer leading, integer* pivots) {
  integer info = 0;
  choose<T, sgetrf_, dgetrf_, cgetrf_, zgetrf_>()(&rows, &columns, a, &leading, pivots, &info);
  return info;
}

template <class T>
void getrs(integer n, integer right_sides, const T* factors, const integer* pivots, T* b) {
  const integer leading = leading_of(n);
  integer info = 0;
  choose<T, sgetrs_, dgetrs_, cgetrs_, zgetrs_>()("N", &n, &right_sides, factors, &leading, pivots,
                                                  b, &leading, &info, 1);
}

template <class T>
index_t getri_work(integer n) {
  T answer{};
  const integer leading = leading_of(n);
  integer info = 0, pivot = 0;
  choose<T, sgetri_, dgetri_, cgetri_, zgetri_>()(&n, nullptr, &leading, &pivot, &answer, &query,
                                                  &info);
  return work_count(answer);
}

template <class T>
integer getri(integer n, T* factors, const integer* pivots, T* work, integer work_count) {
  const integer leading = leading_of(n);
  integer info = 0;
  choose<T, sgetri_, dgetri_, cgetri_, zgetri_>()(&n, factors, &leading, pivots, work, &work_count,
                                                  &info);
  return info;
}

template <class T>
integer potrf(part stored, integer n, T* a) {
  const char uplo = as_letter(stored);
  const integer leading = leading_of(n);
  integer info = 0;
  choose<T, spotrf_, dpotrf_, cpotrf_, zpotrf_>()(&uplo, &n, a, &leading, &info, 1);
  return info;
}

template <class T>
void potrs(part stored, integer n, integer right_sides, const T* factor, T* b) {
  const char uplo = as_letter(stored);
  const integer leading = leading_of(n);
  integer info = 0;
  choose<T, spotrs_, dpotrs_, cpotrs_, zpotrs_>()(&uplo, &n, &right_sides, factor, &leading, b,
                                                  &leading, &info, 1);
}

template <class T>
integer potri(part stored, integer n, T* factor) {
  const char uplo = as_letter(stored);
  const integer leading = leading_of(n);
  integer info = 0;
  choose<T, spotri_, dpotri_, cpotri_, zpotri_>()(&uplo, &n, factor, &leading, &info, 1);
  return info;
}

template <class T>
void trsm(part stored, operation op, diagonal ends, integer n, integer right_sides, const T* a,
          T* b) {
  const char uplo = as_letter(stored), trans = static_cast<char>(op),
             diag = static_cast<char>(ends);
  const integer leading = leading_of(n);
  const T one = 1;
  choose<T, strsm_, dtrsm_, ctrsm_, ztrsm_>()("L", &uplo, &trans, &diag, &n, &right_sides, &one, a,
                                              &leading, b, &leading, 1, 1, 1, 1);
}

template <class T>
index_t geqrf_work(integer rows, integer columns) {
  T answer{}, unused{};
  const integer leading = leading_of(rows);
  integer info = 0;
  choose<T, sgeqrf_, dgeqrf_, cgeqrf_, zgeqrf_>()(&rows, &columns, &unused, &leading, &unused,
                                                  &answer, &query, &info);
  return blocked_work_count(answer, columns, std::min(rows, columns));
}

template <class T>
void geqrf(integer rows, integer columns, T* a, T* scales, T* work, integer work_count) {
  const integer leading = leading_of(rows);
  integer info = 0;
  choose<T, sgeqrf_, dgeqrf_, cgeqrf_, zgeqrf_>()(&rows, &columns, a, &leading, scales, work,
                                                  &work_count, &info);
}

template <class T>
index_t orgqr_work(integer rows, integer columns, integer reflections) {
  T answer{}, unused{};
  const integer leading = leading_of(rows);
  integer info = 0;
  choose<T, sorgqr_, dorgqr_, cungqr_, zungqr_>()(&rows, &columns, &reflections, &unused, &leading,
                                                  &unused, &answer, &query, &info);
  return blocked_work_count(answer, columns, reflections);
}

template <class T>
void orgqr(integer rows, integer columns, integer reflections, T* a, const T* scales, T* work,
           integer work_count) {
  const integer leading = leading_of(rows);
  integer info = 0;
  choose<T, sorgqr_, dorgqr_, cungqr_, zungqr_>()(&rows, &columns, &reflections, a, &leading,
                                                  scales, work, &work_count, &info);
}

template <class T>
index_t ormqr_work(side where, integer rows, integer columns, integer reflections) {
  T answer{}, unused{};
  const char at = static_cast<char>(where);
  const integer leading_a = leading_of(where == side::left ? rows : columns);
  const integer leading_c = leading_of(rows);
  integer info = 0;
  choose<T, sormqr_, dormqr_, cunmqr_, zunmqr_>()(&at, "N", &rows, &columns, &reflections, &unused,
                                                  &leading_a, &unused, &unused, &leading_c, &answer,
                                                  &query, &info, 1, 1);
  return blocked_work_count(answer, where == side::left ? columns : rows, reflections);
}

template <class T>
void ormqr(side where, operation op, integer rows, integer columns, integer reflections, const T* a,
           const T* scales, T* c, T* work, integer work_count) {
  const char at = static_cast<char>(where);
  const char trans = static_cast<char>(op);
  const integer leading_a = leading_of(where == side::left ? rows : columns);
  const integer leading_c = leading_of(rows);
  integer info = 0;
  choose<T, sormqr_, dormqr_, cunmqr_, zunmqr_>()(&at, &trans, &rows, &columns, &reflections, a,
                                                  &leading_a, scales, c, &leading_c, work,
                                                  &work_count, &info, 1, 1);
}

// Whether no element of the diagonal is larger than the tolerance. The result is false if one is
// NaN.
template <class T>
bool is_small_diagonal(integer n, const T* a, real_of<T> tolerance) {
  for (index_t i = 0; i < n; ++i)
    if (!(std::real(a[i * (index_t{n} + 1)]) <= tolerance)) return false;
  return true;
}

template <class T>
integer pstrf(part stored, integer n, T* a, integer* pivots, real_of<T> tolerance,
              real_of<T>* work) {
  const char uplo = as_letter(stored);
  const integer leading = leading_of(n);
  // LAPACK compares the first pivot with 0, and only the others with the tolerance.
  if (is_small_diagonal(n, a, tolerance)) {
    std::iota(pivots, pivots + n, integer{1});
    return 0;
  }
  integer info = 0, rank = 0;
  choose<T, spstrf_, dpstrf_, cpstrf_, zpstrf_>()(&uplo, &n, a, &leading, pivots, &rank, &tolerance,
                                                  work, &info, 1);
  return rank;
}

template <class T>
work_sizes eigh_work(vectors wanted, integer n) {
  // The minimum sizes of LAPACK's documentation, and room for blocks of 64 columns.
  const index_t m = std::max<integer>(n, 1);
  const bool values_only = wanted == vectors::none;
  if (!values_only) integer_of(m * m);  // so that the sums below do not overflow
  const index_t square = values_only ? 0 : 2 * m * m;
  const index_t block = index_t{64} * m;
  work_sizes sizes;
  sizes.elements = is_complex<T> ? 2 * m + square / 2 + block : 1 + 6 * m + square + block;
  sizes.reals = is_complex<T> ? 1 + 5 * m + square : 1;
  sizes.integers = 3 + 5 * m;
  integer_of(std::max(sizes.elements, sizes.reals));
  return sizes;
}

template <class T>
integer eigh(vectors wanted, part stored, integer n, T* a, real_of<T>* values,
             const work_memory<T>& work) {
  const char jobz = wanted == vectors::none ? 'N' : 'V', uplo = as_letter(stored);
  const integer leading = leading_of(n);
  const auto elements = integer_of(work.sizes.elements), reals = integer_of(work.sizes.reals),
             integers = integer_of(work.sizes.integers);
  integer info = 0;
  if constexpr (is_complex<T>)
    choose<T, 0, 0, cheevd_, zheevd_>()(&jobz, &uplo, &n, a, &leading, values, work.elements,
                                        &elements, work.reals, &reals, work.integers, &integers,
                                        &info, 1, 1);
  else
    choose<T, ssyevd_, dsyevd_, 0, 0>()(&jobz, &uplo, &n, a, &leading, values, work.elements,
                                        &elements, work.integers, &integers, &info, 1, 1);
  return info;
}

template <class T>
work_sizes svd_work(vectors wanted, integer rows, integer columns) {
  // The names of LAPACK's documentation: the smaller extent and the larger one.
  const index_t mn = std::max(std::min(rows, columns), 1);
  const index_t mx = std::max({rows, columns, 1});
  // LAPACK counts in 32 bits while it computes these sizes, so they are checked before.
  work_sizes sizes;
  sizes.integers = 8 * mn;
  const bool values_only = wanted == vectors::none;
  if (!values_only) integer_of(mn * mn);  // so that the sums below do not overflow
  if (is_complex<T>)
    sizes.reals =
        values_only ? 7 * mn : std::max(5 * mn * mn + 5 * mn, 2 * mx * mn + 2 * mn * mn + mn);
  const index_t elements_min = values_only ? 7 * mn + mx : 4 * mn * mn + 7 * mn + mx + mn * mx;
  integer_of(std::max({elements_min, sizes.reals, mx * (wanted == vectors::full ? mx : 1)}));
  T answer{}, unused{};
  real_of<T> real_unused{};
  const char jobz = static_cast<char>(wanted);
  const auto leading = static_cast<integer>(mx);
  integer info = 0, integer_unused = 0;
  if constexpr (is_complex<T>)
    choose<T, 0, 0, cgesdd_, zgesdd_>()(&jobz, &rows, &columns, &unused, &leading, &real_unused,
                                        &unused, &leading, &unused, &leading, &answer, &query,
                                        &real_unused, &integer_unused, &info, 1);
  else
    choose<T, sgesdd_, dgesdd_, 0, 0>()(&jobz, &rows, &columns, &unused, &leading, &real_unused,
                                        &unused, &leading, &unused, &leading, &answer, &query,
                                        &integer_unused, &info, 1);
  sizes.elements = std::max(elements_min, work_count(answer));
  integer_of(sizes.elements);
  return sizes;
}

template <class T>
integer svd(vectors wanted, integer rows, integer columns, T* a, real_of<T>* values, T* u, T* vh,
            const work_memory<T>& work) {
  const char jobz = static_cast<char>(wanted);
  const integer leading = leading_of(rows);
  const integer leading_vh =
      leading_of(wanted == vectors::full ? columns : std::min(rows, columns));
  const integer elements = integer_of(work.sizes.elements);
  integer info = 0;
  if constexpr (is_complex<T>)
    choose<T, 0, 0, cgesdd_, zgesdd_>()(&jobz, &rows, &columns, a, &leading, values, u, &leading,
                                        vh, &leading_vh, work.elements, &elements, work.reals,
                                        work.integers, &info, 1);
  else
    choose<T, sgesdd_, dgesdd_, 0, 0>()(&jobz, &rows, &columns, a, &leading, values, u, &leading,
                                        vh, &leading_vh, work.elements, &elements, work.integers,
                                        &info, 1);
  return info;
}

template <class T>
work_sizes eig_work(vectors wanted, integer n) {
  work_sizes sizes;
  sizes.reals = 2 * index_t{std::max(n, 1)};
  T answer{}, unused{};
  real_of<T> real_unused{};
  const char right = wanted == vectors::none ? 'N' : 'V';
  const integer leading = leading_of(n);
  integer info = 0;
  if constexpr (is_complex<T>)
    choose<T, 0, 0, cgeev_, zgeev_>()("N", &right, &n, &unused, &leading, &unused, &unused,
                                      &leading, &unused, &leading, &answer, &query, &real_unused,
                                      &info, 1, 1);
  else
    choose<T, sgeev_, dgeev_, 0, 0>()("N", &right, &n, &unused, &leading, &unused, &unused, &unused,
                                      &leading, &unused, &leading, &answer, &query, &info, 1, 1);
  sizes.elements = std::max(work_count(answer), 4 * sizes.reals);
  integer_of(sizes.elements);
  return sizes;
}

template <class T>
integer eig(vectors wanted, integer n, T* a, T* values, real_of<T>* imaginary, T* right,
            const work_memory<T>& work) {
  const char job = wanted == vectors::none ? 'N' : 'V';
  const integer leading = leading_of(n), elements = integer_of(work.sizes.elements);
  integer info = 0;
  if constexpr (is_complex<T>)
    choose<T, 0, 0, cgeev_, zgeev_>()("N", &job, &n, a, &leading, values, nullptr, &leading, right,
                                      &leading, work.elements, &elements, work.reals, &info, 1, 1);
  else
    choose<T, sgeev_, dgeev_, 0, 0>()("N", &job, &n, a, &leading, values, imaginary, nullptr,
                                      &leading, right, &leading, work.elements, &elements, &info, 1,
                                      1);
  return info;
}

template <class T>
void gemm(operation of_a, operation of_b, integer rows, integer columns, integer inner, const T* a,
          const T* b, T* c) {
  const char left = static_cast<char>(of_a), right = static_cast<char>(of_b);
  const integer leading_a = leading_of(of_a == operation::none ? rows : inner);
  const integer leading_b = leading_of(of_b == operation::none ? inner : columns);
  const integer leading_c = leading_of(rows);
  const T one = 1, zero = 0;
  choose<T, sgemm_, dgemm_, cgemm_, zgemm_>()(&left, &right, &rows, &columns, &inner, &one, a,
                                              &leading_a, b, &leading_b, &zero, c, &leading_c, 1,
                                              1);
}

// ---- the four types -----------------------------------------------------------------------------

template integer getrf(integer, integer, float*, integer, integer*);
template void getrs(integer, integer, const float*, const integer*, float*);
template index_t getri_work<float>(integer);
template integer getri(integer, float*, const integer*, float*, integer);
template integer potrf(part, integer, float*);
template void potrs(part, integer, integer, const float*, float*);
template integer potri(part, integer, float*);
template void trsm(part, operation, diagonal, integer, integer, const float*, float*);
template index_t geqrf_work<float>(integer, integer);
template void geqrf(integer, integer, float*, float*, float*, integer);
template index_t orgqr_work<float>(integer, integer, integer);
template void orgqr(integer, integer, integer, float*, const float*, float*, integer);
template index_t ormqr_work<float>(side, integer, integer, integer);
template void ormqr(side, operation, integer, integer, integer, const float*, const float*, float*,
                    float*, integer);
template integer pstrf(part, integer, float*, integer*, float, float*);
template work_sizes eigh_work<float>(vectors, integer);
template integer eigh(vectors, part, integer, float*, float*, const work_memory<float>&);
template work_sizes svd_work<float>(vectors, integer, integer);
template integer svd(vectors, integer, integer, float*, float*, float*, float*,
                     const work_memory<float>&);
template work_sizes eig_work<float>(vectors, integer);
template integer eig(vectors, integer, float*, float*, float*, float*, const work_memory<float>&);
template void gemm(operation, operation, integer, integer, integer, const float*, const float*,
                   float*);

template integer getrf(integer, integer, double*, integer, integer*);
template void getrs(integer, integer, const double*, const integer*, double*);
template index_t getri_work<double>(integer);
template integer getri(integer, double*, const integer*, double*, integer);
template integer potrf(part, integer, double*);
template void potrs(part, integer, integer, const double*, double*);
template integer potri(part, integer, double*);
template void trsm(part, operation, diagonal, integer, integer, const double*, double*);
template index_t geqrf_work<double>(integer, integer);
template void geqrf(integer, integer, double*, double*, double*, integer);
template index_t orgqr_work<double>(integer, integer, integer);
template void orgqr(integer, integer, integer, double*, const double*, double*, integer);
template index_t ormqr_work<double>(side, integer, integer, integer);
template void ormqr(side, operation, integer, integer, integer, const double*, const double*,
                    double*, double*, integer);
template integer pstrf(part, integer, double*, integer*, double, double*);
template work_sizes eigh_work<double>(vectors, integer);
template integer eigh(vectors, part, integer, double*, double*, const work_memory<double>&);
template work_sizes svd_work<double>(vectors, integer, integer);
template integer svd(vectors, integer, integer, double*, double*, double*, double*,
                     const work_memory<double>&);
template work_sizes eig_work<double>(vectors, integer);
template integer eig(vectors, integer, double*, double*, double*, double*,
                     const work_memory<double>&);
template void gemm(operation, operation, integer, integer, integer, const double*, const double*,
                   double*);

template integer getrf(integer, integer, c64*, integer, integer*);
template void getrs(integer, integer, const c64*, const integer*, c64*);
template index_t getri_work<c64>(integer);
template integer getri(integer, c64*, const integer*, c64*, integer);
template integer potrf(part, integer, c64*);
template void potrs(part, integer, integer, const c64*, c64*);
template integer potri(part, integer, c64*);
template void trsm(part, operation, diagonal, integer, integer, const c64*, c64*);
template index_t geqrf_work<c64>(integer, integer);
template void geqrf(integer, integer, c64*, c64*, c64*, integer);
template index_t orgqr_work<c64>(integer, integer, integer);
template void orgqr(integer, integer, integer, c64*, const c64*, c64*, integer);
template index_t ormqr_work<c64>(side, integer, integer, integer);
template void ormqr(side, operation, integer, integer, integer, const c64*, const c64*, c64*, c64*,
                    integer);
template integer pstrf(part, integer, c64*, integer*, float, float*);
template work_sizes eigh_work<c64>(vectors, integer);
template integer eigh(vectors, part, integer, c64*, float*, const work_memory<c64>&);
template work_sizes svd_work<c64>(vectors, integer, integer);
template integer svd(vectors, integer, integer, c64*, float*, c64*, c64*, const work_memory<c64>&);
template work_sizes eig_work<c64>(vectors, integer);
template integer eig(vectors, integer, c64*, c64*, float*, c64*, const work_memory<c64>&);
template void gemm(operation, operation, integer, integer, integer, const c64*, const c64*, c64*);

template integer getrf(integer, integer, c128*, integer, integer*);
template void getrs(integer, integer, const c128*, const integer*, c128*);
template index_t getri_work<c128>(integer);
template integer getri(integer, c128*, const integer*, c128*, integer);
template integer potrf(part, integer, c128*);
template void potrs(part, integer, integer, const c128*, c128*);
template integer potri(part, integer, c128*);
template void trsm(part, operation, diagonal, integer, integer, const c128*, c128*);
template index_t geqrf_work<c128>(integer, integer);
template void geqrf(integer, integer, c128*, c128*, c128*, integer);
template index_t orgqr_work<c128>(integer, integer, integer);
template void orgqr(integer, integer, integer, c128*, const c128*, c128*, integer);
template index_t ormqr_work<c128>(side, integer, integer, integer);
template void ormqr(side, operation, integer, integer, integer, const c128*, const c128*, c128*,
                    c128*, integer);
template integer pstrf(part, integer, c128*, integer*, double, double*);
template work_sizes eigh_work<c128>(vectors, integer);
template integer eigh(vectors, part, integer, c128*, double*, const work_memory<c128>&);
template work_sizes svd_work<c128>(vectors, integer, integer);
template integer svd(vectors, integer, integer, c128*, double*, c128*, c128*,
                     const work_memory<c128>&);
template work_sizes eig_work<c128>(vectors, integer);
template integer eig(vectors, integer, c128*, c128*, double*, c128*, const work_memory<c128>&);
template void gemm(operation, operation, integer, integer, integer, const c128*, const c128*,
                   c128*);

}  // namespace shale::ops::lapack
