#include "shale/histograms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/allocating.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/functions/operands/slabs.hpp"
#include "ops/sorting/row_shape.hpp"
#include "ops/sorting/row_sort.hpp"
#include "parallel/operands/changing_operand.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/reductions.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

void require_bins(index_t bins, const executor& on) {
  if (static_cast<std::uint64_t>(bins) > on.memory_bytes() / sizeof(std::int64_t))
    throw error(errc::out_of_memory, "the counts do not fit into the memory budget",
                {"need " + std::to_string(bins) + " counts of 8 bytes, and the budget has " +
                 std::to_string(on.memory_bytes()) + " bytes"});
}

void require_weights(const expr& x, const std::optional<expr>& weights, const char* function) {
  if (!weights) return;
  if (weights->shape() != x.shape())
    throw error(errc::invalid_argument, std::string(function) + " needs a weight for each element",
                {"got shapes " + to_string(x.shape()) + " and " + to_string(weights->shape())});
  if (kind(weights->dtype()) == dtype_kind::complex)
    throw error(errc::invalid_argument, std::string(function) + " needs weights that are real",
                {"got " + std::string(name(weights->dtype()))});
}

// Calls `body(elements, weights)` for parts of the operands, contiguous and in row-major order.
// Values that must be computed as a whole before any part are computed first, and held meanwhile.
template <class Body>
void for_each_part(const expr& x, const std::optional<expr>& weights, executor& on,
                   const Body& body) {
  if (x.size() == 0) return;
  const std::size_t item = item_bytes(x.dtype()) + (weights ? sizeof(double) : 0);
  const auto elements = static_cast<index_t>(on.memory_bytes() / 4 / item);
  const bool whole = x.size() <= elements || (lies_in_memory(x) && !weights);
  const dims slab = whole ? x.shape() : slab_shape(x.shape(), elements);
  const auto ready = [&](const expr& value) { return whole ? value : with_computed_stages(value); };
  const expr ready_x = ready(x);
  const std::optional<expr> ready_weights = weights ? std::optional(ready(*weights)) : std::nullopt;
  const auto held = [&](const expr& part) {
    return whole ? held_contiguous(part) : held_part(part);
  };
  for_each_slab_of(x.shape(), slab, [&](const region& box) {
    const tensor part = held(part_of(ready_x, box));
    const tensor own =
        weights ? held(astype(part_of(*ready_weights, box), dtype::float64)) : tensor();
    body(part, own);
    part.storage().check();
    if (weights) own.storage().check();
  });
}

// Bins of equal width, or bins between given edges. An element that lies in no bin has the number
// -1.
class bins_of_values {
 public:
  explicit bins_of_values(std::vector<double> edges) : edges_(std::move(edges)) {}

  bins_of_values(value_range range, index_t bins)
      : edges_(static_cast<std::size_t>(bins) + 1), equal_(true) {
    const double distance = range.high - range.low;
    // The distance of the ends may overflow. The distance of their halves does not.
    const double unit = std::isfinite(distance) ? 1 : 0.5;
    const double low = range.low * unit;
    const double width = (range.high * unit - low) / static_cast<double>(bins);
    for (std::size_t i = 0; i < edges_.size(); ++i)
      edges_[i] = std::min((low + width * static_cast<double>(i)) / unit, range.high);
    edges_.back() = range.high;
    per_value_ = static_cast<double>(bins) / distance;
  }

  index_t count() const { return static_cast<index_t>(edges_.size()) - 1; }
  const std::vector<double>& edges() const { return edges_; }

  index_t operator()(double value) const {
    if (!(value >= edges_.front() && value <= edges_.back())) return -1;
    if (value == edges_.back()) return count() - 1;
    if (!equal_) return found(value);
    // The product is rounded, so the bin may be a neighbour of the right one. It may also be far
    // away, in two cases: bins are narrower than the distance of floats, so runs of edges are
    // equal; or the distance of the ends overflows, so the factor is 0.
    const double scaled = (value - edges_.front()) * per_value_;
    index_t bin =
        scaled < static_cast<double>(count()) ? static_cast<index_t>(scaled) : count() - 1;
    if (value < edge(bin)) --bin;
    else if (value >= edge(bin + 1)) ++bin;
    return value >= edge(bin) && value < edge(bin + 1) ? bin : found(value);
  }

