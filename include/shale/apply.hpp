// The engine's door for your own element code: `apply`, `apply_into`, and with them (for_each.hpp,
// reduce.hpp) `for_each_segment`, `for_each_lane` and `reduce` run a lambda over whole tensors, in
// parallel, whatever their layouts.
//
//   apply([](float& y, float x) { y += 2 * x; }, y, x);          // in place: T& is written
//   apply_into(out, [](double a, double b) { return a * b; }, a, b);
//
// Operands broadcast against each other; written ones must have the common shape. The lambda names
// its element types, which must be the tensors' own: conversion is `cast`'s business. It is inlined
// into a contiguous and a strided loop and called once for each element, in no particular order,
// from several threads at once.
//
// Throws   invalid_argument (shapes, dtypes, outputs that are broadcast or overlap themselves),
//          access_denied (a written operand is read-only), out_of_memory (an input overlaps an
//          output under another layout and its copy does not fit), io (a mapped file lost its
//          bytes), cancelled, and whatever the lambda throws first; then outputs are partly written
// Cost     one pass; allocates no element bytes unless an input overlaps an output
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "shale/apply_operands.hpp"
#include "shale/executor.hpp"
#include "shale/for_each.hpp"
#include "shale/reduce.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

namespace detail {

template <class Parameters, std::size_t... I>
std::vector<apply_operand> operands_for(const std::array<tensor, sizeof...(I)>& tensors,
                                        std::index_sequence<I...>) {
  return {apply_operand{tensors[I],
                        dtype_of<std::remove_cvref_t<std::tuple_element_t<I, Parameters>>>(),
                        written<std::tuple_element_t<I, Parameters>>}...};
}

template <class Function, class... P, std::size_t... I>
void element_block(Function& function, std::tuple<P...>*, std::byte* const* data,
                   const index_t* strides, index_t inner, index_t outer,
                   std::index_sequence<I...>) {
  constexpr index_t n = sizeof...(P);
  constexpr index_t widths[] = {static_cast<index_t>(sizeof(std::remove_cvref_t<P>))...};
  const bool contiguous = ((strides[I] == widths[I]) && ...);
  for (index_t row = 0; row < outer; ++row) {
    std::byte* const at[] = {data[I] + row * strides[n + static_cast<index_t>(I)]...};
    if (contiguous) {
      for (index_t i = 0; i < inner; ++i) function(argument<P>(at[I] + i * widths[I])...);
    } else {
      for (index_t i = 0; i < inner; ++i) function(argument<P>(at[I] + i * strides[I])...);
    }
  }
}

}  // namespace detail

/// Calls `function` once for each element of the broadcast operands; parameters that are non-const
/// references are written (and may be read), all others only read.
template <class Function, class... Tensors>
requires(sizeof...(Tensors) >= 1 && (std::is_convertible_v<const Tensors&, tensor> &&
                                     ...)) void apply(executor* on, Function&& function,
                                                      const Tensors&... operands) {
  using Parameters = typename decltype(detail::signature_of<Function>())::parameters;
  static_assert(std::tuple_size_v<Parameters> == sizeof...(Tensors),
                "one tensor for each parameter of the callable");
  static_assert(sizeof...(Tensors) <= max_apply_operands, "apply takes at most 8 operands");
  const std::array<tensor, sizeof...(Tensors)> tensors{operands...};
  auto* callable = std::addressof(function);
  detail::run_apply(
      detail::operands_for<Parameters>(tensors, std::index_sequence_for<Tensors...>{}),
      [](void* context, std::byte* const* data, const index_t* strides, index_t inner,
         index_t outer) {
        detail::element_block(**static_cast<decltype(callable)*>(context),
                              static_cast<Parameters*>(nullptr), data, strides, inner, outer,
                              std::index_sequence_for<Tensors...>{});
      },
      &callable, on);
}
template <class Function, class... Tensors>
requires(sizeof...(Tensors) >= 1 && (std::is_convertible_v<const Tensors&, tensor> &&
                                     ...)) void apply(Function&& function,
                                                      const Tensors&... operands) {
  apply(static_cast<executor*>(nullptr), std::forward<Function>(function), operands...);
}

namespace detail {

template <class Function, class Result, class... Inputs>
struct stored_result {
  Function& function;
  void operator()(Result& out, Inputs... inputs) const { out = function(inputs...); }
};
template <class Function, class Result, class Parameters>
struct stored_result_for;
template <class Function, class Result, class... P>
struct stored_result_for<Function, Result, std::tuple<P...>> {
  static_assert((!written<P> && ...), "inputs of apply_into are values or const references");
  using type = stored_result<Function, Result, P...>;
};

}  // namespace detail

/// Stores `function(inputs…)` into each element of `out`, whose dtype is that of the result type.
template <class Function, class... Tensors>
void apply_into(executor* on, const tensor& out, Function&& function, const Tensors&... inputs) {
  using Signature = decltype(detail::signature_of<Function>());
  using Stored = typename detail::stored_result_for<std::remove_reference_t<Function>,
                                                    std::remove_cvref_t<typename Signature::result>,
                                                    typename Signature::parameters>::type;
  apply(on, Stored{function}, out, inputs...);
}
template <class Function, class... Tensors>
void apply_into(const tensor& out, Function&& function, const Tensors&... inputs) {
  apply_into(static_cast<executor*>(nullptr), out, std::forward<Function>(function), inputs...);
}

}  // namespace shale
