#include "shale/searching.hpp"

#include <cstring>
#include <optional>
#include <string>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/functions/operands/slabs.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/leaves/indices.hpp"
#include "ops/sorting/key_search.hpp"
#include "ops/sorting/row_sort.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/sorting.hpp"
#include "shale/take.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

void require_one_axis(const expr& operand, const std::string& subject) {
  if (operand.rank() != 1)
    throw error(errc::invalid_argument, subject + " with one axis",
                {"got shape " + to_string(operand.shape())});
}

// The dtype in which elements are compared: the promoted dtype. An integer without a dtype takes
// the dtype of the other operand, if it fits.
dtype compared_dtype(const expr& a, const expr& b) {
  const auto adapts = [](const expr& number, const expr& to) {
    const auto held = weak_number(number);
    return held && is_integer(number.dtype()) && is_integer(to.dtype()) && held->fits(to.dtype());
  };
  return adapts(a, b) ? b.dtype() : adapts(b, a) ? a.dtype() : promote(a.dtype(), b.dtype());
}

tensor positions(const tensor& sorted, const expr& values, search_side side) {
  executor& on = executor::current();
  const tensor held = held_contiguous(values);
  const tensor out = tensor::empty(held.shape(), dtype::int64, &on.pool());
  search_keys(sorted, held, side == search_side::right, out, on);
  return out;
}

// The sorted elements of an operand, and where each group of equal ones begins.
struct groups {
  tensor sorted;
  tensor starts;

  groups(const tensor& elements, executor& on)
      : sorted(tensor::empty(elements.shape(), elements.dtype(), &on.pool())) {
    sort_rows(elements, sorted, false, on);
    starts = group_starts(sorted, on);
  }

  index_t count() const { return starts.size() - 1; }
  expr first_ones() const { return starts.narrow(0, 0, count()); }
  tensor values() const { return eval(take(sorted, first_ones(), 0)); }
  tensor counts() const { return eval(expr(starts.narrow(0, 1, count())) - first_ones()); }
};

tensor flat_elements(const expr& x, const char* function) {
  require_order(x.dtype(), function);
  return held_contiguous(x.ravel());
}

// For each element of the operand, the number of its group.
tensor inverse_of(const groups& found, const tensor& order, const dims& shape, executor& on) {
  const tensor out = tensor::empty(shape, dtype::int64, &on.pool());
  const auto* const starts = reinterpret_cast<const std::int64_t*>(found.starts.data());
  const auto* const places = reinterpret_cast<const std::int64_t*>(order.data());
  auto* const to = reinterpret_cast<std::int64_t*>(out.data());
  constexpr index_t unit = 4096;
  parallel::parallel_for_tiles(on, ceil_div(found.count(), unit), [&](index_t number, int) {
    const index_t end = std::min(found.count(), (number + 1) * unit);
    for (index_t group = number * unit; group < end; ++group)
      for (index_t i = starts[group]; i < starts[group + 1]; ++i) to[places[i]] = group;
  });
  return out;
}

tensor order_of(const tensor& elements, executor& on) {
  const tensor order = tensor::empty(elements.shape(), dtype::int64, &on.pool());
  argsort_rows(elements, order, false, on);
  return order;
}

tensor appended(const tensor& a, const tensor& b, executor& on) {
  const tensor both = tensor::empty({a.size() + b.size()}, a.dtype(), &on.pool());
  std::memcpy(both.data(), a.data(), a.size_bytes());
  std::memcpy(both.data() + a.size_bytes(), b.data(), b.size_bytes());
  return both;
}

// The distinct elements of two parts of an operand, of which `a` comes first.
unique_with_counts joined(const unique_with_counts& a, const unique_with_counts& b, executor& on) {
  const tensor values = appended(a.values, b.values, on), counts = appended(a.counts, b.counts, on);
  const tensor order = order_of(values, on);
  const groups found(values, on);
  const tensor sums = tensor::empty({found.count()}, dtype::int64, &on.pool());
  const auto at = [](const tensor& of) { return reinterpret_cast<std::int64_t*>(of.data()); };
  for (index_t group = 0; group < found.count(); ++group) {
    at(sums)[group] = 0;
    for (index_t i = at(found.starts)[group]; i < at(found.starts)[group + 1]; ++i)
      at(sums)[group] += at(counts)[at(order)[i]];
  }
  return {found.values(), sums};
}