 private:
  double edge(index_t number) const { return edges_[static_cast<std::size_t>(number)]; }

  index_t found(double value) const {
    return std::upper_bound(edges_.begin(), edges_.end(), value) - edges_.begin() - 1;
  }

  std::vector<double> edges_;
  bool equal_ = false;
  double per_value_ = 0;
};

template <class T>
double as_double(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(value);
  else return static_cast<double>(static_cast<float>(value));
}

// Any byte except 0 is true.
template <class T>
double value_at(const std::byte* elements, index_t i) {
  if constexpr (std::is_same_v<T, bool>) return elements[i] != std::byte{} ? 1 : 0;
  else return as_double(reinterpret_cast<const T*>(elements)[i]);
}

constexpr index_t unit_elements = piece_elements_min;

// Calls `count(counts, as, elements, first, end)` for ranges of the elements, in parallel. The call
// adds the elements `first` to `end` - 1 to `counts`, which are those of one thread, and makes room
// for them. The elements have type T if `as` is a std::type_identity<T>. Returns the sums of the
// counts of all threads.
template <class Types, class Count>
std::vector<std::int64_t> counted(const expr& x, Types types, executor& on, const Count& count) {
  std::vector<std::vector<std::int64_t>> of_workers(static_cast<std::size_t>(on.threads()));
  for_each_part(x, std::nullopt, on, [&](const tensor& part, const tensor&) {
    parallel::parallel_for_tiles(
        on, ceil_div(part.size(), unit_elements), [&](index_t unit, int worker) {
          auto& counts = of_workers[static_cast<std::size_t>(worker)];
          const index_t first = unit * unit_elements;
          const index_t end = std::min(part.size(), first + unit_elements);
          visit(part.dtype(), types, [&]<class T>(std::type_identity<T> as) {
            count(counts, as, part.data(), first, end);
          });
        });
  });
  std::vector<std::int64_t> total;
  for (const auto& counts : of_workers) {
    if (counts.size() > total.size()) total.resize(counts.size(), 0);
    for (std::size_t i = 0; i < counts.size(); ++i) total[i] += counts[i];
  }
  return total;
}

std::vector<std::int64_t> counted_in_bins(const expr& x, const bins_of_values& bins, executor& on) {
  // Position 0 counts the elements that are in no bin.
  const std::size_t positions = static_cast<std::size_t>(bins.count()) + 1;
  std::vector<std::int64_t> counts =
      counted(x, ordered_types{}, on,
              [&]<class T>(std::vector<std::int64_t>& own, std::type_identity<T>,
                           const std::byte* elements, index_t first, index_t end) {
                own.resize(positions);
                for (index_t i = first; i < end; ++i)
                  ++own[static_cast<std::size_t>(bins(value_at<T>(elements, i)) + 1)];
              });
  counts.resize(positions);  // an operand without elements has no counts yet
  counts.erase(counts.begin());
  return counts;
}

// Adds weights to sums. Each thread adds to its own part of the sums, so the weights of one sum are
// added in the order of the elements.
template <class Bin>
void add_weights(index_t count, const tensor& weights, std::vector<double>& sums, executor& on,
                 const Bin& bin) {
  const auto* const values = reinterpret_cast<const double*>(weights.data());
  const auto bins = static_cast<index_t>(sums.size());
  const index_t parts = count < unit_elements ? 1 : std::min<index_t>(on.threads(), bins);
  const equal_pieces bounds(bins, std::max<index_t>(parts, 1));
  parallel::parallel_for_tiles(on, parts, [&](index_t part, int) {
    const index_t first = bounds.start(part), last = bounds.start(part + 1);
    for (index_t i = 0; i < count; ++i) {
      const index_t own = bin(i);
      if (own >= first && own < last) sums[static_cast<std::size_t>(own)] += values[i];
    }
  });
}

std::vector<double> weighed(const expr& x, const expr& weights, const bins_of_values& bins,
                            executor& on) {
  std::vector<double> sums(static_cast<std::size_t>(bins.count()), 0);
  for_each_part(x, weights, on, [&](const tensor& part, const tensor& own) {
    visit(part.dtype(), ordered_types{}, [&]<class T>(std::type_identity<T>) {
      add_weights(part.size(), own, sums, on,
                  [&](index_t i) { return bins(value_at<T>(part.data(), i)); });
    });
  });
  return sums;
}

