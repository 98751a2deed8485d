// Folds tensors along axes by your own functions: `reduce_axes` gives a result for each position of
// the other axes, `scan_axis` a result for each element, from all elements up to it. (`reduce` in
// reduce.hpp gives one value.)
//
//   struct ends { float low, high; };
//   tensor spans = reduce_axes(
//       x, {-1}, ends{INFINITY, -INFINITY},
//       [](ends& to, float e) { to = {std::min(to.low, e), std::max(to.high, e)}; },
//       [](ends& to, ends other) {
//         to = {std::min(to.low, other.low), std::max(to.high, other.high)};
//       },
//       [](const ends& all) { return all.high - all.low; });
//
// `fold(accumulator&, element)` takes an element in. `combine(accumulator&, accumulator)` takes the
// elements of another accumulator in, which come behind its own, and which may be none.
// `finish(accumulator)` gives the result. The functions are called by several threads at once. An
// accumulator is trivially copyable: the engine copies its bytes.
// Throws   the errors that apply.hpp lists; invalid_argument also for axes that do not exist or
//          occur twice
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "shale/apply_operands.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

namespace detail {

// Strided items: the first one, and the bytes between neighbours within and between rows.
struct strided_rows {
  std::byte* data;
  index_t inner;
  index_t outer;
};

// A block that is folded or scanned: `outer` rows of `inner` values.
struct folded_block {
  strided_rows states;  // one for each value; the same one along axes that are folded
  strided_rows values;
  index_t inner;
  index_t outer;
  strided_rows results = {};  // of a scan
};

// The functions of a caller, for accumulators of `state_bytes`.
struct fold_functions {
  std::size_t state_bytes;
  const void* identity;
  void (*fold)(void* context, const folded_block& block);
  void (*scan)(void* context, const folded_block& block);
  void (*combine)(void* context, std::byte* into, const std::byte* from, index_t count);
  void (*finish)(void* context, const std::byte* states, std::byte* results, index_t count);
  void* context;
};

tensor run_reduce_axes(const apply_operand& values, const dims& axes, dtype result,
                       const fold_functions& functions);
void run_scan_axis(const apply_operand& out, const apply_operand& values, index_t axis,
                   const fold_functions& functions);

// Returns the accumulator itself.
struct as_it_is {
  template <class Accumulator>
  Accumulator operator()(const Accumulator& all) const noexcept {
    return all;
  }
};

template <class Accumulator, class Fold, class Combine, class Finish>
struct own_fold {
  using parameters = typename decltype(signature_of<Fold>())::parameters;
  static_assert(std::tuple_size_v<parameters> == 2, "fold takes (accumulator&, element)");
  using element = std::remove_cvref_t<std::tuple_element_t<1, parameters>>;
  using result = std::remove_cvref_t<std::invoke_result_t<Finish&, const Accumulator&>>;
  static_assert(std::is_trivially_copyable_v<Accumulator>,
                "an accumulator of reduce_axes and scan_axis is trivially copyable");
  static_assert(alignof(Accumulator) <= 64, "accumulators are aligned to 64 bytes at most");

  const Accumulator& identity;
  Fold& fold;
  Combine& combine;
  Finish& finish;

  fold_functions functions() {
    require_callable(fold);
    require_callable(combine);
    require_callable(finish);
    return {sizeof(Accumulator),
            std::addressof(identity),
            fold_block,
            scan_block,
            combine_states,
            finish_states,
            this};
  }

 private:
  static Accumulator& at(std::byte* state) { return *reinterpret_cast<Accumulator*>(state); }

  static void fold_block(void* context, const folded_block& block) {
    Fold& call = static_cast<own_fold*>(context)->fold;
    for (index_t row = 0; row < block.outer; ++row) {
      std::byte* const states = block.states.data + row * block.states.outer;
      std::byte* const values = block.values.data + row * block.values.outer;
      if (block.states.inner == 0) {
        Accumulator mine = at(states);  // in registers
        for (index_t i = 0; i < block.inner; ++i)
          call(mine, argument<const element&>(values + i * block.values.inner));
        at(states) = mine;
      } else {
        for (index_t i = 0; i < block.inner; ++i)
          call(at(states + i * block.states.inner),
               argument<const element&>(values + i * block.values.inner));
      }
    }
  }

  static void scan_block(void* context, const folded_block& block) {
    own_fold& mine = *static_cast<own_fold*>(context);
    for (index_t row = 0; row < block.outer; ++row) {
      std::byte* const states = block.states.data + row * block.states.outer;
      std::byte* const values = block.values.data + row * block.values.outer;
      std::byte* const results = block.results.data + row * block.results.outer;
      for (index_t i = 0; i < block.inner; ++i) {
        Accumulator& state = at(states + i * block.states.inner);
        mine.fold(state, argument<const element&>(values + i * block.values.inner));
        *reinterpret_cast<result*>(results + i * block.results.inner) =
            mine.finish(std::as_const(state));
      }
    }
  }

