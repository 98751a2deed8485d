// Random expression trees against an evaluator that holds every value as a list of numbers and
// computes element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <variant>

#include "shale/error.hpp"
#include "shale/expr.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::index_list;
using test::index_oracle;
using test::random_choices;
using test::sharing;

/// A value of the oracle: numbers in row-major order. All chosen so that doubles are exact.
struct listed {
  dtype type;
  index_oracle at;  // positions in `numbers`
  std::vector<double> numbers;

  double operator()(std::size_t i) const {
    return numbers[static_cast<std::size_t>(at.positions[i])];
  }
  std::size_t size() const { return at.positions.size(); }
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

/// The promotion of the dtypes above.
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

/// To `digits` significant binary digits, ties to even.
double rounded(double value, int digits) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(value, digits - exponent)), exponent - digits);
}

/// What a dtype makes of a number.
double held(dtype type, double value) {
  if (type == dtype::uint8) return value - 256 * std::floor(value / 256);
  if (type == dtype::float16) return rounded(value, 11);
  if (type == dtype::bfloat16) return rounded(value, 8);
  return value;
}

/// Far from float16's largest number, whatever is done to two of them.
bool moderate(const listed& values) {
  return std::all_of(values.numbers.begin(), values.numbers.end(),
                     [](double number) { return std::abs(number) < 16000; });
}

both binary(random_choices& choose, const both& a, const both& b) {
  const dims shape = broadcast_shapes(a.lazy.shape(), b.lazy.shape());
  const auto left = a.oracle.at.expand(test::as_list(shape));
  const auto right = b.oracle.at.expand(test::as_list(shape));
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
            // Doubled in the dtype of b alone, where that is exact.
            return x < y ? x : b.oracle.type == dtype::uint8 ? held(dtype::uint8, y + y) : y + y;
          })};
    default:
      return {cast(a.lazy >= b.lazy, dtype::int32),
              compute(dtype::int32, [](double x, double y) { return x >= y ? 1.0 : 0.0; })};
  }
}

both viewed(random_choices& choose, const both& of) {
  const index_t rank = of.lazy.rank();
  const auto with = [&](expr lazy, index_oracle at) {
    return both{std::move(lazy), listed{of.oracle.type, std::move(at), of.oracle.numbers}};
  };
  const auto& at = of.oracle.at;
  const auto extent = [&](index_t axis) { return of.lazy.shape()[axis]; };
  const index_t axis = rank > 0 ? choose(0, rank - 1) : 0;
  switch (rank == 0 ? choose(5, 7) : choose(0, 9)) {
    case 0: {
      const index_t start = choose(0, extent(axis)), length = choose(0, extent(axis) - start);
      return with(of.lazy.narrow(axis, start, length), at.narrow(axis, start, length));
    }
    case 1: {
      if (extent(axis) == 0) return of;
      const index_t position = choose(-extent(axis), extent(axis) - 1);
      return with(of.lazy.select(axis, position), at.select(axis, position));
    }
    case 2: {
      const index_t step = choose(0, 1) ? choose(1, 3) : choose(-3, -1);
      const index_t start = choose(-extent(axis) - 1, extent(axis) + 1);
      return with(of.lazy.sliced(axis, {start, std::nullopt, step}),
                  at.sliced(axis, start, std::nullopt, step));
    }
    case 3: {
      index_list axes;
      for (index_t i = 0; i < rank; ++i)
        axes.insert(axes.begin() + choose(0, i), choose(0, 1) ? i : i - rank);
      return with(of.lazy.permute_dims(dims(axes)), at.permuted(axes));
    }
    case 4:
      return with(of.lazy.flip({axis}), at.flip({axis}));
    case 5: {
      const index_t where = choose(-rank - 1, rank);
      return rank > 5 ? of : with(of.lazy.unsqueeze(where), at.unsqueeze(where));
    }
    case 6: {
      dims wanted = of.lazy.shape();
      for (auto& length : wanted)
        if (length == 1 && choose(0, 1)) length = choose(0, 8) ? choose(1, 4) : 0;
      if (rank < 5 && choose(0, 2) == 0) wanted.insert(0, choose(1, 3));
      return with(of.lazy.expand(wanted), at.expand(test::as_list(wanted)));
    }
    case 7: {
      // Any shape of the same size: two factors and a one.
      const index_t count = of.lazy.size();
      index_t factor = count == 0 ? 3 : choose(1, 6);
      while (count % factor != 0) --factor;
      const dims shape{factor, 1, count / factor};
      return with(of.lazy.reshape(choose(0, 1) && count > 0 ? dims{factor, 1, -1} : shape),
                  at.reshaped(test::as_list(shape)));
    }
    case 8: {
      if (extent(0) == 0) return of;
      const index_t position = choose(-extent(0), extent(0) - 1);
      const auto picked = at.select(0, position);
      if (rank == 1) return with(of.lazy.index({position, newaxis, ellipsis}), picked.unsqueeze(0));
      return with(of.lazy.index({position, newaxis, ellipsis, slice{.step = -1}}),
                  picked.flip({rank - 2}).unsqueeze(0));
    }
    default: {
      // tile: positions modulo the extent.
      index_list times;
      index_list shape = at.shape;
      for (auto& length : shape) length *= times.emplace_back(choose(1, 2));
      auto tiled = at.gathered(shape, [&](index_list index) {
        for (std::size_t i = 0; i < index.size(); ++i) index[i] %= at.shape[i];
        return index;
      });
      return with(tile(of.lazy, dims(times)), tiled);
    }
  }
}

