// Makes a kernel from a function of single elements.
#pragma once

#include "ops/kernels/dispatch/table.hpp"
#include "ops/kernels/elementwise/elements.hpp"
#include "ops/kernels/strided/run_strided.hpp"

// Tells the compiler that the next loop has no dependence between iterations. The contract of
// `kernel` guarantees it: an output shares an element only with the input element of the same
// index.
#if defined(__clang__)
#define SHALE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SHALE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

template <class Function, class Out, class A>
void contiguous(std::byte* const* data, index_t count) {
  auto* out = reinterpret_cast<Out*>(data[0]);
  const auto* a = reinterpret_cast<const A*>(data[1]);
  SHALE_INDEPENDENT
  for (index_t i = 0; i < count; ++i) out[i] = Function{}(a[i]);
}

template <class Function, class Out, class A, class B>
void contiguous(std::byte* const* data, index_t count) {
  auto* out = reinterpret_cast<Out*>(data[0]);
  const auto* a = reinterpret_cast<const A*>(data[1]);
  const auto* b = reinterpret_cast<const B*>(data[2]);
  SHALE_INDEPENDENT
  for (index_t i = 0; i < count; ++i) out[i] = Function{}(a[i], b[i]);
}

template <class Function, class Out, class A, class B, class C>
void contiguous(std::byte* const* data, index_t count) {
  auto* out = reinterpret_cast<Out*>(data[0]);
  const auto* a = reinterpret_cast<const A*>(data[1]);
  const auto* b = reinterpret_cast<const B*>(data[2]);
  const auto* c = reinterpret_cast<const C*>(data[3]);
  SHALE_INDEPENDENT
  for (index_t i = 0; i < count; ++i) out[i] = Function{}(a[i], b[i], c[i]);
}

/// The kernel that runs a contiguous loop over operands of these widths, for any strides.
template <contiguous_loop loop, std::size_t... widths>
void run(std::byte* const* data, const index_t* strides_bytes, index_t inner, index_t outer) {
  constexpr int count = sizeof...(widths);
  const index_t* stride = strides_bytes;
  if (outer == 1 && ((*stride++ == static_cast<index_t>(widths)) && ...)) return loop(data, inner);
  static constexpr loop_shape shape{loop, count, {static_cast<std::uint8_t>(widths)...}};
  run_strided(shape, data, strides_bytes, inner, outer);
}

/// The kernel that applies a function without state to elements of these types.
template <class Out, class... In, class Function>
constexpr kernel kernel_for(Function) {
  return &run<&contiguous<Function, Out, In...>, sizeof(Out), sizeof(In)...>;
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