unique_with_counts distinct_in(const tensor& elements, executor& on) {
  const groups found(elements, on);
  return {found.values(), found.counts()};
}

// Slabs of an operand that does not fit follow one another in row-major order, so elements that are
// found in earlier slabs come first.
unique_with_counts distinct_elements(const expr& x, const char* function) {
  executor& on = executor::current();
  require_order(x.dtype(), function);
  const auto together = static_cast<index_t>(on.memory_bytes() / 4 / item_bytes(x.dtype()));
  if (x.size() <= together || lies_in_memory(x)) return distinct_in(flat_elements(x, function), on);
  const expr ready = with_computed_stages(x);
  std::optional<unique_with_counts> found;
  for_each_slab_of(x.shape(), slab_shape(x.shape(), together), [&](const region& box) {
    const tensor part = held_part(part_of(ready, box));
    const unique_with_counts own = distinct_in(part.ravel(), on);
    found = found ? joined(*found, own, on) : own;
  });
  return *found;
}

}  // namespace

tensor searchsorted(const expr& sorted, const expr& values, search_side side,
                    const std::optional<expr>& sorter) {
  return allocating([&] {
    detail::require_enumerator(side, search_side::right, "search_side");
    require_one_axis(sorted, "searchsorted needs sorted elements");
    const dtype type = compared_dtype(sorted, values);
    require_order(type, "searchsorted");
    expr ordered = sorted;
    if (sorter) {
      if (sorter->shape() != sorted.shape())
        throw error(
            errc::invalid_argument, "searchsorted needs an index in the sorter for each element",
            {"got shapes " + to_string(sorted.shape()) + " and " + to_string(sorter->shape())});
      ordered = take(sorted, *sorter, 0);
    }
    return positions(held_contiguous(astype(ordered, type)), astype(values, type), side);
  });
}

tensor digitize(const expr& x, const expr& edges, search_side closed) {
  return allocating([&] {
    detail::require_enumerator(closed, search_side::right, "search_side");
    require_one_axis(edges, "digitize needs edges");
    const dtype type = compared_dtype(edges, x);
    require_order(type, "digitize");
    const search_side side = closed == search_side::left ? search_side::right : search_side::left;
    const tensor bounds = held_contiguous(astype(edges, type));
    if (is_sorted(bounds)) return positions(bounds, astype(x, type), side);
    const tensor rising = eval(expr(bounds).flip());
    if (!is_sorted(rising))
      throw error(errc::invalid_argument, "digitize needs edges that rise, or that fall",
                  {"got " + std::to_string(edges.size()) + " edges that do both"});
    return eval(edges.size() - expr(positions(rising, astype(x, type), side)));
  });
}

tensor unique_values(const expr& x) {
  return allocating([&] { return distinct_elements(x, "unique_values").values; });
}

unique_with_counts unique_counts(const expr& x) {
  return allocating([&] { return distinct_elements(x, "unique_counts"); });
}

unique_with_inverse unique_inverse(const expr& x) {
  return allocating([&] {
    executor& on = executor::current();
    const tensor elements = flat_elements(x, "unique_inverse");
    const groups found(elements, on);
    return unique_with_inverse{found.values(),
                               inverse_of(found, order_of(elements, on), x.shape(), on)};
  });
}

unique_parts unique_all(const expr& x) {
  return allocating([&] {
    executor& on = executor::current();
    const tensor elements = flat_elements(x, "unique_all");
    const groups found(elements, on);
    const tensor order = order_of(elements, on);
    return unique_parts{found.values(), eval(take(order, found.first_ones(), 0)),
                        inverse_of(found, order, x.shape(), on), found.counts()};
  });
}

}  // namespace shale
