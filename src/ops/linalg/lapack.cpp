#include "ops/linalg/lapack.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "shale/error.hpp"

namespace shale::ops::lapack {

namespace {

using c64 = std::complex<float>;
using c128 = std::complex<double>;

// ---- the types of LAPACK's functions ------------------------------------------------------------

// Fortran passes all arguments by address. The length of each text follows the other arguments.
using in = const integer*;
using letter = const char*;
using length = std::size_t;

template <class T>
using getrf_call = void(in m, in n, T* a, in lda, integer* pivots, integer* info);
template <class T>
using getrs_call = void(letter trans, in n, in nrhs, const T* a, in lda, in pivots, T* b, in ldb,
                        integer* info, length);
template <class T>
using getri_call = void(in n, T* a, in lda, in pivots, T* work, in lwork, integer* info);
template <class T>
using potrf_call = void(letter uplo, in n, T* a, in lda, integer* info, length);
template <class T>
using potrs_call = void(letter uplo, in n, in nrhs, const T* a, in lda, T* b, in ldb, integer* info,
                        length);
template <class T>
using trsm_call = void(letter side, letter uplo, letter trans, letter diag, in m, in n,
                       const T* alpha, const T* a, in lda, T* b, in ldb, length, length, length,
                       length);

}  // namespace

extern "C" {
getrf_call<float> sgetrf_;
getrf_call<double> dgetrf_;
getrf_call<c64> cgetrf_;
getrf_call<c128> zgetrf_;
getrs_call<float> sgetrs_;
getrs_call<double> dgetrs_;
getrs_call<c64> cgetrs_;
getrs_call<c128> zgetrs_;
getri_call<float> sgetri_;
getri_call<double> dgetri_;
getri_call<c64> cgetri_;
getri_call<c128> zgetri_;
potrf_call<float> spotrf_, spotri_;
potrf_call<double> dpotrf_, dpotri_;
potrf_call<c64> cpotrf_, cpotri_;
potrf_call<c128> zpotrf_, zpotri_;
potrs_call<float> spotrs_;
potrs_call<double> dpotrs_;
potrs_call<c64> cpotrs_;
potrs_call<c128> zpotrs_;
trsm_call<float> strsm_;
trsm_call<double> dtrsm_;
trsm_call<c64> ctrsm_;
trsm_call<c128> ztrsm_;

// LAPACK joins texts by this function of Fortran's run-time library, and needs nothing else of that
// library. With a definition here, programs do not have to be linked to it. The definition is weak
// for programs that are.
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

// The size of work memory that a query returned in its first element. The number was rounded to T,
// so the next larger one counts.
template <class T>
index_t work_count(T answer) {
  using R = real_of<T>;
  const R size = std::real(answer);
  return std::max<index_t>(
      1, static_cast<index_t>(std::nextafter(size, std::numeric_limits<R>::infinity())));
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
void trsm(part stored, operation how, diagonal ends, integer n, integer right_sides, const T* a,
          T* b) {
  const char uplo = as_letter(stored), trans = static_cast<char>(how),
             diag = static_cast<char>(ends);
  const integer leading = leading_of(n);
  const T one = 1;
  choose<T, strsm_, dtrsm_, ctrsm_, ztrsm_>()("L", &uplo, &trans, &diag, &n, &right_sides, &one, a,
                                              &leading, b, &leading, 1, 1, 1, 1);
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

template integer getrf(integer, integer, double*, integer, integer*);
template void getrs(integer, integer, const double*, const integer*, double*);
template index_t getri_work<double>(integer);
template integer getri(integer, double*, const integer*, double*, integer);
template integer potrf(part, integer, double*);
template void potrs(part, integer, integer, const double*, double*);
template integer potri(part, integer, double*);
template void trsm(part, operation, diagonal, integer, integer, const double*, double*);

template integer getrf(integer, integer, c64*, integer, integer*);
template void getrs(integer, integer, const c64*, const integer*, c64*);
template index_t getri_work<c64>(integer);
template integer getri(integer, c64*, const integer*, c64*, integer);
template integer potrf(part, integer, c64*);
template void potrs(part, integer, integer, const c64*, c64*);
template integer potri(part, integer, c64*);
template void trsm(part, operation, diagonal, integer, integer, const c64*, c64*);

template integer getrf(integer, integer, c128*, integer, integer*);
template void getrs(integer, integer, const c128*, const integer*, c128*);
template index_t getri_work<c128>(integer);
template integer getri(integer, c128*, const integer*, c128*, integer);
template integer potrf(part, integer, c128*);
template void potrs(part, integer, integer, const c128*, c128*);
template integer potri(part, integer, c128*);
template void trsm(part, operation, diagonal, integer, integer, const c128*, c128*);

}  // namespace shale::ops::lapack
