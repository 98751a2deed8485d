#include "shale/order_statistics.hpp"

#include <cmath>
#include <numeric>
#include <string>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/functions/operands/slabs.hpp"
#include "ops/sorting/row_selection.hpp"
#include "ops/sorting/row_sort.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/reductions.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

dims without(dims shape, index_t axis) {
  shape.erase(axis);
  return shape;
}

void require_elements(index_t length, const dims& result, const char* function) {
  if (length == 0 && element_count(result) > 0)
    throw error(errc::invalid_argument, std::string(function) + " needs an axis with elements",
                {"the axis has length 0"});
}

ranked_elements empty_ranked(const dims& shape, dtype type, executor& on) {
  return {tensor::empty(shape, type, &on.pool()), tensor::empty(shape, dtype::int64, &on.pool())};
}

// The rows of a slab, which lie along the axis. Each is given by its number among all rows, counted
// in row-major order.
std::vector<index_t> rows_of(const region& box, const dims& shape, index_t axis) {
  const dims start = without(box.start, axis), extent = without(box.shape, axis);
  const dims all = without(shape, axis);
  std::vector<index_t> numbers;
  dims at = dims::filled(extent.size(), 0);
  do {
    index_t number = 0;
    for (index_t k = 0; k < at.size(); ++k) number = number * all[k] + start[k] + at[k];
    numbers.push_back(number);
  } while (detail::advance(at, extent));
  return numbers;
}

// The operand with its axis as the last one, in memory without gaps, and the shape of the results.
struct held_rows {
  tensor elements;
  dims result;
  index_t length;

  held_rows(const expr& x, index_t axis, const char* function) {
    const index_t along = normalize_axis(axis, x.rank());
    result = without(x.shape(), along);
    length = x.shape(along);
    require_elements(length, result, function);
    elements = held_contiguous(x.moveaxis(along, -1));
  }
};

double between(double low, double high, double share, quantile_method method) {
  if (low == high) return low;
  if (method == quantile_method::midpoint) return low * 0.5 + high * 0.5;
  const double distance = high - low;
  // The distance between finite numbers may overflow; beside an infinity it is infinite.
  if (!std::isfinite(distance)) return low * (1 - share) + high * share;
  return share < 0.5 ? low + distance * share : high - distance * (1 - share);
}

// Where a quantile lies: between two ranks, or at one of them.
struct rank_position {
  index_t low;
  index_t high;
  double share;
};

rank_position position_of(double q, index_t length, quantile_method method) {
  const double exact = q * static_cast<double>(length - 1);
  const double floor = std::floor(exact);
  const auto low = std::min(static_cast<index_t>(floor), length - 1);
  const index_t high = std::min(low + 1, length - 1);
  const double share = exact - floor;
  switch (method) {
    case quantile_method::lower:
      return {low, low, 0};
    case quantile_method::higher:
      return share > 0 ? rank_position{high, high, 0} : rank_position{low, low, 0};
    case quantile_method::nearest:
      return share > 0.5 || (share == 0.5 && low % 2 != 0) ? rank_position{high, high, 0}
                                                           : rank_position{low, low, 0};
    default:
      return share > 0 ? rank_position{low, high, share} : rank_position{low, low, 0};
  }
}

tensor quantiles(const expr& whole, const std::vector<double>& q, std::optional<index_t> axis,
                 quantile_method method, const char* function) {
  const expr x = axis ? whole : whole.ravel();
  require_order(x.dtype(), function);
  if (!computes(x.dtype()))
    throw error(errc::invalid_argument, std::string(function) + " does not compute in float8",
                {"got " + std::string(name(x.dtype())) + ": convert it to float32 first"});
  for (const double one : q)
    if (!(one >= 0 && one <= 1))
      throw error(errc::invalid_argument, std::string(function) + " needs quantiles from 0 to 1",
                  {"got " + std::to_string(one)});
  executor& on = executor::current();
  const held_rows rows(x, axis.value_or(0), function);
  const auto count = static_cast<index_t>(q.size());
  const index_t row_count = element_count(rows.result);
  const dtype type = kind(x.dtype()) == dtype_kind::floating ? x.dtype() : dtype::float64;
  dims shape{count};
  for (const index_t extent : rows.result) shape.push_back(extent);
  const tensor out = tensor::empty({count, row_count}, dtype::float64, &on.pool());
  if (out.size() > 0) {
    // NaN sorts behind all numbers, so a row has one if the element of the last rank is NaN.
    std::vector<index_t> ranks{rows.length - 1};
    std::vector<double> shares;
    for (const double one : q) {
      const rank_position at = position_of(one, rows.length, method);
      ranks.push_back(at.low);
      ranks.push_back(at.high);
      shares.push_back(at.share);
    }
    const tensor found = eval(astype(expr(select_ranks(rows.elements, ranks, on)), dtype::float64));
    const double* values = reinterpret_cast<const double*>(found.data());
    auto* const to = reinterpret_cast<double*>(out.data());
    for (index_t row = 0; row < row_count; ++row, values += ranks.size())
      for (index_t i = 0; i < count; ++i) {
        const double* const own = values + 1 + 2 * i;
        to[i * row_count + row] =
            std::isnan(values[0])
                ? values[0]
                : between(own[0], own[1], shares[static_cast<std::size_t>(i)], method);
      }
  }
  const tensor shaped = out.reshape(shape);
  return type == dtype::float64 ? shaped : eval(astype(expr(shaped), type));
}

