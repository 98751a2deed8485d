// Runs your own code over the elements of whole tensors of any layout, in parallel: `apply` and
// `apply_into` here, `for_each_segment` and `for_each_lane` in for_each.hpp, `reduce` in
// reduce.hpp.
//
//   apply([](float& y, float x) { y += 2 * x; }, y, x);          // in place: T& is written
//   apply_into(out, [](double a, double b) { return a * b; }, a, b);
//
// `apply_indexed` also hands over the index of each element. `apply_in_order` is serial, for
// functions that carry state from element to element.
//
// Operands broadcast against each other; operands that are written must have the common shape. The
// function names its element types, which must be those of the tensors; convert with `astype`
// first. It is inlined into a contiguous and a strided loop and called once for each element, in no
// particular order, by several threads at once.
//
// Cost     one pass. Copies no elements unless an input overlaps an output
// Throws   invalid_argument (shapes, dtypes, a null or empty function, outputs that are broadcast
//          or overlap themselves or each other); access_denied (a written operand is read-only);
//          out_of_memory (also if an input overlaps an output under another layout and its copy
//          does not fit); unsupported (in a forked child, for a writable mapping of the parent); io
//          (a mapped file lost its bytes); corrupt (a checksum, if the executor compares them);
//          cancelled; and the first exception of the function. Outputs may be partly written then
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "shale/apply_operands.hpp"
#include "shale/executor.hpp"
#include "shale/for_each.hpp"
#include "shale/reduce.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

namespace detail {

template <class Parameters, class... Tensors, std::size_t... I>
std::array<apply_operand, sizeof...(I)> operands_for(std::index_sequence<I...>,
                                                     const Tensors&... tensors) {
  return {apply_operand{tensors,
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

// Runs `run` of apply_operands.hpp with a callable and its operands, which are tensors.
template <auto run, class Function, class... Tensors>
void apply_by(Function& function, const Tensors&... operands) {
  using Parameters = typename decltype(signature_of<Function>())::parameters;
  static_assert(std::tuple_size_v<Parameters> == sizeof...(Tensors),
                "one tensor for each parameter of the callable");
  static_assert(sizeof...(Tensors) <= apply_operands_max, "apply takes at most 8 operands");
  require_callable(function);
  auto* callable = std::addressof(function);
  run(
      operands_for<Parameters>(std::index_sequence_for<Tensors...>{}, operands...),
      [](void* context, std::byte* const* data, const index_t* strides, index_t inner,
         index_t outer) {
        element_block(**static_cast<decltype(callable)*>(context),
                      static_cast<Parameters*>(nullptr), data, strides, inner, outer,
                      std::index_sequence_for<Tensors...>{});
      },
      &callable);
}

}  // namespace detail

/// Calls `function` once for each element of the broadcast operands. A parameter that is a
/// non-const reference can be read and written, any other can only be read.
template <class Function, class... Tensors>
requires(sizeof...(Tensors) >= 1 && (std::is_convertible_v<const Tensors&, tensor> &&
                                     ...)) void apply(Function&& function,
                                                      const Tensors&... operands) {
  detail::apply_by<detail::run_apply>(function, static_cast<const tensor&>(operands)...);
}

namespace detail {

template <class Parameters>
struct after_index;
template <class Index, class... P>
struct after_index<std::tuple<Index, P...>> {
  static_assert(std::is_same_v<std::remove_cvref_t<Index>, dims> && !written<Index>,
                "the first parameter is the index: const dims&");
  using parameters = std::tuple<P...>;
};

template <class Function, class... P, std::size_t... I>
void indexed_elements(Function& function, std::tuple<P...>*, std::byte* const* data,
                      const index_t* strides, index_t inner, index_t outer,
                      const block_indices& indices, std::index_sequence<I...>) {
  constexpr index_t n = sizeof...(P);
  dims index = indices.first;
  index_t nowhere = 0;  // stands for the index along an axis that the block does not have
  index_t& column = indices.inner.axis < 0 ? nowhere : index[indices.inner.axis];
  index_t& line = indices.outer.axis < 0 ? nowhere : index[indices.outer.axis];
  const index_t first = column;
  for (index_t row = 0; row < outer; ++row) {
    std::byte* const at[] = {data[I] + row * strides[n + static_cast<index_t>(I)]...};
    for (index_t i = 0; i < inner; ++i) {
      function(std::as_const(index), argument<P>(at[I] + i * strides[I])...);
      column += indices.inner.step;
    }
    column = first;
    line += indices.outer.step;
  }
}

}  // namespace detail

/// The same with the index of the element as the first argument: `function(const dims& index,
/// T&…)`. It has an entry for each axis of the broadcast operands, and is valid during the call.
/// Cost     one pass, in the order of memory; one addition to the index for each call of the function
template <class Function, class... Tensors>
requires(sizeof...(Tensors) >= 1 && (std::is_convertible_v<const Tensors&, tensor> &&
                                     ...)) void apply_indexed(Function&& function,
                                                              const Tensors&... operands) {
  using All = typename decltype(detail::signature_of<Function>())::parameters;
  using Parameters = typename detail::after_index<All>::parameters;
  static_assert(std::tuple_size_v<Parameters> == sizeof...(Tensors),
                "one tensor for each parameter of the callable behind the index");
  static_assert(sizeof...(Tensors) <= apply_operands_max, "apply takes at most 8 operands");
  detail::require_callable(function);
  auto* callable = std::addressof(function);
  detail::run_indexed(
      detail::operands_for<Parameters>(std::index_sequence_for<Tensors...>{},
                                       static_cast<const tensor&>(operands)...),
      [](void* context, std::byte* const* data, const index_t* strides, index_t inner,
         index_t outer, const detail::block_indices& indices) {
        detail::indexed_elements(**static_cast<decltype(callable)*>(context),
                                 static_cast<Parameters*>(nullptr), data, strides, inner, outer,
                                 indices, std::index_sequence_for<Tensors...>{});
      },
      &callable);
}

/// Like `apply`, but in index order, the last axis fastest, by the calling thread alone. So the
/// function may carry state. If operands overlap, a call reads what earlier calls wrote.
/// Cost     one pass of one thread. Strided layouts cause cache misses, because elements are
///          visited in index order
/// Throws   invalid_argument (shapes, dtypes, a null or empty function, outputs that are broadcast
///          or overlap themselves), access_denied, out_of_memory, unsupported (as `apply`), io,
///          corrupt (if the executor compares checksums), cancelled, and the exception of the
///          function. Outputs may be partly written then
template <class Function, class... Tensors>
requires(sizeof...(Tensors) >= 1 && (std::is_convertible_v<const Tensors&, tensor> &&
                                     ...)) void apply_in_order(Function&& function,
                                                               const Tensors&... operands) {
  detail::apply_by<detail::run_in_order>(function, static_cast<const tensor&>(operands)...);
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

/// Stores `function(inputs…)` into each element of `out`. The dtype of `out` must be that of the
/// function's result type.
template <class Function, class... Tensors>
void apply_into(const tensor& out, Function&& function, const Tensors&... inputs) {
  using Signature = decltype(detail::signature_of<Function>());
  using Stored = typename detail::stored_result_for<std::remove_reference_t<Function>,
                                                    std::remove_cvref_t<typename Signature::result>,
                                                    typename Signature::parameters>::type;
  detail::require_callable(function);
  apply(Stored{function}, out, inputs...);
}

}  // namespace shale
