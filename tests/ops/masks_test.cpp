// Tests what masks select: over random layouts, dtypes and budgets. The oracle goes through the
// elements one by one.
#include "shale/masks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "support/coordinates.hpp"
#include "support/counted_tiles.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::as_list;
using test::code_of;
using test::coordinates_of;
using test::elements_of;
using test::index_list;
using test::random_choices;

/// A mask of that shape in which about one of `rarity` elements is true.
tensor random_mask(random_choices& choose, const dims& shape, index_t rarity) {
  const tensor mask = test::random_tensor<std::uint8_t>(choose, shape, test::sharing::distinct);
  for (const auto position : test::positions_of(mask))
    const_cast<std::byte*>(mask.storage().data())[position] =
        choose(1, rarity) == 1 ? std::byte{1} : std::byte{0};
  return tensor(mask.storage(), dtype::boolean, mask.layout());
}

/// The numbers of the true elements, in row-major order.
index_list numbers_of(const tensor& mask) {
  index_list numbers;
  index_t number = 0;
  for (const std::uint8_t element :
       elements_of<std::uint8_t>(tensor(mask.storage(), dtype::uint8, mask.layout()))) {
    if (element != 0) numbers.push_back(number);
    ++number;
  }
  return numbers;
}

template <class T>
class Masks : public testing::Test {};
using element_list = testing::Types<std::int8_t, std::int16_t, float, double, std::complex<double>>;
TYPED_TEST_SUITE(Masks, element_list);

TYPED_TEST(Masks, SelectElementsInRowMajorOrder) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 8});
    const tensor values = test::random_tensor<T>(choose, shape);
    const tensor mask = random_mask(choose, shape, choose(1, 5));
    const auto elements = elements_of<T>(values);
    std::vector<T> wanted;
    for (const index_t number : numbers_of(mask))
      wanted.push_back(elements[static_cast<std::size_t>(number)]);
    ASSERT_EQ(elements_of<T>(masked_select(values, mask)), wanted);
    // A little budget cuts the operands into slabs.
    executor small({.threads = 2, .memory_bytes = 1500});
    const executor::scope within(small);
    ASSERT_EQ(elements_of<T>(masked_select(values, mask)), wanted);

    const tensor filled = eval(masked_fill(values, mask, 7));
    ASSERT_EQ(filled.dtype(), values.dtype());
    auto replaced = elements;
    for (const index_t number : numbers_of(mask))
      replaced[static_cast<std::size_t>(number)] = static_cast<T>(7.0F);
    ASSERT_EQ(elements_of<T>(filled), replaced);

    const tensor out = test::random_tensor<T>(choose, shape, test::sharing::distinct);
    auto scattered = elements_of<T>(out);
    const tensor more = test::random_tensor<T>(choose, {static_cast<index_t>(wanted.size()) + 3});
    std::size_t next = 0;
    for (const index_t number : numbers_of(mask))
      scattered[static_cast<std::size_t>(number)] = elements_of<T>(more)[next++];
    masked_scatter(out, mask, more);
    ASSERT_EQ(elements_of<T>(out), scattered);
  }
}

TEST(Nonzeros, HaveTheirCoordinates) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 12});
    if (shape.empty()) continue;
    const tensor mask = random_mask(choose, shape, choose(1, 5));
    std::vector<index_list> wanted(static_cast<std::size_t>(shape.size()));
    index_list rows;
    for (const index_t number : numbers_of(mask)) {
      const index_list at = coordinates_of(number, as_list(shape));
      for (std::size_t axis = 0; axis < at.size(); ++axis) wanted[axis].push_back(at[axis]);
      rows.insert(rows.end(), at.begin(), at.end());
    }
    for (const std::size_t budget : {std::size_t{1} << 30, std::size_t{300}}) {
      executor on({.threads = 2, .memory_bytes = budget});
      const executor::scope within(on);
      const auto found = nonzero(mask);
      ASSERT_EQ(found.size(), wanted.size());
      for (std::size_t axis = 0; axis < wanted.size(); ++axis)
        ASSERT_EQ(elements_of<std::int64_t>(found[axis]), wanted[axis]);
      const tensor matrix = argwhere(mask);
      ASSERT_EQ(matrix.shape(), dims({static_cast<index_t>(wanted[0].size()), shape.size()}));
      ASSERT_EQ(elements_of<std::int64_t>(matrix), rows);
    }
  }
}

