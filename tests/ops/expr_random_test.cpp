// Tests random expression trees. The oracle holds every value as a list of numbers and computes
// element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <variant>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "support/general_way.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::index_list;
using test::index_oracle;
using test::random_choices;
using test::sharing;

/// A value of the oracle: numbers in row-major order, chosen so that doubles hold them exactly.
struct listed {
  dtype type;
  index_oracle view;  // positions in `numbers`
  std::vector<double> numbers;

  double operator()(std::size_t i) const {
    return numbers[static_cast<std::size_t>(view.positions[i])];
  }
  std::size_t size() const { return view.positions.size(); }
};

struct both {
  expr lazy;
  listed oracle;
};

listed make_listed(dtype type, const index_list& shape, std::vector<double> numbers) {
  return {type, index_oracle::row_major(shape), std::move(numbers)};
}

/// Elements of any real tensor as doubles.
std::vector<double> numbers_of(const tensor& values) {
  return visit(values.dtype(),
               type_list<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                         std::uint16_t, float16, bfloat16, float, double>{},
               [&]<class T>(std::type_identity<T>) {
                 std::vector<double> numbers;
                 for (const auto element : test::elements_of<T>(values)) {
                   if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>)
                     numbers.push_back(static_cast<float>(element));
                   else numbers.push_back(static_cast<double>(element));
                 }
                 return numbers;
               });
}

both random_leaf(random_choices& choose, const dims& shape) {
  const auto take = [&]<class T>(std::type_identity<T>) {
    const tensor values = test::random_tensor<T>(choose, shape);
    return both{values, make_listed(dtype_of<T>(), test::as_list(shape), numbers_of(values))};
  };
  switch (choose(0, 6)) {
    case 0:
      return take(std::type_identity<std::int32_t>{});
    case 5:
      return take(std::type_identity<float16>{});
    case 6:
      return take(std::type_identity<bfloat16>{});
    case 1:
      return take(std::type_identity<std::int64_t>{});
    case 2:
      return take(std::type_identity<std::uint8_t>{});
    case 3:
      return take(std::type_identity<float>{});
    default:
      return take(std::type_identity<double>{});
  }
}

/// Promotes two of the dtypes above.
dtype promoted(dtype a, dtype b) {
  if (a == b) return a;
  if (a == dtype::float64 || b == dtype::float64) return dtype::float64;
  if (a == dtype::float32 || b == dtype::float32) return dtype::float32;
  for (const auto half : {dtype::float16, dtype::bfloat16}) {
    const auto other = half == dtype::float16 ? dtype::bfloat16 : dtype::float16;
    if (a == half || b == half) return a == other || b == other ? dtype::float32 : half;
  }
  if (a == dtype::int64 || b == dtype::int64) return dtype::int64;
  return dtype::int32;
}

/// Rounds to `digits` significant binary digits, ties to even.
double rounded(double value, int digits) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(value, digits - exponent)), exponent - digits);
}

/// Converts a number to a dtype.
double held(dtype type, double value) {
  if (type == dtype::uint8) return value - 256 * std::floor(value / 256);
  if (type == dtype::float16) return rounded(value, 11);
  if (type == dtype::bfloat16) return rounded(value, 8);
  return value;
}

/// Keeps numbers so small that no operation on two of them exceeds float16's largest number.
bool moderate(const listed& values) {
  return std::all_of(values.numbers.begin(), values.numbers.end(),
                     [](double number) { return std::abs(number) < 16000; });
}

