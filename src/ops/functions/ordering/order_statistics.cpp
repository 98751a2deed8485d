#include "shale/order_statistics.hpp"

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/functions/operands/slabs.hpp"
#include "ops/sorting/rank_search.hpp"
#include "ops/sorting/row_selection.hpp"
#include "ops/sorting/row_sort.hpp"
#include "parallel/operands/changing_operand.hpp"
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
  if (method == quantile_method::midpoint) {
    // Halves of subnormal numbers would be rounded, and the sum of large ones overflows.
    const double sum = low + high;
    return std::isfinite(sum) ? sum / 2 : low * 0.5 + high * 0.5;
  }
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

// The lanes of an operand along an axis; without an axis, all elements as one lane, in any order.
class ranked_lanes {
 public:
  ranked_lanes(const expr& x, std::optional<index_t> axis, const char* function)
      : lanes_(axis ? x.moveaxis(normalize_axis(*axis, x.rank()), -1) : x),
        is_whole_(!axis),
        length_(axis ? lanes_.shape(-1) : x.size()) {
    if (axis) result_ = without(lanes_.shape(), lanes_.rank() - 1);
    require_elements(length_, result_, function);
  }

  const dims& result() const noexcept { return result_; }
  index_t length() const noexcept { return length_; }

  /// The elements with the wanted ranks of each lane. Operands that do not fit are read slab by
  /// slab.
  /// Shape    [number of lanes, number of ranks]; the dtype of the operand
  tensor elements(const wanted_ranks& ranks, executor& on) const {
    if (fits(on))
      return select_ranks(held_contiguous(is_whole_ ? lanes_.ravel() : lanes_), ranks, on);
    const tensor found =
        tensor::empty({element_count(result_), ranks.count}, lanes_.dtype(), &on.pool());
    std::byte* to = found.data();
    index_t at = 0;  // the number of lanes that are done
    const auto append = [&](const tensor& rows) {
      std::memcpy(to, rows.data(), rows.size_bytes());
      to += rows.size_bytes();
      at += rows.shape(0);
    };
    for_each_slab_or_lane(
        on,
        [&](const tensor& rows) {
          const auto of_row = [&](index_t row, index_t* own) { ranks.of_row(at + row, own); };
          append(select_ranks(rows, {ranks.count, of_row}, on));
        },
        [&](const expr& lane) {
          std::vector<index_t> own(static_cast<std::size_t>(ranks.count));
          ranks.of_row(at, own.data());
          append(search_in(lane, own, on).elements.expand_dims(0));
        });
    return found;
  }

  /// How many elements of each lane are not NaN, as int64.
  /// Shape    that of `result`
  tensor counts_of_numbers() const {
    const expr numbers = logical_not(isnan(lanes_));
    return eval(is_whole_ ? count_nonzero(numbers) : count_nonzero(numbers, {lanes_.rank() - 1}));
  }

  /// The element of one rank of each lane along an axis, and its index.
  void ranked(index_t rank, const ranked_elements& found, executor& on) const {
    if (fits(on))
      return select_ranked(held_contiguous(lanes_), rank, found.values, found.indices, on);
    const tensor values = found.values.ravel(), indices = found.indices.ravel();
    index_t at = 0;  // the number of lanes that are done
    for_each_slab_or_lane(
        on,
        [&](const tensor& rows) {
          const index_t count = rows.size() / length_;
          select_ranked(rows, rank, values.narrow(0, at, count), indices.narrow(0, at, count), on);
          at += count;
        },
        [&](const expr& lane) {
          find_in(lane, rank, values.narrow(0, at, 1), indices.narrow(0, at, 1), on);
          ++at;
        });
  }

 private:
  static index_t slab_elements(dtype type, const executor& on) {
    return static_cast<index_t>(on.memory_bytes() / 4 / item_bytes(type));
  }

  bool fits(const executor& on) const {
    return lanes_.size() <= slab_elements(lanes_.dtype(), on) || lies_in_memory(lanes_);
  }

