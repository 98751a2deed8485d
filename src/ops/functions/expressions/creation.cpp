#include "shale/creation.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

// The dtype in which a range is computed: int64 or float64.
dtype range_dtype(const scalar& a, const scalar& b, const scalar& c) {
  for (const auto& number : {a, b, c})
    if (kind(number.dtype()) == dtype_kind::complex)
      throw error(errc::invalid_argument, "arange: complex numbers have no order");
  for (const auto& number : {a, b, c})
    if (kind(number.dtype()) == dtype_kind::floating) return dtype::float64;
  return dtype::int64;
}

// Whether the distance between two finite numbers is infinite.
bool are_far_apart(double a, double b) {
  return std::isfinite(a) && std::isfinite(b) && !std::isfinite(b - a);
}

}  // namespace

expr arange(scalar start, scalar stop, scalar step, std::optional<dtype> type) {
  const dtype natural = range_dtype(start, stop, step);
  if (step == scalar(0)) throw error(errc::invalid_argument, "arange: the step is 0");
  index_t count = 0;
  // If the ends are far apart, the range of their halves is made and then doubled. Halving such
  // numbers is exact, and so is doubling.
  const bool is_halved =
      natural == dtype::float64 && are_far_apart(start.as<double>(), stop.as<double>());
  const double unit = is_halved ? 0.5 : 1;
  const auto too_long = [&] {
    throw error(errc::invalid_argument, "arange: too many elements",
                {start.to_string() + " to " + stop.to_string() + " by " + step.to_string()});
  };
  if (natural == dtype::int64) {
    const auto first = start.to<std::int64_t>();
    const auto last = stop.to<std::int64_t>();
    const auto step_size = step.to<std::int64_t>();
    if (step_size > 0 ? first < last : first > last) {
      // The distance between two int64 numbers may fit in uint64 only.
      const auto magnitude = [](std::int64_t from, std::int64_t to) {
        return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
      };
      const std::uint64_t distance =
          step_size > 0 ? magnitude(first, last) : magnitude(last, first);
      const std::uint64_t steps =
          (distance - 1) / (step_size > 0 ? magnitude(0, step_size) : magnitude(step_size, 0)) + 1;
      if (steps > static_cast<std::uint64_t>(std::numeric_limits<index_t>::max())) too_long();
      count = static_cast<index_t>(steps);
    }
  } else {
    const double distance = stop.as<double>() * unit - start.as<double>() * unit;
    const double steps = distance / (step.as<double>() * unit);
    if (!(std::ceil(steps) < 0x1p62)) too_long();  // even if it is NaN
    // If the step is so large that the quotient rounds to 0, the range has one number, its first.
    const bool only_first = steps == 0 && distance != 0 && !std::signbit(steps);
    count = only_first ? 1 : steps > 0 ? static_cast<index_t>(std::ceil(steps)) : 0;
  }
  // A single number does not use the step. An infinite step times 0 would be NaN.
  if (count <= 1) step = scalar(0);
  const dims shape{count};
  const auto widened = [&](const scalar& number) {
    return natural == dtype::int64 ? scalar(number.as<std::int64_t>())
                                   : scalar(number.as<double>() * unit);
  };
  auto made = allocating([&] {
    return make_node(natural, shape,
                     detail::range_leaf{widened(start), widened(step), axis_map::identity(shape)});
  });
  const expr range = expr_of(std::move(made));
  const expr numbers = is_halved ? 2 * range : range;
  return type ? astype(numbers, *type) : numbers;
}
expr arange(scalar stop) {
  return arange(kind(stop.dtype()) == dtype_kind::floating ? scalar(0.0) : scalar(0), stop);
}

expr full(const dims& shape, const scalar& value, std::optional<dtype> type) {
  element_count(shape);  // throws if it is not a shape
  const dtype wanted = type.value_or(constant_dtype(value));
  const scalar typed = visit(wanted, all_types{},
                             [&]<class T>(std::type_identity<T>) { return scalar(value.to<T>()); });
  return allocating([&] { return expr_of(make_constant(typed, shape, wanted, false)); });
}

expr zeros(const dims& shape, dtype type) { return full(shape, 0, type); }
expr ones(const dims& shape, dtype type) { return full(shape, 1, type); }
expr full_like(const expr& a, const scalar& value, std::optional<dtype> type) {
  return full(a.shape(), value, type.value_or(a.dtype()));
}
expr zeros_like(const expr& a, std::optional<dtype> type) { return full_like(a, 0, type); }
expr ones_like(const expr& a, std::optional<dtype> type) { return full_like(a, 1, type); }

expr linspace(double start, double stop, index_t count) {
  return allocating([&] {
    if (count < 0)
      throw error(errc::invalid_argument, "linspace: the count is negative",
                  {"got " + std::to_string(count)});
    const expr k = arange(count);
    if (count < 2) return k + start;
    const double distance = stop - start, steps = static_cast<double>(count - 1);
    if (!std::isfinite(distance)) return lerp(start, stop, k / steps);
    return where(k == count - 1, stop, k * (distance / steps) + start);
  });
}

expr logspace(double start, double stop, index_t count, double base) {
  return allocating([&] { return pow(base, linspace(start, stop, count)); });
}

namespace {

// For each element of a matrix, the number of its diagonal.
expr diagonal_of(index_t rows, index_t columns) {
  return arange(columns) - arange(rows).expand_dims(1);
}

expr diagonal_of_matrices(const char* function, const expr& a) {
  if (a.rank() < 2)
    throw error(errc::invalid_argument, std::string(function) + " needs at least two axes",
                {"got shape " + to_string(a.shape())});
  return diagonal_of(a.shape(-2), a.shape(-1));
}

}  // namespace

expr eye(index_t rows, std::optional<index_t> columns, index_t diagonal, dtype type) {
  return allocating([&] {
    const index_t width = columns.value_or(rows);
    if (rows < 0 || width < 0)
      throw error(errc::invalid_argument, "eye: an extent is negative",
                  {"got " + std::to_string(rows) + " x " + std::to_string(width)});
    return astype(diagonal_of(rows, width) == expr(diagonal), type);
  });
}

expr tril(const expr& a, index_t diagonal) {
  return allocating(
      [&] { return where(diagonal_of_matrices("tril", a) <= expr(diagonal), a, zeros_like(a)); });
}

expr triu(const expr& a, index_t diagonal) {
  return allocating(
      [&] { return where(diagonal_of_matrices("triu", a) >= expr(diagonal), a, zeros_like(a)); });
}

}  // namespace shale