// Blocks of a mask go to several threads, and begin in the middle of a row.
TEST(Nonzeros, OfManyElementsAreTheSameForAnyNumberOfThreads) {
  const index_t rows = 300, columns = 3001;
  const tensor values = eval(arange(rows * columns).reshape({rows, columns}));
  const expr mask = expr(values) % 7 == 3;
  index_list wanted;
  for (index_t number = 3; number < rows * columns; number += 7) wanted.push_back(number);
  for (const int threads : {1, 2, 4}) {
    for (const std::size_t budget : {std::size_t{1} << 30, std::size_t{1} << 16}) {
      executor on({.threads = threads, .memory_bytes = budget});
      const executor::scope within(on);
      ASSERT_EQ(elements_of<std::int64_t>(masked_select(values, mask)), wanted);
      const auto found = nonzero(mask);
      ASSERT_EQ(elements_of<std::int64_t>(eval(expr(found[0]) * columns + expr(found[1]))), wanted);
    }
  }
}

TEST(Nonzeros, CountsAnyDtypeAndShape) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const tensor values = tensor::of<double>({0, -0.0, none, 2});
  EXPECT_EQ(elements_of<std::int64_t>(nonzero(values)[0]), (index_list{2, 3}));
  EXPECT_EQ(elements_of<double>(masked_select(values, expr(values) == 2)), std::vector<double>{2});
  EXPECT_EQ(masked_select(3.5, true).shape(), dims({1}));
  EXPECT_EQ(masked_select(3.5, false).shape(), dims({0}));
  EXPECT_EQ(argwhere(3.5).shape(), dims({1, 0}));
  EXPECT_EQ(argwhere(0).shape(), dims({0, 0}));
  EXPECT_EQ(code_of([] { nonzero(1); }), errc::invalid_argument);
  // A mask of a row selects columns.
  const tensor matrix = eval(arange(6).reshape({2, 3}));
  const tensor columns = tensor::of<bool>({true, false, true});
  EXPECT_EQ(elements_of<std::int64_t>(masked_select(matrix, columns)), (index_list{0, 2, 3, 5}));
  EXPECT_EQ(code_of([&] {
              masked_select(matrix, tensor::of<bool>({true, false}));
            }),
            errc::invalid_argument);
}

TEST(MaskedFill, RefusesNumbersThatTheDtypeCannotHold) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const tensor mask = tensor::of<bool>({true, false});
  const tensor bytes = tensor::of<std::uint8_t>({1, 2}), truths = tensor::of<bool>({false, false});
  const tensor singles = tensor::of({1.f, 2.f});
  const auto refuses = [&](const tensor& a, const expr& value) {
    return code_of([&] { masked_fill(a, mask, value); }) == errc::invalid_argument;
  };
  EXPECT_TRUE(refuses(bytes, 300));
  EXPECT_TRUE(refuses(bytes, -1));
  EXPECT_TRUE(refuses(bytes, 2.5));
  EXPECT_TRUE(refuses(bytes, none));
  EXPECT_TRUE(refuses(truths, 2));
  EXPECT_TRUE(refuses(singles, 1e300));
  const auto filled = [&](const tensor& a, const expr& value) {
    return eval(masked_fill(a, mask, value)).select(0, 0).item();
  };
  EXPECT_EQ(filled(bytes, 255), scalar(255));
  EXPECT_EQ(filled(bytes, 7.0), scalar(7));
  EXPECT_EQ(filled(truths, 1), scalar(true));
  EXPECT_TRUE(std::isnan(filled(singles, none).as<double>()));
  // Elements of tensors are converted.
  EXPECT_EQ(filled(bytes, tensor::of<std::int32_t>({300, 0})), scalar(44));
}