both binary(random_choices& choose, const both& a, const both& b) {
  const dims shape = broadcast_shapes(a.lazy.shape(), b.lazy.shape());
  const auto left = a.oracle.view.broadcast_to(test::as_list(shape));
  const auto right = b.oracle.view.broadcast_to(test::as_list(shape));
  const dtype type = promoted(a.oracle.type, b.oracle.type);
  if (type == dtype::float16 && !(moderate(a.oracle) && moderate(b.oracle))) return a;
  const auto compute = [&](dtype result, const std::function<double(double, double)>& f) {
    std::vector<double> numbers;
    for (std::size_t i = 0; i < left.positions.size(); ++i) {
      const double x = a.oracle.numbers[static_cast<std::size_t>(left.positions[i])];
      const double y = b.oracle.numbers[static_cast<std::size_t>(right.positions[i])];
      numbers.push_back(held(result, f(held(type, x), held(type, y))));
    }
    return make_listed(result, test::as_list(shape), std::move(numbers));
  };
  switch (choose(0, 5)) {
    case 0:
      return {a.lazy + b.lazy, compute(type, std::plus<>())};
    case 1:
      return {a.lazy - b.lazy, compute(type, std::minus<>())};
    case 2:
      return {minimum(a.lazy, b.lazy),
              compute(type, [](double x, double y) { return std::min(x, y); })};
    case 3:
      return {maximum(a.lazy, b.lazy),
              compute(type, [](double x, double y) { return std::max(x, y); })};
    case 4:
      return {
          where(a.lazy < b.lazy, a.lazy, b.lazy + b.lazy), compute(type, [&](double x, double y) {
            // The number is doubled in the dtype of b, if that is exact.
            return x < y ? x : b.oracle.type == dtype::uint8 ? held(dtype::uint8, y + y) : y + y;
          })};
    default:
      return {astype(a.lazy >= b.lazy, dtype::int32),
              compute(dtype::int32, [](double x, double y) { return x >= y ? 1.0 : 0.0; })};
  }
}

both viewed(random_choices& choose, const both& operand) {
  const index_t rank = operand.lazy.rank();
  const auto result = [&](expr lazy, index_oracle view) {
    return both{std::move(lazy),
                listed{operand.oracle.type, std::move(view), operand.oracle.numbers}};
  };
  const auto& view = operand.oracle.view;
  const auto extent = [&](index_t axis) { return operand.lazy.shape()[axis]; };
  const index_t axis = rank > 0 ? choose(0, rank - 1) : 0;
  switch (rank == 0 ? choose(5, 7) : choose(0, 9)) {
    case 0: {
      const index_t start = choose(0, extent(axis)), length = choose(0, extent(axis) - start);
      return result(operand.lazy.narrow(axis, start, length), view.narrow(axis, start, length));
    }
    case 1: {
      if (extent(axis) == 0) return operand;
      const index_t position = choose(-extent(axis), extent(axis) - 1);
      return result(operand.lazy.select(axis, position), view.select(axis, position));
    }
    case 2: {
      const index_t step = choose(0, 1) ? choose(1, 3) : choose(-3, -1);
      const index_t start = choose(-extent(axis) - 1, extent(axis) + 1);
      return result(operand.lazy.sliced(axis, {start, std::nullopt, step}),
                    view.sliced(axis, start, std::nullopt, step));
    }
    case 3: {
      index_list axes;
      for (index_t i = 0; i < rank; ++i)
        axes.insert(axes.begin() + choose(0, i), choose(0, 1) ? i : i - rank);
      return result(operand.lazy.permute_dims(dims(axes)), view.permuted(axes));
    }
    case 4:
      return result(operand.lazy.flip({axis}), view.flip({axis}));
    case 5: {
      const index_t place = choose(-rank - 1, rank);
      return rank > 5 ? operand : result(operand.lazy.expand_dims(place), view.expand_dims(place));
    }
    case 6: {
      dims wanted = operand.lazy.shape();
      for (auto& length : wanted)
        if (length == 1 && choose(0, 1)) length = choose(0, 8) ? choose(1, 4) : 0;
      if (rank < 5 && choose(0, 2) == 0) wanted.insert(0, choose(1, 3));
      return result(operand.lazy.broadcast_to(wanted), view.broadcast_to(test::as_list(wanted)));
    }
    case 7: {
      // The new shape has the same size: two factors and an axis of length 1.
      const index_t count = operand.lazy.size();
      index_t factor = count == 0 ? 3 : choose(1, 6);
      while (count % factor != 0) --factor;
      const dims shape{factor, 1, count / factor};
      return result(operand.lazy.reshape(choose(0, 1) && count > 0 ? dims{factor, 1, -1} : shape),
                    view.reshaped(test::as_list(shape)));
    }
    case 8: {
      if (extent(0) == 0) return operand;
      const index_t position = choose(-extent(0), extent(0) - 1);
      const auto picked = view.select(0, position);
      if (rank == 1)
        return result(operand.lazy.index({position, newaxis, ellipsis}), picked.expand_dims(0));
      return result(operand.lazy.index({position, newaxis, ellipsis, slice{.step = -1}}),
                    picked.flip({rank - 2}).expand_dims(0));
    }
    default: {
      // tile: positions modulo the extent.
      index_list times;
      index_list shape = view.shape;
      for (auto& length : shape) length *= times.emplace_back(choose(1, 2));
      auto tiled = view.gathered(shape, [&](index_list index) {
        for (std::size_t i = 0; i < index.size(); ++i) index[i] %= view.shape[i];
        return index;
      });
      return result(tile(operand.lazy, dims(times)), tiled);
    }
  }
}