template <class T>
tensor as_tensor(const std::vector<T>& values, executor& on) {
  const tensor out =
      tensor::empty({static_cast<index_t>(values.size())}, dtype_of<T>(), &on.pool());
  std::copy(values.begin(), values.end(), reinterpret_cast<T*>(out.data()));
  return out;
}

binned_counts histogram_of(const expr& x, const bins_of_values& bins,
                           const histogram_options& options, executor& on) {
  const tensor edges = as_tensor(bins.edges(), on);
  if (!options.weights && !options.density)
    return {as_tensor(counted_in_bins(x, bins, on), on), edges};
  std::vector<double> sums;
  if (options.weights) {
    sums = weighed(x, *options.weights, bins, on);
  } else {
    for (const std::int64_t count : counted_in_bins(x, bins, on))
      sums.push_back(static_cast<double>(count));
  }
  if (options.density) {
    double total = 0;
    for (const double sum : sums) total += sum;
    for (std::size_t bin = 0; bin < sums.size(); ++bin) {
      const double low = bins.edges()[bin], high = bins.edges()[bin + 1];
      // The width may overflow. Half of it does not.
      if (std::isfinite(high - low)) sums[bin] = sums[bin] / (high - low) / total;
      else sums[bin] = sums[bin] / total / 2 / (high / 2 - low / 2);
    }
  }
  return {as_tensor(sums, on), edges};
}

void require_histogram(const expr& x, const histogram_options& options) {
  require_order(x.dtype(), "histogram");
  require_weights(x, options.weights, "histogram");
}

// A range of width 1 around the value. If the float next to the value is further away than 0.5 on a
// side, the range ends at that float.
value_range range_around(double value) {
  constexpr double most = std::numeric_limits<double>::max();
  return {std::min(value - 0.5, std::nextafter(value, -most)),
          std::max(value + 0.5, std::nextafter(value, most))};
}

value_range range_of(const expr& x, const std::optional<value_range>& given) {
  value_range range;
  if (given) {
    range = *given;
  } else if (x.size() > 0) {
    const expr ends[] = {min(computes(x.dtype()) ? x : astype(x, dtype::float32)),
                         max(computes(x.dtype()) ? x : astype(x, dtype::float32))};
    const std::vector<tensor> found = eval_all(ends);
    range = {found[0].item().as<double>(), found[1].item().as<double>()};
  }
  if (!std::isfinite(range.low) || !std::isfinite(range.high))
    throw error(errc::invalid_argument, "histogram needs a range that is finite",
                {"got " + std::to_string(range.low) + " to " + std::to_string(range.high),
                 "give options.range if some elements are NaN or infinite"});
  if (range.low > range.high)
    throw error(errc::invalid_argument, "histogram: range.low must not exceed range.high",
                {"got " + std::to_string(range.low) + " to " + std::to_string(range.high)});
  return range.low == range.high ? range_around(range.low) : range;
}

// An integer as the number that bincount counts. It is -1 for a negative integer, and the largest
// int64 for an integer that does not fit.
template <class T>
index_t number_at(const std::byte* elements, index_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return elements[i] != std::byte{} ? 1 : 0;
  } else {
    const T element = reinterpret_cast<const T*>(elements)[i];
    if constexpr (std::is_signed_v<T>) return element < 0 ? -1 : static_cast<index_t>(element);
    else
      return element > static_cast<std::uint64_t>(std::numeric_limits<index_t>::max())
                 ? std::numeric_limits<index_t>::max()
                 : static_cast<index_t>(element);
  }
}

using counting_types = type_list<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                 std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;

// Makes room for the sums of the numbers 0 to `number`.
template <class T>
void make_room(std::vector<T>& sums, index_t number, const executor& on) {
  if (number < static_cast<index_t>(sums.size())) return;
  require_bins(number == std::numeric_limits<index_t>::max() ? number : number + 1, on);
  sums.resize(static_cast<std::size_t>(number) + 1, T{0});
}

[[noreturn]] void throw_negative() {
  throw error(errc::invalid_argument, "bincount needs elements that are not negative",
              {"got a negative element"});
}

