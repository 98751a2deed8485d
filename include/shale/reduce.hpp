// Reduces a tensor to one value by your own function.
//
//   const double total = reduce(x, 0.0, [](double& sum, float value) { sum += value; },
//                               [](double& sum, double other) { sum += other; });
//
// Throws   the errors that apply.hpp lists
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "shale/apply_operands.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

namespace detail {

// Calls `start(context, tiles)` once, then `block` for every block of every tile. The tiles depend
// on the layout alone.
using reduce_block = void (*)(void* context, index_t tile, std::byte* const* data,
                              const index_t* strides_bytes, index_t inner, index_t outer);
void run_reduce(const tensor& values, dtype type, void (*start)(void*, index_t tiles),
                reduce_block block, void* context);

}  // namespace detail

/// Reduces all elements to one value: `fold(accumulator&, element)` within fixed tiles, then
/// `combine(accumulator&, accumulator)` over a fixed tree of tiles. Each tile starts with
/// `identity`, so this value must be neutral for `combine`: 0 for sums, 1 for products. The result
/// is the same for any number of threads. Elements come in the order of memory, so the result
/// depends on the layout if `fold` or `combine` depends on the order.
/// Cost     one pass, and one accumulator for each tile
/// Threads  several threads call `fold` at once, with different accumulators; the calling thread
///          alone calls `combine`
template <class Accumulator, class Fold, class Combine>
Accumulator reduce(const tensor& values, const Accumulator& identity, Fold fold, Combine combine) {
  using Parameters = typename decltype(detail::signature_of<Fold>())::parameters;
  static_assert(!std::is_same_v<Accumulator, bool>, "fold into an int: bool partials share bytes");
  static_assert(std::tuple_size_v<Parameters> == 2, "fold takes (accumulator&, element)");
  using Type = std::remove_cvref_t<std::tuple_element_t<1, Parameters>>;
  detail::require_callable(fold);
  detail::require_callable(combine);
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
                     detail::argument<const Type&>(data[0] + row * strides[1] + i * strides[0]));
        target = std::move(mine);
      },
      &shared);
  auto& partial = shared.partial;
  if (partial.empty()) return identity;
  for (std::size_t step = 1; step < partial.size(); step *= 2)
    for (std::size_t i = 0; i + step < partial.size(); i += 2 * step)
      combine(partial[i], partial[i + step]);
  return std::move(partial[0]);
}

}  // namespace shale