both rearranged(random_choices& choose, const both& operand) {
  const index_t rank = operand.lazy.rank();
  if (rank == 0) return operand;
  const index_t axis = choose(0, rank - 1);
  if (choose(0, 1)) {
    const index_t times = choose(1, 3);
    index_list kept;
    for (index_t i = 0; i < operand.lazy.shape()[axis] * times; ++i) kept.push_back(i / times);
    return {repeat(operand.lazy, times, axis),
            {operand.oracle.type, operand.oracle.view.keeping(axis, kept), operand.oracle.numbers}};
  }
  // Concatenate three parts of one value in another order.
  const index_t n = operand.lazy.shape()[axis];
  const index_t a = choose(0, n), b = choose(a, n);
  index_list kept;
  for (index_t i = b; i < n; ++i) kept.push_back(i);
  for (index_t i = a; i-- > 0;) kept.push_back(i);
  for (index_t i = a; i < b; ++i) kept.push_back(i);
  const std::vector<expr> parts{operand.lazy.narrow(axis, b, n - b),
                                operand.lazy.narrow(axis, 0, a).flip({axis}),
                                operand.lazy.narrow(axis, a, b - a)};
  return {concat(parts, axis),
          {operand.oracle.type, operand.oracle.view.keeping(axis, kept), operand.oracle.numbers}};
}

both folded(random_choices& choose, const both& operand) {
  const index_t rank = operand.lazy.rank();
  dims axes;
  index_list kept_shape, full_shape;
  std::vector<bool> folds(static_cast<std::size_t>(rank), false);
  for (index_t axis = 0; axis < rank; ++axis) {
    folds[static_cast<std::size_t>(axis)] = choose(0, 1) == 0;
    if (folds[static_cast<std::size_t>(axis)]) axes.push_back(choose(0, 1) ? axis : axis - rank);
    else kept_shape.push_back(operand.lazy.shape()[axis]);
    full_shape.push_back(folds[static_cast<std::size_t>(axis)] ? 1 : operand.lazy.shape()[axis]);
  }
  const bool keep = choose(0, 1) == 0;
  const bool largest = choose(0, 1) == 0 && operand.lazy.size() > 0;
  const auto results = index_oracle::row_major(full_shape);
  std::vector<double> numbers(results.positions.size(), largest ? -1e300 : 0.0);
  std::size_t next = 0;
  test::for_each_index(operand.oracle.view.shape, [&](index_list index) {
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      if (folds[axis]) index[axis] = 0;
    double& to = numbers[static_cast<std::size_t>(results[index])];
    const double value = operand.oracle(next++);
    to = largest ? std::max(to, value) : to + value;
  });
  // Numbers stay where float32 and int32 hold them exactly.
  const dtype source_type = operand.oracle.type;
  const bool floating = source_type == dtype::float32 || source_type == dtype::float64 ||
                        source_type == dtype::float16 || source_type == dtype::bfloat16;
  for (double& number : numbers) {
    if (std::abs(number) > (source_type == dtype::float16 ? 30000 : 100000)) return operand;
    if (floating) number = held(source_type, number);
  }
  const dtype sum_type = floating ? operand.oracle.type : operand.lazy.dtype();
  const auto how = keep ? keepdims::yes : keepdims::no;
  const expr lazy = largest ? max(operand.lazy, axes, how) : sum(operand.lazy, axes, how);
  // Sums of integers are widened to 64 bits. The oracle need not distinguish signed from unsigned.
  dtype type = largest ? operand.oracle.type : floating ? sum_type : dtype::int64;
  expr value = lazy;
  if (lazy.dtype() != type) value = astype(lazy, type);
  return {value, make_listed(type, keep ? full_shape : kept_shape, std::move(numbers))};
}