TEST(MaskedScatter, ChangesNothingWithTooFewValues) {
  const tensor out = eval(arange(4));
  const tensor mask = tensor::of<bool>({true, true, false, true});
  EXPECT_EQ(code_of([&] {
              masked_scatter(out, mask, tensor::of<std::int64_t>({1, 2}));
            }),
            errc::invalid_argument);
  EXPECT_EQ(elements_of<std::int64_t>(out), (index_list{0, 1, 2, 3}));
  EXPECT_EQ(code_of([&] { masked_scatter(out.narrow(0, 0, 1).broadcast_to({4}), mask, 1); }),
            errc::invalid_argument);
  // The operands may be views of the output.
  masked_scatter(out, mask, out.flip());
  EXPECT_EQ(elements_of<std::int64_t>(out), (index_list{3, 2, 2, 1}));
  const tensor one = tensor::full({}, 5, dtype::int64);
  masked_scatter(one, true, 6);
  EXPECT_EQ(one.item().as<int>(), 6);
}

// Reductions, scans, and operands of generators: each is computed once, not for each slab.
TEST(Masks, InSlabsComputeWhatTheyDependOnOnce) {
  const index_t tiles = 60, size = tiles * 100;
  const auto source = std::make_shared<test::counted_tiles>(size);
  const expr x(source);
  const tensor whole = eval(x);
  const tensor order = eval(arange(size - 1, -1, -1));
  const std::vector<expr> parts{cumulative_sum(x), x};
  const struct {
    expr values, mask;
  } cases[] = {{x, abs(x - mean(x)) > stddev(x)},
               {cumulative_sum(x), x > max(x) / 2},
               {take(x + 1, order) * 2, take(x, order) > mean(x)},
               {concat(parts, 0), concat(parts, 0) % 3 == 1},
               {repeat(x, 2, 0), tile(x, {2}) > mean(x)}};
  for (const auto& operands : cases) {
    const expr &values = operands.values, &mask = operands.mask;
    executor large({.threads = 2, .memory_bytes = std::size_t{1} << 30});
    executor small({.threads = 2, .memory_bytes = 6000});
    const auto selected = [&](executor& on) {
      const executor::scope within(on);
      return elements_of<std::int64_t>(masked_select(values, mask));
    };
    const auto wanted = selected(large);
    ASSERT_FALSE(wanted.empty());
    source->loads = 0;
    EXPECT_EQ(selected(small), wanted);
    EXPECT_LT(source->loads, 12 * tiles);
    const executor::scope within(large);
    const auto places = elements_of<std::int64_t>(nonzero(mask)[0]);
    const executor::scope inside(small);
    source->loads = 0;
    EXPECT_EQ(elements_of<std::int64_t>(nonzero(mask)[0]), places);
    EXPECT_LT(source->loads, 12 * tiles);
  }
}

TEST(Masks, OfFilesLargerThanTheBudgetSelectInSlabs) {
  test::scratch_directory directory;
  storage bytes = create_file(directory / "a", std::size_t{4} << 20);
  const tensor mapped(bytes, dtype::int32, layout({1024, 1024}));
  eval_into(mapped, astype(arange(1 << 20).reshape({1024, 1024}), dtype::int32));
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  const tensor found = masked_select(mapped, expr(mapped) % 1000 == 1);
  ASSERT_EQ(found.size(), 1049);
  for (index_t k = 0; k < found.size(); ++k)
    ASSERT_EQ(found.select(0, k).item().as<index_t>(), k * 1000 + 1);
}

}  // namespace
}  // namespace shale