  // Calls `rows(part)` for slabs of whole lanes, or `lane(whole)` for each lane that is longer than
  // a slab, in row-major order.
  template <class Rows, class Lane>
  void for_each_slab_or_lane(const executor& on, const Rows& rows, const Lane& lane) const {
    const expr ready = with_computed_stages(lanes_);
    const dims slab = slab_shape(lanes_.shape(), slab_elements(lanes_.dtype(), on));
    if (!is_whole_ && slab.back() == length_) {
      for_each_slab_of(lanes_.shape(), slab,
                       [&](const region& box) { rows(held_part(part_of(ready, box))); });
      return;
    }
    if (is_whole_) return lane(ready);
    dims one = dims::filled(lanes_.rank(), 1);
    one[one.size() - 1] = length_;
    for_each_slab_of(lanes_.shape(), one, [&](const region& box) { lane(part_of(ready, box)); });
  }

  static searched_ranks search_in(const expr& lane, const std::vector<index_t>& ranks,
                                  executor& on) {
    const index_t together = slab_elements(lane.dtype(), on);
    const dims slab = slab_shape(lane.shape(), together);
    return search_ranks(
        lane.dtype(), lane.size(), ranks, together / 4,
        [&](const std::function<void(const tensor&)>& visit_part) {
          for_each_slab_of(lane.shape(), slab,
                           [&](const region& box) { visit_part(held_part(part_of(lane, box))); });
        },
        on);
  }

  // Several elements may be equal to the one with the rank. The index is that of one of them.
  static void find_in(const expr& lane, index_t rank, const tensor& value, const tensor& index,
                      executor& on) {
    const searched_ranks found = search_in(lane, {rank}, on);
    index_t left = rank - found.before.front();  // equal elements before the wanted one
    index_t first = 0;
    bool is_found = false;
    const dims slab = slab_shape(lane.shape(), slab_elements(lane.dtype(), on));
    for_each_slab_of(lane.shape(), slab, [&](const region& box) {
      if (is_found) return;
      const tensor part = held_part(part_of(lane, box));
      const index_t at = find_equal(part, found.elements, left, value.data());
      is_found = at >= 0;
      if (is_found) *reinterpret_cast<std::int64_t*>(index.data()) = first + at;
      else left -= -1 - at;
      first += part.size();
    });
    if (!is_found) parallel::throw_changed("the operand");
  }

  expr lanes_;  // the axis is the last one
  bool is_whole_;
  index_t length_;
  dims result_;
};

void require_quantiles(const expr& x, const std::vector<double>& q, const char* function) {
  require_order(x.dtype(), function);
  if (!computes(x.dtype()))
    throw error(errc::invalid_argument, std::string(function) + " does not compute in float8",
                {"got " + std::string(name(x.dtype())) + ": convert it to float32 first"});
  for (const double one : q)
    if (!(one >= 0 && one <= 1))
      throw error(errc::invalid_argument, std::string(function) + " needs quantiles from 0 to 1",
                  {"got " + std::to_string(one)});
}

// What NaN does to the quantiles of its lane.
enum class nan_elements : std::uint8_t { decide, are_left_out };

// The quantiles of lanes, in float64.
class lane_quantiles {
 public:
  lane_quantiles(const ranked_lanes& lanes, const std::vector<double>& q, quantile_method method,
                 std::optional<tensor> counts)
      : lanes_(lanes), q_(q), method_(method), counts_(std::move(counts)) {}

  /// Writes the quantiles of all lanes.
  /// Shape    `out` has [number of quantiles, number of lanes]
  void write(const tensor& out, executor& on) const {
    const wanted_ranks ranks{1 + 2 * static_cast<index_t>(q_.size()),
                             [this](index_t lane, index_t* own) { write_ranks(lane, own); }};
    const tensor found = eval(astype(expr(lanes_.elements(ranks, on)), dtype::float64));
    const double* values = reinterpret_cast<const double*>(found.data());
    auto* const to = reinterpret_cast<double*>(out.data());
    const index_t lane_count = out.shape(1);
    for (index_t lane = 0; lane < lane_count; ++lane, values += ranks.count)
      for (std::size_t i = 0; i < q_.size(); ++i) {
        const double* const own = values + 1 + 2 * i;
        to[static_cast<index_t>(i) * lane_count + lane] =
            std::isnan(values[0])
                ? values[0]
                : between(own[0], own[1], position_of(q_[i], length_of(lane), method_).share,
                          method_);
      }
  }