void require_method(quantile_method method) {
  detail::require_enumerator(method, quantile_method::nearest, "quantile_method");
}

}  // namespace

ranked_elements topk(const expr& x, index_t k, index_t axis, largest end) {
  return allocating([&] {
    require_order(x.dtype(), "topk");
    executor& on = executor::current();
    const index_t along = normalize_axis(axis, x.rank());
    const index_t length = x.shape(along);
    if (k < 0 || k > length)
      throw error(errc::invalid_argument, "topk needs a k from 0 to the length of the axis",
                  {"got k " + std::to_string(k) + " for length " + std::to_string(length)});
    dims shape = without(x.shape(), along);
    shape.push_back(k);
    const ranked_elements found = empty_ranked(shape, x.dtype(), on);
    const bool descends = end == largest::yes;
    if (found.values.size() > 0) {
      const auto slab_elements =
          static_cast<index_t>(on.memory_bytes() / 4 / item_bytes(x.dtype()));
      const bool whole = x.size() <= slab_elements || lies_in_memory(x);
      const dims slab = whole ? x.shape() : slab_shape(x.shape(), slab_elements);
      const expr ready = whole ? x : with_computed_stages(x);
      for_each_slab_of(x.shape(), slab, [&](const region& box) {
        const tensor part = held_contiguous(part_of(ready, box).moveaxis(along, -1));
        select_first(part, whole ? std::vector<index_t>{} : rows_of(box, x.shape(), along),
                     box.start[along], k, descends, found.values, found.indices, on);
      });
    }
    if (along == x.rank() - 1) return found;
    return ranked_elements{eval(expr(found.values).moveaxis(-1, along)),
                           eval(expr(found.indices).moveaxis(-1, along))};
  });
}

ranked_elements kthvalue(const expr& x, index_t k, index_t axis) {
  return allocating([&] {
    require_order(x.dtype(), "kthvalue");
    executor& on = executor::current();
    const index_t length = x.shape(normalize_axis(axis, x.rank()));
    if (k < 1 || k > length)
      throw error(errc::invalid_argument, "kthvalue needs a k from 1 to the length of the axis",
                  {"got k " + std::to_string(k) + " for length " + std::to_string(length)});
    const held_rows rows(x, axis, "kthvalue");
    const ranked_elements found = empty_ranked(rows.result, x.dtype(), on);
    select_ranked(rows.elements, k - 1, found.values, found.indices, on);
    return found;
  });
}

ranked_elements mode(const expr& x, index_t axis) {
  return allocating([&] {
    require_order(x.dtype(), "mode");
    executor& on = executor::current();
    const held_rows rows(x, axis, "mode");
    const ranked_elements found = empty_ranked(rows.result, x.dtype(), on);
    if (found.values.size() == 0) return found;
    const ranked_elements ordered = empty_ranked(rows.elements.shape(), x.dtype(), on);
    sort_rows(rows.elements, ordered.values, false, on);
    argsort_rows(rows.elements, ordered.indices, false, on);
    select_modes(ordered.values, ordered.indices, found.values, found.indices, on);
    return found;
  });
}

tensor median(const expr& x, std::optional<index_t> axis) {
  return allocating(
      [&] { return quantiles(x, {0.5}, axis, quantile_method::midpoint, "median").select(0, 0); });
}

tensor quantile(const expr& x, double q, std::optional<index_t> axis, quantile_method method) {
  return allocating([&] {
    require_method(method);
    return quantiles(x, {q}, axis, method, "quantile").select(0, 0);
  });
}

tensor quantile(const expr& x, const std::vector<double>& q, std::optional<index_t> axis,
                quantile_method method) {
  return allocating([&] {
    require_method(method);
    return quantiles(x, q, axis, method, "quantile");
  });
}

}  // namespace shale
