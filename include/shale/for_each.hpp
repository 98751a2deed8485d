// Your own code over runs of elements: contiguous segments, or lanes along one axis.
//
//   for_each_lane<float, const float>(1, [](lane<float> y, lane<const float> x) { … }, y, x);
//
// Called from several threads at once, in no particular order.
// Throws   as apply.hpp says
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "shale/apply_operands.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

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

// What all lanes of a call have in common.
struct lane_geometry {
  index_t size = 0;
  std::array<index_t, max_apply_operands> strides{};  // in elements, by operand
};

// Calls `start` once, then `block` for every position of the axes other than `axis`.
lane_geometry run_lanes(const std::vector<apply_operand>& operands, index_t axis,
                        void (*start)(void*, const lane_geometry&), apply_block block,
                        void* context, executor* on);

}  // namespace detail

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

}  // namespace shale
