// Declares the Fortran functions of LAPACK and BLAS that lapack.cpp calls, for four types each.
#pragma once

#include <complex>
#include <cstddef>

#include "ops/linalg/lapack.hpp"

namespace shale::ops::lapack {

using c64 = std::complex<float>;
using c128 = std::complex<double>;

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
template <class T>
using geqrf_call = void(in m, in n, T* a, in lda, T* tau, T* work, in lwork, integer* info);
template <class T>
using orgqr_call = void(in m, in n, in k, T* a, in lda, const T* tau, T* work, in lwork,
                        integer* info);
template <class T>
using ormqr_call = void(letter side, letter trans, in m, in n, in k, const T* a, in lda,
                        const T* tau, T* c, in ldc, T* work, in lwork, integer* info, length,
                        length);
template <class T>
using pstrf_call = void(letter uplo, in n, T* a, in lda, integer* pivots, integer* rank,
                        const real_of<T>* tol, real_of<T>* work, integer* info, length);
template <class T>
using syevd_call = void(letter jobz, letter uplo, in n, T* a, in lda, T* w, T* work, in lwork,
                        integer* iwork, in liwork, integer* info, length, length);
template <class T>
using heevd_call = void(letter jobz, letter uplo, in n, T* a, in lda, real_of<T>* w, T* work,
                        in lwork, real_of<T>* rwork, in lrwork, integer* iwork, in liwork,
                        integer* info, length, length);
template <class T>
using real_gesdd_call = void(letter jobz, in m, in n, T* a, in lda, T* s, T* u, in ldu, T* vt,
                             in ldvt, T* work, in lwork, integer* iwork, integer* info, length);
template <class T>
using complex_gesdd_call = void(letter jobz, in m, in n, T* a, in lda, real_of<T>* s, T* u, in ldu,
                                T* vt, in ldvt, T* work, in lwork, real_of<T>* rwork,
                                integer* iwork, integer* info, length);
template <class T>
using real_geev_call = void(letter jobvl, letter jobvr, in n, T* a, in lda, T* wr, T* wi, T* vl,
                            in ldvl, T* vr, in ldvr, T* work, in lwork, integer* info, length,
                            length);
template <class T>
using complex_geev_call = void(letter jobvl, letter jobvr, in n, T* a, in lda, T* w, T* vl, in ldvl,
                               T* vr, in ldvr, T* work, in lwork, real_of<T>* rwork, integer* info,
                               length, length);
template <class T>
using gemm_call = void(letter transa, letter transb, in m, in n, in k, const T* alpha, const T* a,
                       in lda, const T* b, in ldb, const T* beta, T* c, in ldc, length, length);

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
geqrf_call<float> sgeqrf_;
orgqr_call<float> sorgqr_;
ormqr_call<float> sormqr_;
pstrf_call<float> spstrf_;
syevd_call<float> ssyevd_;
real_gesdd_call<float> sgesdd_;
real_geev_call<float> sgeev_;
gemm_call<float> sgemm_;
geqrf_call<double> dgeqrf_;
orgqr_call<double> dorgqr_;
ormqr_call<double> dormqr_;
pstrf_call<double> dpstrf_;
syevd_call<double> dsyevd_;
real_gesdd_call<double> dgesdd_;
real_geev_call<double> dgeev_;
gemm_call<double> dgemm_;
geqrf_call<c64> cgeqrf_;
orgqr_call<c64> cungqr_;
ormqr_call<c64> cunmqr_;
pstrf_call<c64> cpstrf_;
heevd_call<c64> cheevd_;
complex_gesdd_call<c64> cgesdd_;
complex_geev_call<c64> cgeev_;
gemm_call<c64> cgemm_;
geqrf_call<c128> zgeqrf_;
orgqr_call<c128> zungqr_;
ormqr_call<c128> zunmqr_;
pstrf_call<c128> zpstrf_;
heevd_call<c128> zheevd_;
complex_gesdd_call<c128> zgesdd_;
complex_geev_call<c128> zgeev_;
gemm_call<c128> zgemm_;
}  // extern "C"

}  // namespace shale::ops::lapack