// The largest number of a range of elements; -1 if the range is empty.
template <class T>
index_t largest_number_of(const std::byte* elements, index_t first, index_t end) {
  index_t most = -1;
  bool negative = false;
  for (index_t i = first; i < end; ++i) {
    const index_t number = number_at<T>(elements, i);
    negative |= number < 0;
    most = std::max(most, number);
  }
  if (negative) throw_negative();
  return most;
}

// The position of a number among the sums, for which there was room when the largest number was
// found.
// Throws   io if the number has changed since, and there is no room for it
std::size_t position_among(std::size_t sums, index_t number) {
  const auto position = static_cast<std::size_t>(parallel::read_once(number));
  if (position >= sums) parallel::throw_changed("the operand");
  return position;
}

std::vector<std::int64_t> numbers_counted(const expr& x, executor& on) {
  return counted(x, counting_types{}, on,
                 [&]<class T>(std::vector<std::int64_t>& counts, std::type_identity<T>,
                              const std::byte* elements, index_t first, index_t end) {
                   make_room(counts, largest_number_of<T>(elements, first, end), on);
                   for (index_t i = first; i < end; ++i)
                     ++counts[position_among(counts.size(), number_at<T>(elements, i))];
                 });
}

std::vector<double> numbers_weighed(const expr& x, const expr& weights, executor& on) {
  std::vector<double> sums;
  for_each_part(x, weights, on, [&](const tensor& part, const tensor& own) {
    visit(part.dtype(), counting_types{}, [&]<class T>(std::type_identity<T>) {
      make_room(sums, largest_number_of<T>(part.data(), 0, part.size()), on);
      add_weights(part.size(), own, sums, on, [&](index_t i) {
        return static_cast<index_t>(position_among(sums.size(), number_at<T>(part.data(), i)));
      });
    });
  });
  return sums;
}

template <class T>
tensor at_least_long(std::vector<T> values, index_t length_min, executor& on) {
  make_room(values, length_min - 1, on);
  return as_tensor(values, on);
}

}  // namespace

binned_counts histogram(const expr& x, index_t bins, const histogram_options& options) {
  return allocating([&] {
    executor& on = executor::current();
    require_histogram(x, options);
    if (bins <= 0)
      throw error(errc::invalid_argument, "histogram needs at least one bin",
                  {"got " + std::to_string(bins)});
    require_bins(bins, on);
    return histogram_of(x, bins_of_values(range_of(x, options.range), bins), options, on);
  });
}

binned_counts histogram(const expr& x, const expr& edges, const histogram_options& options) {
  return allocating([&] {
    executor& on = executor::current();
    require_histogram(x, options);
    require_order(edges.dtype(), "histogram");
    if (edges.rank() != 1 || edges.size() == 0)
      throw error(errc::invalid_argument, "histogram needs edges with one axis that is not empty",
                  {"got shape " + to_string(edges.shape())});
    if (options.range)
      throw error(errc::invalid_argument, "histogram takes a range or edges, not both", {});
    const tensor held = eval(astype(edges, dtype::float64));
    const auto* const first = reinterpret_cast<const double*>(held.data());
    std::vector<double> bounds(first, first + held.size());
    for (std::size_t i = 0; i < bounds.size(); ++i)
      if (std::isnan(bounds[i]) || (i > 0 && bounds[i] < bounds[i - 1]))
        throw error(errc::invalid_argument, "histogram edges must not decrease or be NaN",
                    {"got " + std::to_string(bounds[i]) + " as edge " + std::to_string(i)});
    return histogram_of(x, bins_of_values(std::move(bounds)), options, on);
  });
}

tensor bincount(const expr& x, const std::optional<expr>& weights, index_t length_min) {
  return allocating([&] {
    executor& on = executor::current();
    if (is_inexact(x.dtype()))
      throw error(errc::invalid_argument, "bincount needs integers",
                  {"got " + std::string(name(x.dtype()))});
    if (length_min < 0)
      throw error(errc::invalid_argument, "bincount needs a length that is not negative",
                  {"got " + std::to_string(length_min)});
    require_weights(x, weights, "bincount");
    return weights ? at_least_long(numbers_weighed(x, *weights, on), length_min, on)
                   : at_least_long(numbers_counted(x, on), length_min, on);
  });
}

}  // namespace shale
