#include "shale/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"
#include "parallel/executor/executor_state.hpp"
#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/ops.hpp"
#include "shale/order_statistics.hpp"
#include "shale/reductions.hpp"
#include "shale/take.hpp"

namespace shale {

using detail::allocating;
using ops::distribution;
using ops::random_draw;

namespace {

constexpr std::uint64_t last_position = std::numeric_limits<std::uint64_t>::max();

std::string text(double number) { return scalar(number).to_string(); }

void check_positions(const generator& from, std::uint64_t elements) {
  if (elements > last_position - from.position())
    throw error(errc::invalid_argument, "a generator has no position beyond 2^64 - 1",
                {fmt::format("at position {}, wanted {} more", from.position(), elements),
                 "take a generator of another seed"});
}

[[noreturn]] void throw_dtype(std::string_view function, dtype type, std::string_view wanted) {
  throw error(errc::invalid_argument, fmt::format("{}: the dtype is not supported", function),
              {fmt::format("got dtype {}, wanted {}", name(type), wanted)});
}

void check_floating(std::string_view function, dtype type) {
  if (type != dtype::float16 && type != dtype::bfloat16 && type != dtype::float32 &&
      type != dtype::float64)
    throw_dtype(function, type, "float16, bfloat16, float32 or float64");
}

// A value, rounded to a dtype that `check_floating` takes.
double rounded(double value, dtype type) {
  return visit(type, floating_types{}, [&]<class T>(std::type_identity<T>) {
    return scalar(scalar(value).as<T>()).template as<double>();
  });
}

// A parameter of a distribution.
struct parameter {
  std::string_view name;
  double value;
  bool may_be_negative = true;
};

void check(std::string_view function, const parameter& given, dtype type) {
  if (!std::isfinite(rounded(given.value, type)))
    throw error(errc::invalid_argument, fmt::format("{}: '{}' is not finite", function, given.name),
                {fmt::format("got {} as {}", text(given.value), name(type))});
  if (given.value < 0 && !given.may_be_negative)
    throw error(errc::invalid_argument, fmt::format("{}: '{}' is negative", function, given.name),
                {"got " + text(given.value)});
}

void check_probability(std::string_view function, double probability, bool may_be_0) {
  const bool inside = probability >= 0 && probability <= 1;  // false for NaN
  if (!inside || (probability == 0 && !may_be_0))
    throw error(errc::invalid_argument, fmt::format("{}: 'probability' is out of range", function),
                {fmt::format("got {}, wanted {} 1", text(probability),
                             may_be_0 ? "0 to" : "more than 0, to")});
}

// Makes an expression of random numbers. They are computed in the dtype `computed` and converted to
// `type`. If the call throws, the generator keeps its position.
expr drawn(generator& from, const dims& shape, distribution kind, random_draw draw, dtype computed,
           dtype type) {
  const auto elements = static_cast<std::uint64_t>(element_count(shape));
  check_positions(from, elements);
  draw.seed = from.seed();
  const auto leaf = ops::make_node(computed, shape,
                                   detail::random_leaf{kind, draw, from.position(), layout(shape)});
  expr made = ops::expr_of(ops::make_cast(leaf, type));
  from.skip(elements);
  return made;
}

// Draws floats, which are float32 before they are rounded to a smaller dtype.
expr drawn_floats(generator& from, const dims& shape, distribution kind, const random_draw& draw,
                  dtype type) {
  return drawn(from, shape, kind, draw, type == dtype::float64 ? type : dtype::float32, type);
}

// Draws floats of a distribution that has a location and a scale.
expr drawn_by_location_and_scale(std::string_view function, generator& from, const dims& shape,
                                 distribution kind, const parameter& location,
                                 const parameter& scale, dtype type) {
  return allocating([&] {
    check_floating(function, type);
    check(function, location, type);
    check(function, scale, type);
    random_draw draw;
    draw.first = location.value;
    draw.second = scale.value;
    return drawn_floats(from, shape, kind, draw, type);
  });
}

// The largest T below `high`.
template <class T>
double below(T high) {
  using bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  const bits held = std::bit_cast<bits>(high);
  constexpr bits sign = static_cast<bits>(bits{1} << (8 * sizeof(T) - 1));
  bits result;
  if ((held & ~sign) == 0) result = sign | 1;  // below either zero: the smallest negative number
  else result = static_cast<bits>((held & sign) != 0 ? held + 1 : held - 1);
  return scalar(std::bit_cast<T>(result)).template as<double>();
}

// log(1 + f) for 1 + f between sqrt(1/2) and sqrt(2).
double log_near_1(double f) {
  const double s = f / (2 + f);
  double sum = 0;
  for (int k = 25; k > 0; k -= 2) sum = sum * s * s + 1.0 / k;
  return 2 * s * sum;
}

// -log(1 - p) for 0 < p <= 1. The C library's logarithm may differ between machines, and then the
// random numbers would differ too.
double minus_log_of_failure(double p) {
  if (p == 1) return std::numeric_limits<double>::infinity();
  if (p <= 0.25) return -log_near_1(-p);
  int exponent;
  double mantissa = std::frexp(1 - p, &exponent);
  if (mantissa < 0.707) {
    mantissa *= 2;
    --exponent;
  }
  return -(exponent * 0x1.62e42fefa39efp-1 + log_near_1(mantissa - 1));
}

// Holds every int64 and every uint64.
__extension__ using wide = __int128;

wide integer_bound(std::string_view bound_name, const scalar& bound) {
  if (bound.fits(dtype::int64)) return bound.as<std::int64_t>();
  if (bound.fits(dtype::uint64)) return bound.as<std::uint64_t>();
  throw error(errc::invalid_argument, fmt::format("integers: '{}' is not an integer", bound_name),
              {"got " + bound.to_string() + ", wanted an integer of 64 bits"});
}

}  // namespace

void generator::skip(std::uint64_t elements) {
  allocating([&] {
    check_positions(*this, elements);
    position_ += elements;
  });
}

expr uniform(generator& from, const dims& shape, double low, double high, dtype type) {
  return allocating([&] {
    check_floating("uniform", type);
    check("uniform", {"low", low}, type);
    check("uniform", {"high", high}, type);
    const double first = rounded(low, type), last = rounded(high, type);
    const double width = last - first;
    if (low > high ||
        !std::isfinite(type == dtype::float64 ? width : rounded(width, dtype::float32)))
      throw error(errc::invalid_argument,
                  low > high ? "uniform: 'low' is above 'high'" : "uniform: the range is too wide",
                  {"got " + text(low) + " to " + text(high)});
    random_draw draw;
    draw.first = first;
    draw.second = width;
    draw.highest = first;
    if (first < last)
      draw.highest = visit(type, floating_types{}, [&]<class T>(std::type_identity<T>) {
        return below(scalar(last).as<T>());
      });
    // A fraction has as many bits as the dtype's mantissa, so that it is not rounded up to 1.
    if (type == dtype::float16) draw.unused_bits = 24 - 11;
    if (type == dtype::bfloat16) draw.unused_bits = 24 - 8;
    return drawn_floats(from, shape, distribution::uniform, draw, type);
  });
}

expr normal(generator& from, const dims& shape, double mean, double stddev, dtype type) {
  return drawn_by_location_and_scale("normal", from, shape, distribution::normal, {"mean", mean},
                                     {"stddev", stddev, false}, type);
}

expr log_normal(generator& from, const dims& shape, double mean, double stddev, dtype type) {
  return drawn_by_location_and_scale("log_normal", from, shape, distribution::log_normal,
                                     {"mean", mean}, {"stddev", stddev, false}, type);
}

expr exponential(generator& from, const dims& shape, double scale, dtype type) {
  return allocating([&] {
    check_floating("exponential", type);
    check("exponential", {"scale", scale, false}, type);
    random_draw draw;
    draw.first = scale;
    return drawn_floats(from, shape, distribution::exponential, draw, type);
  });
}

expr cauchy(generator& from, const dims& shape, double median, double scale, dtype type) {
  return drawn_by_location_and_scale("cauchy", from, shape, distribution::cauchy,
                                     {"median", median}, {"scale", scale, false}, type);
}

expr geometric(generator& from, const dims& shape, double probability, dtype type) {
  return allocating([&] {
    check_probability("geometric", probability, false);
    if (type != dtype::float64 && !is_integer(type))
      throw_dtype("geometric", type, "float64 or an integer dtype");
    random_draw draw;
    draw.first = minus_log_of_failure(probability);
    return drawn(from, shape, distribution::geometric, draw, dtype::float64, type);
  });
}

expr bernoulli(generator& from, const dims& shape, double probability, dtype type) {
  return allocating([&] {
    check_probability("bernoulli", probability, true);
    random_draw draw;
    draw.never = probability == 0;
    if (probability == 1) draw.whole = last_position;
    else if (probability > 0)
      draw.whole = static_cast<std::uint64_t>(std::ceil(std::ldexp(probability, 64))) - 1;
    return drawn(from, shape, distribution::bernoulli, draw, dtype::boolean, type);
  });
}

expr integers(generator& from, const dims& shape, const scalar& low, const scalar& high,
              dtype type) {
  return allocating([&] {
    if (!is_integer(type)) throw_dtype("integers", type, "an integer dtype");
    const wide first = integer_bound("low", low), end = integer_bound("high", high);
    const auto bounds = [&] { return low.to_string() + " to " + high.to_string(); };
    if (first >= end)
      throw error(errc::invalid_argument, "integers: 'low' is not below 'high'",
                  {"got " + bounds()});
    const wide last = end - 1;
    const bool last_fits = last < 0 ? scalar(static_cast<std::int64_t>(last)).fits(type)
                                    : scalar(static_cast<std::uint64_t>(last)).fits(type);
    if (!low.fits(type) || !last_fits)
      throw error(errc::invalid_argument, "integers: the dtype does not hold the range",
                  {fmt::format("got {} (exclusive) as {}", bounds(), name(type))});
    random_draw draw;
    draw.whole = static_cast<std::uint64_t>(first);
    draw.count = static_cast<std::uint64_t>(end - first);
    // A range of all 2^64 integers has the count 2^64, which wraps to 0. The results are then the
    // words themselves.
    const distribution kind_of_draw = draw.count == 0 ? distribution::words
                                      : draw.count < (std::uint64_t{1} << 32)
                                          ? distribution::integers
                                          : distribution::integers_of_64;
    return drawn(from, shape, kind_of_draw, draw, dtype::uint64, type);
  });
}

tensor permutation(generator& from, index_t count) {
  return allocating([&] {
    if (count < 0)
      throw error(errc::invalid_argument, "permutation: 'count' is negative",
                  {"got " + std::to_string(count)});
    check_positions(from, static_cast<std::uint64_t>(count));
    executor& on = executor::current();
    tensor result = eval(arange(count));
    auto* numbers = reinterpret_cast<std::int64_t*>(result.data());
    random_draw draw;
    draw.seed = from.seed();
    const auto words = ops::find_random_kernel(distribution::words, dtype::uint64);
    // The loop goes from the last place to the first one. Each place takes one of the numbers that
    // are left; the random word of the place chooses it. The word of a place has the position of
    // the generator plus the place (R. Durstenfeld, Algorithm 235: random permutation, CACM 7,
    // 1964).
    constexpr index_t held_max = 1024;
    std::array<std::uint64_t, held_max> held;
    __extension__ using product = unsigned __int128;
    for (index_t end = count; end > 0;) {
      parallel::require_not_cancelled(on);
      const index_t begin = (end - 1) / held_max * held_max;
      words.run(draw, from.position() + static_cast<std::uint64_t>(begin), end - begin,
                reinterpret_cast<std::byte*>(held.data()));
      for (index_t place = end - 1; place >= begin; --place) {
        const product left = static_cast<product>(place) + 1;
        const auto other =
            static_cast<index_t>((left * held[static_cast<std::size_t>(place - begin)]) >> 64);
        std::swap(numbers[place], numbers[other]);
      }
      end = begin;
    }
    from.skip(static_cast<std::uint64_t>(count));
    return result;
  });
}

namespace {

// The number of draws after which a call looks for a cancellation.
constexpr index_t draws_between_looks = index_t{1} << 14;

// Replaces each weight of a row by the sum of the weights up to it. Returns the sum of all.
double accumulate(double* weights, index_t count, index_t row) {
  double sum = 0;
  for (index_t k = 0; k < count; ++k) {
    if (!(weights[k] >= 0))  // NaN too
      throw error(errc::invalid_argument, "multinomial: 'weights' has a negative number or NaN",
                  {fmt::format("got {} for category {} of row {}", text(weights[k]), k, row)});
    weights[k] = sum += weights[k];
  }
  if (!(sum > 0) || !std::isfinite(sum))
    throw error(errc::invalid_argument, "multinomial: 'weights' has no finite, positive sum",
                {fmt::format("got {} for row {}", text(sum), row)});
  return sum;
}

// Refuses rows of weights from which `count` categories cannot be drawn without replacement.
void require_categories(const tensor& weights, index_t count) {
  const index_t categories = weights.shape(-1);
  const std::span<const double> all = weights.elements<const double>();
  std::vector<double> row_weights(static_cast<std::size_t>(categories));
  for (index_t first = 0, row = 0; first < weights.size(); first += categories, ++row) {
    const auto begin = all.begin() + first, end = begin + categories;
    std::copy(begin, end, row_weights.begin());
    accumulate(row_weights.data(), categories, row);
    const auto positive = std::count_if(begin, end, [](double weight) { return weight > 0; });
    if (positive < count)
      throw error(errc::invalid_argument, "multinomial: 'weights' has too few positive numbers",
                  {fmt::format("got {} in row {}, wanted {} to draw without replacement", positive,
                               row, count)});
  }
}

// Each category draws an exponential number and divides it by its weight. The smallest quotient
// belongs to a category with a probability in proportion to its weight, and so does the next one
// among the categories that are left (Efraimidis and Spirakis). Weights are divided by the largest
// one first, so that quotients of tiny weights are finite. A weight of 0 gives NaN, which sorts
// behind all quotients.
tensor drawn_once(generator& from, const expr& weights, index_t count) {
  dims shape = weights.shape();
  check_positions(from, static_cast<std::uint64_t>(element_count(shape)));
  const tensor held = eval(astype(weights, dtype::float64));
  if (element_count(shape) == 0 && count > 0 && (shape.size() == 1 || shape[0] > 0))
    throw error(errc::invalid_argument, "multinomial: 'weights' has too few positive numbers",
                {fmt::format("got none, wanted {} to draw without replacement", count)});
  require_categories(held, count);
  generator next = from;
  const expr all(held), waiting = exponential(next, shape);
  shape[shape.size() - 1] = count;
  tensor result = tensor::empty(shape, dtype::int64, &executor::current().pool());
  if (result.size() > 0) {
    const expr part = all / max(all, {-1}, keepdims::yes);
    result = topk(where(all > 0, waiting / part, std::nan("")), count, -1, largest::no).indices;
  }
  from = next;
  return result;
}

}  // namespace

tensor multinomial(generator& from, const expr& weights, index_t count, replacement with) {
  return allocating([&] {
    const index_t rank = weights.rank();
    if (rank < 1 || rank > 2 || kind(weights.dtype()) == dtype_kind::complex || count < 0)
      throw error(
          errc::invalid_argument,
          "multinomial needs 'weights' that are real and have one or two axes, and a 'count' "
          "that is not negative",
          {fmt::format("got weights of {} {} and count {}", name(weights.dtype()),
                       to_string(weights.shape()), count)});
    if (with == replacement::no) return drawn_once(from, weights, count);
    const index_t categories = weights.shape(-1);
    const index_t rows = rank == 2 ? weights.shape(0) : 1;
    const dims shape = rank == 2 ? dims{rows, count} : dims{count};
    check_positions(from, static_cast<std::uint64_t>(element_count(shape)));
    const tensor sums = eval(astype(weights, dtype::float64));
    generator next = from;
    executor& on = executor::current();
    tensor result = eval(full(shape, 0));
    const tensor fractions = eval(uniform(next, shape));
    auto* sum = reinterpret_cast<double*>(sums.data());
    auto* out = reinterpret_cast<std::int64_t*>(result.data());
    const auto* fraction = reinterpret_cast<const double*>(fractions.data());
    for (index_t row = 0; row < rows; ++row, sum += categories) {
      const double total = accumulate(sum, categories, row);
      // The result is the first category whose sum is larger than the product of fraction and
      // total. A category of weight 0 has the same sum as the one before it, so it is never found.
      // If the total is subnormal, the product may be rounded up to the total; the result is then
      // the last category with a weight.
      const double* const last = std::lower_bound(sum, sum + categories, total);
      for (index_t k = 0; k < count; ++k) {
        if (k % draws_between_looks == 0) parallel::require_not_cancelled(on);
        *out++ = std::min<const double*>(
                     std::upper_bound(sum, sum + categories, *fraction++ * total), last) -
                 sum;
      }
    }
    from = next;
    return result;
  });
}

expr choice(generator& from, const expr& a, index_t count, replacement with, index_t axis) {
  return allocating([&] {
    const index_t along = normalize_axis(axis, a.rank());
    const index_t length = a.shape(along);
    const index_t count_max = with == replacement::no ? length
                              : length > 0            ? std::numeric_limits<index_t>::max()
                                                      : 0;
    if (count < 0 || count > count_max)
      throw error(errc::invalid_argument, "choice: 'count' is out of range",
                  {fmt::format("got {}, the length of axis {} is {}", count, axis, length)});
    if (length == 0) return a;
    generator next = from;
    const expr chosen = with == replacement::yes
                            ? integers(next, {count}, 0, length)
                            : expr(permutation(next, length).narrow(0, 0, count));
    expr made = take(a, chosen, along);
    from = next;
    return made;
  });
}

void shuffle(generator& from, const tensor& out, index_t axis) {
  allocating([&] {
    const index_t along = normalize_axis(axis, out.rank());
    generator next = from;
    copy(out, eval(take(out, permutation(next, out.shape(along)), along)));
    from = next;
  });
}

}  // namespace shale