 private:
  // The number of elements of a lane that count. These come first in the order. If a lane has only
  // NaN, one NaN counts.
  index_t length_of(index_t lane) const {
    if (!counts_) return lanes_.length();
    return std::max<index_t>(reinterpret_cast<const std::int64_t*>(counts_->data())[lane], 1);
  }

  // NaN sorts behind all numbers, so one counts if the last element that counts is NaN.
  void write_ranks(index_t lane, index_t* ranks) const {
    const index_t length = length_of(lane);
    *ranks++ = length - 1;
    for (const double one : q_) {
      const rank_position at = position_of(one, length, method_);
      *ranks++ = at.low;
      *ranks++ = at.high;
    }
  }

  const ranked_lanes& lanes_;
  const std::vector<double>& q_;
  quantile_method method_;
  std::optional<tensor> counts_;  // by lane; none: all elements count
};

tensor quantiles(const expr& x, const std::vector<double>& q, std::optional<index_t> axis,
                 quantile_method method, nan_elements policy, const char* function) {
  require_quantiles(x, q, function);
  executor& on = executor::current();
  const ranked_lanes lanes(x, axis, function);
  const auto count = static_cast<index_t>(q.size());
  const index_t lane_count = element_count(lanes.result());
  const dtype type = kind(x.dtype()) == dtype_kind::floating ? x.dtype() : dtype::float64;
  dims shape{count};
  for (const index_t extent : lanes.result()) shape.push_back(extent);
  const tensor out = tensor::empty({count, lane_count}, dtype::float64, &on.pool());
  if (out.size() > 0) {
    std::optional<tensor> counts;
    if (policy == nan_elements::are_left_out && is_inexact(x.dtype()))
      counts = lanes.counts_of_numbers();
    lane_quantiles(lanes, q, method, std::move(counts)).write(out, on);
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
        const expr rows = part_of(ready, box).moveaxis(along, -1);
        const tensor part = whole ? held_contiguous(rows) : held_part(rows);
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
    const ranked_lanes lanes(x, axis, "kthvalue");
    const ranked_elements found = empty_ranked(lanes.result(), x.dtype(), on);
    if (found.values.size() > 0) lanes.ranked(k - 1, found, on);
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
  return allocating([&] {
    return quantiles(x, {0.5}, axis, quantile_method::midpoint, nan_elements::decide, "median")
        .select(0, 0);
  });
}

tensor nanmedian(const expr& x, std::optional<index_t> axis) {
  return allocating([&] {
    return quantiles(x, {0.5}, axis, quantile_method::midpoint, nan_elements::are_left_out,
                     "nanmedian")
        .select(0, 0);
  });
}

tensor quantile(const expr& x, const std::vector<double>& q, std::optional<index_t> axis,
                quantile_method method) {
  return allocating([&] {
    require_method(method);
    return quantiles(x, q, axis, method, nan_elements::decide, "quantile");
  });
}

tensor nanquantile(const expr& x, const std::vector<double>& q, std::optional<index_t> axis,
                   quantile_method method) {
  return allocating([&] {
    require_method(method);
    return quantiles(x, q, axis, method, nan_elements::are_left_out, "nanquantile");
  });
}

tensor quantile(const expr& x, double q, std::optional<index_t> axis, quantile_method method) {
  return allocating([&] { return quantile(x, std::vector<double>{q}, axis, method).select(0, 0); });
}

tensor nanquantile(const expr& x, double q, std::optional<index_t> axis, quantile_method method) {
  return allocating(
      [&] { return nanquantile(x, std::vector<double>{q}, axis, method).select(0, 0); });
}

}  // namespace shale
