// Runs your own code over runs of elements: contiguous segments, or lanes along one axis.
//
//   for_each_lane<float, const float>(1, [](lane<float> y, lane<const float> x) { … }, y, x);
//
// The function is called by several threads at once, in no particular order. Its lanes and segments
// are valid until it returns.
//
// It reads elements where they lie. Those of type `const bool` must therefore be bytes of 0 or 1,
// because reading another byte as a bool is undefined behaviour in C++. The engine writes only such
// bytes, but foreign files and memory may hold others, which count as true elsewhere. Read these as
// bytes: `for_each_segment<const std::uint8_t>(function, mask.view_as(dtype::uint8))`. `apply` and
// `reduce` accept any byte, because they hand over each bool by value.
//
// Throws   the errors that apply.hpp lists
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "shale/apply_operands.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A run of elements along one axis.
template <class T>
struct lane {
  T* data = nullptr;
  index_t size = 0;
  index_t stride = 1;  ///< elements between neighbours; may be negative; 0 if they are one element

  /// The element at `position`, 0 <= position < size. Unchecked. If the stride is 0, every position
  /// has the same element.
  T& operator[](index_t position) const noexcept { return data[position * stride]; }
};

namespace detail {

// The sizes and the strides of all lanes of a call, by operand.
struct lane_sizes {
  std::array<index_t, apply_operands_max> sizes{};
  std::array<index_t, apply_operands_max> strides{};  // in elements
};

// Calls `start` once, then `block` for every position of the axes other than `axis`.
void run_lanes(std::span<const apply_operand> operands, index_t axis,
               void (*start)(void*, const lane_sizes&), apply_block block, void* context);

}  // namespace detail

/// Calls `function(std::span<T>…)` for runs of elements that are contiguous in every operand and as
/// long as the layouts allow. Every element is in one run. The runs of all operands have the same
/// length. Operands with const element types are inputs, the others outputs.
template <class... Types, class Function, class... Tensors>
void for_each_segment(Function&& function, const Tensors&... operands) {
  static_assert(sizeof...(Types) == sizeof...(Tensors),
                "name the element types: for_each_segment<float, const float>(…)");
  detail::require_callable(function);
  auto* callable = std::addressof(function);
  detail::run_apply(
      std::array{detail::apply_operand{operands, dtype_of<Types>(), !std::is_const_v<Types>}...},
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
      &callable);
}

/// Calls `function(lane<T>…)` once for each combination of indices of the axes other than `axis`.
/// Every lane runs along `axis` and is as long as its own operand is there, so an output may be
/// shorter or longer than an input. Along the other axes all operands have the same extents, except
/// that inputs broadcast. The function is not called if one of the other axes is empty; a lane may
/// be empty. If an input and an output have exactly the same elements, both lanes are the same
/// memory; other inputs that overlap an output are copied first.
template <class... Types, class Function, class... Tensors>
void for_each_lane(index_t axis, Function&& function, const Tensors&... operands) {
  static_assert(sizeof...(Types) == sizeof...(Tensors),
                "name the element types: for_each_lane<float, const float>(…)");
  detail::require_callable(function);
  struct state {
    std::remove_reference_t<Function>* callable;
    detail::lane_sizes lanes;
  } shared{std::addressof(function), {}};
  detail::run_lanes(
      std::array{detail::apply_operand{operands, dtype_of<Types>(), !std::is_const_v<Types>}...},
      axis,
      [](void* context, const detail::lane_sizes& lanes) {
        static_cast<state*>(context)->lanes = lanes;
      },
      [](void* context, std::byte* const* data, const index_t* strides, index_t inner,
         index_t outer) {
        // Not a structured binding: clang 14 lets no lambda capture one.
        auto* const call = static_cast<state*>(context)->callable;
        const detail::lane_sizes& lanes = static_cast<state*>(context)->lanes;
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          constexpr index_t n = sizeof...(Types);
          for (index_t row = 0; row < outer; ++row)
            for (index_t i = 0; i < inner; ++i)
              (*call)(lane<Types>{
                  reinterpret_cast<Types*>(data[I] + row * strides[n + static_cast<index_t>(I)] +
                                           i * strides[I]),
                  lanes.sizes[I], lanes.strides[I]}...);
        }
        (std::index_sequence_for<Types...>{});
      },
      &shared);
}

}  // namespace shale