both rearranged(random_choices& choose, const both& of) {
  const index_t rank = of.lazy.rank();
  if (rank == 0) return of;
  const index_t axis = choose(0, rank - 1);
  if (choose(0, 1)) {
    const index_t times = choose(1, 3);
    index_list kept;
    for (index_t i = 0; i < of.lazy.shape()[axis] * times; ++i) kept.push_back(i / times);
    return {repeat(of.lazy, times, axis),
            {of.oracle.type, of.oracle.at.keeping(axis, kept), of.oracle.numbers}};
  }
  // Three parts of one value, in another order.
  const index_t n = of.lazy.shape()[axis];
  const index_t a = choose(0, n), b = choose(a, n);
  index_list kept;
  for (index_t i = b; i < n; ++i) kept.push_back(i);
  for (index_t i = a; i-- > 0;) kept.push_back(i);
  for (index_t i = a; i < b; ++i) kept.push_back(i);
  const std::vector<expr> parts{of.lazy.narrow(axis, b, n - b),
                                of.lazy.narrow(axis, 0, a).flip({axis}),
                                of.lazy.narrow(axis, a, b - a)};
  return {concat(parts, axis),
          {of.oracle.type, of.oracle.at.keeping(axis, kept), of.oracle.numbers}};
}

both folded(random_choices& choose, const both& of) {
  const index_t rank = of.lazy.rank();
  dims axes;
  index_list kept_shape, full_shape;
  std::vector<bool> folds(static_cast<std::size_t>(rank), false);
  for (index_t axis = 0; axis < rank; ++axis) {
    folds[static_cast<std::size_t>(axis)] = choose(0, 1) == 0;
    if (folds[static_cast<std::size_t>(axis)]) axes.push_back(choose(0, 1) ? axis : axis - rank);
    else kept_shape.push_back(of.lazy.shape()[axis]);
    full_shape.push_back(folds[static_cast<std::size_t>(axis)] ? 1 : of.lazy.shape()[axis]);
  }
  const bool keep = choose(0, 1) == 0;
  const bool largest = choose(0, 1) == 0 && of.lazy.size() > 0;
  const auto results = index_oracle::row_major(full_shape);
  std::vector<double> numbers(results.positions.size(), largest ? -1e300 : 0.0);
  std::size_t next = 0;
  test::for_each_index(of.oracle.at.shape, [&](index_list index) {
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      if (folds[axis]) index[axis] = 0;
    double& to = numbers[static_cast<std::size_t>(results[index])];
    const double value = of.oracle(next++);
    to = largest ? std::max(to, value) : to + value;
  });
  // Numbers stay where float32 and int32 hold them exactly.
  const dtype from = of.oracle.type;
  const bool floating = from == dtype::float32 || from == dtype::float64 ||
                        from == dtype::float16 || from == dtype::bfloat16;
  for (double& number : numbers) {
    if (std::abs(number) > (from == dtype::float16 ? 30000 : 100000)) return of;
    if (floating) number = held(from, number);
  }
  const dtype sum_type = floating ? of.oracle.type : of.lazy.dtype();
  const auto how = keep ? keep_axes::yes : keep_axes::no;
  const expr lazy = largest ? max(of.lazy, axes, how) : sum(of.lazy, axes, how);
  // Sums of integers widen to 64 bits, signed or not: dtypes of the oracle need not tell them
  // apart.
  dtype type = largest ? of.oracle.type : floating ? sum_type : dtype::int64;
  expr value = lazy;
  if (lazy.dtype() != type) value = cast(lazy, type);
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
  ASSERT_EQ(test::as_list(got.shape()), wanted.at.shape);
  ASSERT_EQ(got.dtype(), wanted.type);
  const auto numbers = numbers_of(got);
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], wanted(i)) << "at " << i;
}

TEST(Expr, RandomTreesMatchAnElementByElementEvaluator) {
  executor one({.threads = 1}), three({.threads = 3});
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.most_axes = 4, .longest = 5});
    const both tree = random_tree(choose, shape, static_cast<int>(choose(1, 7)));
    expect_same(eval(tree.lazy, seed % 2 ? &one : &three), tree.oracle);
    if (HasFatalFailure()) return;
  }
}

TEST(Expr, RandomTreesOfManyTilesMatch) {
  executor three({.threads = 3});
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const both tree = random_tree(choose, {choose(1, 3), choose(40, 90), choose(40, 90)},
                                  static_cast<int>(choose(1, 4)));
    if (tree.lazy.size() > 200000) continue;
    expect_same(eval(tree.lazy, &three), tree.oracle);
    if (HasFatalFailure()) return;
  }
}

TEST(Expr, EvalIntoWritesAnyOutputAndConverts) {
  executor two({.threads = 2});
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.most_axes = 4, .longest = 5});
    const both tree = random_tree(choose, shape, static_cast<int>(choose(0, 5)));
    const tensor out =
        choose(0, 1)
            ? test::random_tensor<double>(choose, tree.lazy.shape(), sharing::distinct)
            : test::random_tensor<std::int64_t>(choose, tree.lazy.shape(), sharing::distinct);
    auto wanted = tree.oracle;
    wanted.type = out.dtype();
    eval_into(out, tree.lazy, &two);
    expect_same(out, wanted);
    if (HasFatalFailure()) return;
  }
}

// tape.2
TEST(Expr, EvalIntoReadsInputsAsTheyWereBefore) {
  executor two({.threads = 2});
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const index_t n = choose(1, 6);
    const tensor whole =
        test::random_tensor<std::int32_t>(choose, {n + 2, n + 2}, sharing::distinct);
    const auto window = [&] {
      const tensor part = whole.narrow(0, choose(0, 2), n).narrow(1, choose(0, 2), n);
      return choose(0, 1) ? part.transpose(0, 1) : part.flip({choose(0, 1)});
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
    eval_into(out, tree.lazy, &two);
    auto wanted = tree.oracle;
    wanted.type = dtype::int32;
    expect_same(out, wanted);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace shale