  static void combine_states(void* context, std::byte* into, const std::byte* from, index_t count) {
    Combine& call = static_cast<own_fold*>(context)->combine;
    auto* const target = reinterpret_cast<Accumulator*>(into);
    const auto* const source = reinterpret_cast<const Accumulator*>(from);
    for (index_t i = 0; i < count; ++i) call(target[i], source[i]);
  }

  static void finish_states(void* context, const std::byte* states, std::byte* results,
                            index_t count) {
    Finish& call = static_cast<own_fold*>(context)->finish;
    const auto* const source = reinterpret_cast<const Accumulator*>(states);
    auto* const target = reinterpret_cast<result*>(results);
    for (index_t i = 0; i < count; ++i) target[i] = call(source[i]);
  }
};

}  // namespace detail

/// Folds the elements along `axes` to one result for each position of the other axes. Elements are
/// folded within fixed tiles, each of which begins with `identity`; a fixed tree combines these. So
/// results have the same bits for any number of threads and any memory budget. Elements come in the
/// order of memory, so results depend on the layout as far as `fold` and `combine` are not
/// associative and commutative.
/// Shape    that of `values` without `axes`, which may be negative; no axes fold nothing. The dtype
///          is that of the type that `finish` returns
/// Cost     one pass, and an accumulator for each result of each running tile; results lie in
///          memory of the executor's pool
template <class Accumulator, class Fold, class Combine, class Finish>
tensor reduce_axes(const tensor& values, const dims& axes, const Accumulator& identity, Fold fold,
                   Combine combine, Finish finish) {
  using Folding = detail::own_fold<Accumulator, Fold, Combine, Finish>;
  Folding folding{identity, fold, combine, finish};
  return detail::run_reduce_axes({values, dtype_of<typename Folding::element>(), false}, axes,
                                 dtype_of<typename Folding::result>(), folding.functions());
}

/// The same if accumulators are the results.
template <class Accumulator, class Fold, class Combine>
tensor reduce_axes(const tensor& values, const dims& axes, const Accumulator& identity, Fold fold,
                   Combine combine) {
  return reduce_axes(values, axes, identity, fold, combine, detail::as_it_is());
}

/// Stores into each element of `out` the result of the elements of `values` from the first one
/// along `axis` up to this one. The axis is scanned in parallel too: `fold` is called twice for
/// most elements, and elements come in ascending order along the axis. `combine` must be
/// associative, but need not be commutative, and `combine(identity, other)` must give the other.
/// Results have the same bits for any number of threads and any memory budget.
/// Shape    `values` broadcasts to that of `out`; the axis may be negative. The dtype of `out` is
///          that of the type that `finish` returns
/// Cost     one pass, which reads the elements once, and an accumulator for each lane of each
///          running tile
/// Throws   also the errors of outputs that apply.hpp lists. `out` may be partly written then
template <class Accumulator, class Fold, class Combine, class Finish>
void scan_axis_into(const tensor& out, const tensor& values, index_t axis,
                    const Accumulator& identity, Fold fold, Combine combine, Finish finish) {
  using Folding = detail::own_fold<Accumulator, Fold, Combine, Finish>;
  Folding folding{identity, fold, combine, finish};
  detail::run_scan_axis({out, dtype_of<typename Folding::result>(), true},
                        {values, dtype_of<typename Folding::element>(), false}, axis,
                        folding.functions());
}

/// The same if accumulators are the results.
template <class Accumulator, class Fold, class Combine>
void scan_axis_into(const tensor& out, const tensor& values, index_t axis,
                    const Accumulator& identity, Fold fold, Combine combine) {
  scan_axis_into(out, values, axis, identity, fold, combine, detail::as_it_is());
}

/// The same into a new row-major tensor of the shape of `values`, in memory of the executor's pool.
/// Throws   also out_of_memory
template <class Accumulator, class Fold, class Combine, class Finish>
tensor scan_axis(const tensor& values, index_t axis, const Accumulator& identity, Fold fold,
                 Combine combine, Finish finish) {
  using Folding = detail::own_fold<Accumulator, Fold, Combine, Finish>;
  const tensor out = tensor::empty(values.shape(), dtype_of<typename Folding::result>(),
                                   &executor::current().pool());
  scan_axis_into(out, values, axis, identity, fold, combine, finish);
  return out;
}
template <class Accumulator, class Fold, class Combine>
tensor scan_axis(const tensor& values, index_t axis, const Accumulator& identity, Fold fold,
                 Combine combine) {
  return scan_axis(values, axis, identity, fold, combine, detail::as_it_is());
}

}  // namespace shale
