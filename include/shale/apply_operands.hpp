// Shared by apply.hpp, fold_axes.hpp, for_each.hpp, map_tiles.hpp and reduce.hpp: finds out the
// operands of a callable from its parameters.
#pragma once

#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The largest number of operands of one call, including the output.
inline constexpr int apply_operands_max = 8;

namespace detail {

struct apply_operand {
  const tensor& values;
  dtype type;
  bool written;
};

// Processes `outer` rows of `inner` elements, like the kernels of src/parallel/blocks/kernel.hpp.
using apply_block = void (*)(void* context, std::byte* const* data, const index_t* strides_bytes,
                             index_t inner, index_t outer);

void run_apply(std::span<const apply_operand> operands, apply_block block, void* context);

// An axis along which the elements of a block have neighbours, and the step of their indices; -1:
// the block has no such axis.
struct index_step {
  index_t axis = -1;
  index_t step = 0;
};

// The index of a block's first element, and how it changes within and between rows.
struct block_indices {
  dims first;
  index_step inner = {};
  index_step outer = {};
};
using indexed_block = void (*)(void* context, std::byte* const* data, const index_t* strides_bytes,
                               index_t inner, index_t outer, const block_indices& indices);

// As run_apply, with the indices of each block's elements among the broadcast operands.
void run_indexed(std::span<const apply_operand> operands, indexed_block block, void* context);

// The same in index order by the calling thread. Every block is a run along the last axis.
void run_in_order(std::span<const apply_operand> operands, apply_block block, void* context);

// The result type and the parameter types of a callable.
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

template <class P>
inline constexpr bool written =
    std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;

// The argument for a parameter P, from the element at an address. A bool that is only read is true
// for any byte but 0, because reading such a byte as a bool would be undefined behaviour.
template <class P>
decltype(auto) argument(std::byte* element) noexcept {
  using T = std::remove_cvref_t<P>;
  if constexpr (std::is_same_v<T, bool> && !written<P>) return *element != std::byte{0};
  else return (*reinterpret_cast<T*>(element));
}

}  // namespace detail

}  // namespace shale