both random_tree(random_choices& choose, const dims& shape, int depth) {
  if (depth == 0) return random_leaf(choose, test::random_broadcastable(choose, shape));
  both a = random_tree(choose, shape, depth - 1);
  switch (choose(0, 5)) {
    case 0:
    case 1: {
      both b = choose(0, 3) == 0 ? a : random_leaf(choose, a.lazy.shape());
      return binary(choose, a, b);
    }
    case 2:
    case 3:
      return viewed(choose, a);
    case 4:
      return rearranged(choose, a);
    default:
      return folded(choose, a);
  }
}

void expect_same(const tensor& got, const listed& wanted) {
  ASSERT_EQ(test::as_list(got.shape()), wanted.view.shape);
  ASSERT_EQ(got.dtype(), wanted.type);
  const auto numbers = numbers_of(got);
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], wanted(i)) << "at " << i;
}

TEST(Expr, RandomTreesMatchAnElementByElementEvaluator) {
  // Small expressions take a shorter way, except with an executor that reports.
  test::silent_sink sink;
  executor one({.threads = 1}), three({.threads = 3, .progress = &sink});
  for (std::uint64_t seed = 0; seed < test::cases(3000); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 5});
    const both tree = random_tree(choose, shape, static_cast<int>(choose(1, 7)));
    const executor::scope within(seed % 2 ? one : three);
    expect_same(eval(tree.lazy), tree.oracle);
    if (HasFatalFailure()) return;
  }
}

TEST(Expr, RandomTreesOfManyTilesMatch) {
  executor three({.threads = 3});
  const executor::scope within(three);
  for (std::uint64_t seed = 0; seed < test::cases(40); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const both tree = random_tree(choose, {choose(1, 3), choose(40, 90), choose(40, 90)},
                                  static_cast<int>(choose(1, 4)));
    if (tree.lazy.size() > 200000) continue;
    expect_same(eval(tree.lazy), tree.oracle);
    if (HasFatalFailure()) return;
  }
}

TEST(Expr, EvalIntoWritesAnyOutputAndConverts) {
  test::silent_sink sink;
  executor plain({.threads = 2}), reporting({.threads = 2, .progress = &sink});
  for (std::uint64_t seed = 0; seed < test::cases(500); ++seed) {
    SCOPED_TRACE(seed);
    const executor::scope within(seed % 2 ? plain : reporting);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 5});
    const both tree = random_tree(choose, shape, static_cast<int>(choose(0, 5)));
    const tensor out =
        choose(0, 1)
            ? test::random_tensor<double>(choose, tree.lazy.shape(), sharing::distinct)
            : test::random_tensor<std::int64_t>(choose, tree.lazy.shape(), sharing::distinct);
    auto wanted = tree.oracle;
    wanted.type = out.dtype();
    eval_into(out, tree.lazy);
    expect_same(out, wanted);
    if (HasFatalFailure()) return;
  }
}

// tape.2
TEST(Expr, EvalIntoReadsInputsAsTheyWereBefore) {
  test::silent_sink sink;
  executor plain({.threads = 2}), reporting({.threads = 2, .progress = &sink});
  for (std::uint64_t seed = 0; seed < test::cases(600); ++seed) {
    SCOPED_TRACE(seed);
    const executor::scope within(seed % 2 ? plain : reporting);
    random_choices choose(seed);
    const index_t n = choose(1, 6);
    const tensor whole =
        test::random_tensor<std::int32_t>(choose, {n + 2, n + 2}, sharing::distinct);
    const auto window = [&] {
      const tensor part = whole.narrow(0, choose(0, 2), n).narrow(1, choose(0, 2), n);
      return choose(0, 1) ? part.swapaxes(0, 1) : part.flip({choose(0, 1)});
    };
    const auto leaf = [&] {
      const tensor values = window();
      return both{values, make_listed(dtype::int32, {n, n}, numbers_of(values))};
    };
    both tree = leaf();
    if (choose(0, 1)) tree = rearranged(choose, tree);
    if (choose(0, 1)) tree = binary(choose, tree, tree);
    if (tree.lazy.shape() == dims{n, n}) tree = binary(choose, tree, leaf());
    if (choose(0, 3) == 0) tree = rearranged(choose, tree);
    if (!(tree.lazy.shape() == dims{n, n})) continue;
    const tensor out = window();
    eval_into(out, tree.lazy);
    auto wanted = tree.oracle;
    wanted.type = dtype::int32;
    expect_same(out, wanted);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace shale
