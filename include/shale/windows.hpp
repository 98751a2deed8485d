// Expressions of sums over windows: correlation and convolution with a kernel.
//
//   tensor smooth = eval(convolve(x, full({5, 5}, 0.04f), window_mode::same));
//
// Operands have the same number of axes, at least one, and no empty axis. Dtypes promote as those
// of operators. Floats are summed in their dtype, float16 and bfloat16 in float32; integers wrap;
// for bool, the product is "and" and the sum "or", as in NumPy. Elements outside of `a` add nothing
// to a sum. Each sum takes its products in the row-major order of the elements of `kernel` (for
// `convolve`: of its elements in reverse), so that it has the same bits for any number of threads,
// any budget and any CPU. All this is different for `window_method::fft`, as described there.
//
// If `a` is a tensor, it is read in place; any other operand, also a tile source, is first computed
// as a whole into memory of the executor's pool, and held until everything that reads it is
// computed. So is a kernel that is not a row-major tensor of the dtype of the sums. Pages of mapped
// tensors stay resident after these functions have read them.
// Shape    by axis, of extents n of `a` and k of `kernel`: n - k + 1 (valid), n (same), n + k - 1
//          (full). If there is only one axis, and n < k, as in NumPy: k - n + 1 (valid), k (same)
// Cost     a node of the expression. Then each element takes as many products as the kernel has
//          elements, in every pass that reads it: evaluate it first if several passes do. Slices
//          with steps of 1 compute their elements alone; any other view is computed as a whole
//          between its ends, and held. Rows of `a` without gaps, of the dtype of the sums, are read
//          in place; others are copied part by part
// Throws   invalid_argument (other ranks, empty operands, dtypes that only store, and in mode
//          `valid`, with two axes or more, a kernel that is longer than `a` along an axis; more
//          than 2^63 - 1 elements), out_of_memory
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The positions of the kernel at which sums are computed.
enum class window_mode : std::uint8_t {
  valid,  ///< those where it lies inside `a`
  same,   ///< as many as `a` has elements, from the middle of `full`
  full,   ///< those where it meets `a`
};

/// How sums are computed.
enum class window_method : std::uint8_t {
  direct,  ///< product by product, in the order of the kernel

  /// By Fourier transforms of blocks of `a` that overlap (overlap-save), in double precision for
  /// every dtype, rounded once. Integers and bool are computed directly.
  ///
  /// The bits are the same for any layouts, number of threads and budget, on one CPU; they are not
  /// those of `direct`. The error is bounded by the norms of the kernel and of the block
  /// (docs/numerics.md): a sum that is far smaller than these has no correct digit. An element that
  /// is NaN or infinite makes all sums of its blocks NaN.
  ///
  /// Such sums take a pass of their own. It reads `a` part by part, so `a` may be larger than
  /// memory; rolling.hpp names two exceptions. The pass writes the output itself if these sums are
  /// its whole value and have its dtype, and if it shares no bytes with the operands. Otherwise the
  /// sums are held, as results of scans are (scans.hpp). The time for an element grows with the logarithm of the kernel. Each thread holds
  /// blocks of complex128: of 2^18 elements, or of up to four times the kernel's extent along every
  /// axis if these are more.
  fft,
};

/// At each position p, the sum over t of a[p + t] times the conjugate of kernel[t], as NumPy's
/// correlate. In mode `full`, positions begin at 1 - k along an axis of extent k of the kernel; in
/// mode `same`, at -(k / 2).
expr correlate(const expr& a, const expr& kernel, window_mode mode = window_mode::valid,
               window_method method = window_method::direct);

/// The same with the kernel reversed along all axes and not conjugated, as NumPy's convolve.
expr convolve(const expr& a, const expr& kernel, window_mode mode = window_mode::full,
              window_method method = window_method::direct);

}  // namespace shale
