// The engine's door for your own element code: `apply`, `apply_into`, `for_each_segment`,
// `for_each_lane` and `reduce` run a lambda over whole tensors, in parallel, whatever their
// layouts.
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
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Most operands of one apply, `out` included.
inline constexpr int max_apply_operands = 8;

/// A run of elements along one axis: what `for_each_lane` hands out.
template <class T>
struct lane {
  T* data = nullptr;
  index_t size = 0;
  index_t stride = 1;  ///< elements between neighbours; may be negative, or 0 for inputs

  /// The element `at` steps from the start, 0 <= at < size. Unchecked.
  T& operator[](index_t at) const noexcept { return data[at * stride]; }
};

namespace detail {

struct apply_operand {
  tensor values;
  dtype type;
  bool written;
};

// Works on `outer` rows of `inner` elements; as src/parallel/kernel.hpp says.
using apply_block = void (*)(void* context, std::byte* const* data, const index_t* strides_bytes,
                             index_t inner, index_t outer);

void run_apply(const std::vector<apply_operand>& operands, apply_block block, void* context,
               executor* on);

// Calls `block` for every position of the axes other than `axis`, with the strides of `axis`, in
// elements, in `lane_strides` (as many as operands) and its length in `lane_size`.
struct lane_geometry {
  index_t size = 0;
  std::array<index_t, max_apply_operands> strides{};
};
lane_geometry run_lanes(const std::vector<apply_operand>& operands, index_t axis,
                        void (*start)(void*, const lane_geometry&), apply_block block,
                        void* context, executor* on);

// Tiles in a fixed order: `start(context, tiles)` once, then `block` for every block of every tile.
using reduce_block = void (*)(void* context, index_t tile, std::byte* const* data,
                              const index_t* strides_bytes, index_t inner, index_t outer);
void run_reduce(const tensor& values, dtype type, void (*start)(void*, index_t tiles),
                reduce_block block, void* context, executor* on);

template <class T>
inline constexpr bool written =
    std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>;

// What a lambda says of its operands.
template <class Signature>
struct signature;
template <class R, class C, class... P>
struct signature<R (C::*)(P...) const> {
  using result = R;
  using parameters = std::tuple<P...>;
};
template <class R, class C, class... P>
struct signature<R (C::*)(P...)> : signature<R (C::*)(P...) const> {};
template <class R, class C, class... P>
struct signature<R (C::*)(P...) const noexcept> : signature<R (C::*)(P...) const> {};
template <class R, class C, class... P>
struct signature<R (C::*)(P...) noexcept> : signature<R (C::*)(P...) const> {};
template <class R, class... P>
struct signature<R (*)(P...)> {
  using result = R;
  using parameters = std::tuple<P...>;
};
template <class R, class... P>
struct signature<R (*)(P...) noexcept> : signature<R (*)(P...)> {};

template <class Function>
constexpr auto signature_of() {
  using Plain = std::remove_cvref_t<Function>;
  if constexpr (requires { &Plain::operator(); }) {
    return signature<decltype(&Plain::operator())>{};
  } else {
    static_assert(std::is_pointer_v<std::decay_t<Function>>,
                  "apply needs a callable that names its element types: write (float& y, float x), "
                  "not (auto& y, auto x)");
    return signature<std::decay_t<Function>>{};
  }
}

template <class Parameters, std::size_t... I>
std::vector<apply_operand> operands_for(const std::array<tensor, sizeof...(I)>& tensors,
                                        std::index_sequence<I...>) {
  return {apply_operand{tensors[I],
                        dtype_of<std::remove_cvref_t<std::tuple_element_t<I, Parameters>>>(),
                        written<std::tuple_element_t<I, Parameters>>}...};
}

template <class T>
T& element(std::byte* at) noexcept {
  return *reinterpret_cast<T*>(at);
}

template <class Function, class... Types, std::size_t... I>
void element_block(Function& function, std::tuple<Types...>*, std::byte* const* data,
                   const index_t* strides, index_t inner, index_t outer,
                   std::index_sequence<I...>) {
  constexpr index_t n = sizeof...(Types);
  const bool contiguous = ((strides[I] == static_cast<index_t>(sizeof(Types))) && ...);
  for (index_t row = 0; row < outer; ++row) {
    std::byte* const at[] = {data[I] + row * strides[n + static_cast<index_t>(I)]...};
    if (contiguous) {
      for (index_t i = 0; i < inner; ++i)
        function(element<Types>(at[I] + i * static_cast<index_t>(sizeof(Types)))...);
    } else {
      for (index_t i = 0; i < inner; ++i) function(element<Types>(at[I] + i * strides[I])...);
    }
  }
}

template <class Tuple>
struct plain;
template <class... P>
struct plain<std::tuple<P...>> {
  using type = std::tuple<std::remove_cvref_t<P>...>;
};

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
  using Types = typename detail::plain<Parameters>::type;
  const std::array<tensor, sizeof...(Tensors)> tensors{operands...};
  auto* callable = std::addressof(function);
  detail::run_apply(
      detail::operands_for<Parameters>(tensors, std::index_sequence_for<Tensors...>{}),
      [](void* context, std::byte* const* data, const index_t* strides, index_t inner,
         index_t outer) {
        detail::element_block(**static_cast<decltype(callable)*>(context),
                              static_cast<Types*>(nullptr), data, strides, inner, outer,
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

/// Calls `function(std::span<T>…)` for runs of elements that are contiguous in every operand, as
/// long as the layouts allow; every element is in one run. Spans of const T are inputs. Runs of
/// different operands have equal lengths.
template <class... Types, class Function, class... Tensors>
void for_each_segment(executor* on, Function&& function, const Tensors&... operands) {
  static_assert(sizeof...(Types) == sizeof...(Tensors),
                "name the element types: for_each_segment<float, const float>(…)");
  auto* callable = std::addressof(function);
  detail::run_apply(
      {detail::apply_operand{operands, dtype_of<Types>(), !std::is_const_v<Types>}...},
      [](void* context, std::byte* const* data, const index_t* strides, index_t inner,
         index_t outer) {
        auto& call = **static_cast<decltype(callable)*>(context);
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          constexpr index_t n = sizeof...(Types);
          const bool contiguous = ((strides[I] == static_cast<index_t>(sizeof(Types))) && ...);
          const index_t run = contiguous ? inner : 1;
          for (index_t row = 0; row < outer; ++row)
            for (index_t i = 0; i < inner; i += run)
              call(std::span<Types>(
                  reinterpret_cast<Types*>(data[I] + row * strides[n + static_cast<index_t>(I)] +
                                           i * strides[I]),
                  static_cast<std::size_t>(run))...);
        }
        (std::index_sequence_for<Types...>{});
      },
      &callable, on);
}
template <class... Types, class Function, class... Tensors>
requires(!std::is_same_v<std::remove_cvref_t<Function>, executor*> &&
         !std::is_null_pointer_v<
             std::remove_cvref_t<Function>>) void for_each_segment(Function&& function,
                                                                   const Tensors&... operands) {
  for_each_segment<Types...>(static_cast<executor*>(nullptr), std::forward<Function>(function),
                             operands...);
}

/// Calls `function(lane<T>…)` once for each combination of indices of the axes other than `axis`:
/// every lane runs along `axis`. Operands have one shape, except that inputs broadcast. Nothing is
/// called when an axis is empty.
template <class... Types, class Function, class... Tensors>
void for_each_lane(executor* on, index_t axis, Function&& function, const Tensors&... operands) {
  static_assert(sizeof...(Types) == sizeof...(Tensors),
                "name the element types: for_each_lane<float, const float>(…)");
  struct state {
    std::remove_reference_t<Function>* callable;
    detail::lane_geometry geometry;
  } shared{std::addressof(function), {}};
  detail::run_lanes(
      {detail::apply_operand{operands, dtype_of<Types>(), !std::is_const_v<Types>}...}, axis,
      [](void* context, const detail::lane_geometry& geometry) {
        static_cast<state*>(context)->geometry = geometry;
      },
      [](void* context, std::byte* const* data, const index_t* strides, index_t inner,
         index_t outer) {
        // Not a structured binding: clang 14 lets no lambda capture one.
        auto* const call = static_cast<state*>(context)->callable;
        const detail::lane_geometry& geometry = static_cast<state*>(context)->geometry;
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          constexpr index_t n = sizeof...(Types);
          for (index_t row = 0; row < outer; ++row)
            for (index_t i = 0; i < inner; ++i)
              (*call)(lane<Types>{
                  reinterpret_cast<Types*>(data[I] + row * strides[n + static_cast<index_t>(I)] +
                                           i * strides[I]),
                  geometry.size, geometry.strides[I]}...);
        }
        (std::index_sequence_for<Types...>{});
      },
      &shared, on);
}
template <class... Types, class Function, class... Tensors>
void for_each_lane(index_t axis, Function&& function, const Tensors&... operands) {
  for_each_lane<Types...>(static_cast<executor*>(nullptr), axis, std::forward<Function>(function),
                          operands...);
}

/// Folds all elements: `fold(accumulator&, element)` within fixed tiles that start from `identity`,
/// then `combine(accumulator&, accumulator)` over a fixed tree of tiles. Same result for any number
/// of threads. `fold` and `combine` must be associative and commutative up to what you accept:
/// elements come in the order of memory.
template <class Accumulator, class Fold, class Combine>
Accumulator reduce(const tensor& values, const Accumulator& identity, Fold fold, Combine combine,
                   executor* on = nullptr) {
  using Parameters = typename decltype(detail::signature_of<Fold>())::parameters;
  static_assert(!std::is_same_v<Accumulator, bool>, "fold into an int: bool partials share bytes");
  static_assert(std::tuple_size_v<Parameters> == 2, "fold takes (accumulator&, element)");
  using Type = std::remove_cvref_t<std::tuple_element_t<1, Parameters>>;
  struct state {
    const Accumulator& identity;
    Fold& fold;
    std::vector<Accumulator> partial;
  } shared{identity, fold, {}};
  detail::run_reduce(
      values, dtype_of<Type>(),
      [](void* context, index_t tiles) {
        auto& all = *static_cast<state*>(context);
        all.partial.assign(static_cast<std::size_t>(tiles), all.identity);
      },
      [](void* context, index_t tile, std::byte* const* data, const index_t* strides, index_t inner,
         index_t outer) {
        auto& all = *static_cast<state*>(context);
        auto& target = all.partial[static_cast<std::size_t>(tile)];
        Accumulator mine = std::move(target);  // in registers, away from other threads' lines
        for (index_t row = 0; row < outer; ++row)
          for (index_t i = 0; i < inner; ++i)
            all.fold(mine,
                     detail::element<const Type>(data[0] + row * strides[1] + i * strides[0]));
        target = std::move(mine);
      },
      &shared, on);
  auto& partial = shared.partial;
  if (partial.empty()) return identity;
  for (std::size_t step = 1; step < partial.size(); step *= 2)
    for (std::size_t i = 0; i + step < partial.size(); i += 2 * step)
      combine(partial[i], partial[i + step]);
  return std::move(partial[0]);
}

}  // namespace shale
