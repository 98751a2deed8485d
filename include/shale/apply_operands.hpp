// What apply.hpp, for_each.hpp and reduce.hpp share: operands, as the parameters of a callable
// tell.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Most operands of one apply, `out` included.
inline constexpr int max_apply_operands = 8;

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

template <class P>
inline constexpr bool written =
    std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;

// What a callable is given for its parameter P. A bool that is only read is true for any byte but
// 0; as an object of C++ such a byte would be undefined.
template <class P>
decltype(auto) argument(std::byte* at) noexcept {
  using T = std::remove_cvref_t<P>;
  if constexpr (std::is_same_v<T, bool> && !written<P>) return *at != std::byte{0};
  else return (*reinterpret_cast<T*>(at));
}

}  // namespace detail

}  // namespace shale
