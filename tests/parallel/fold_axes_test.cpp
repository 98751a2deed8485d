// Tests reductions along axes by functions of the caller. The oracle goes through the elements one
// by one.
#include "shale/fold_axes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "shale/mapped_file.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;
using test::random_tensor;

// How many elements there were, and the largest.
struct seen_elements {
  std::int64_t count;
  std::int32_t largest;
};

constexpr seen_elements nothing_seen{0, -7};

tensor told_by(const tensor& values, const dims& axes) {
  return reduce_axes(
      values, axes, nothing_seen,
      [](seen_elements& to, std::int32_t e) {
        ++to.count;
        to.largest = std::max(to.largest, e);
      },
      [](seen_elements& to, const seen_elements& other) {
        to.count += other.count;
        to.largest = std::max(to.largest, other.largest);
      },
      [](const seen_elements& all) { return 1000 * all.count + all.largest; });
}

// The same, element by element.
std::vector<std::int64_t> expected_of(const tensor& values, const std::vector<index_t>& axes) {
  const test::index_list shape = test::as_list(values.shape());
  test::index_list kept = shape;
  for (const index_t axis : axes)
    kept[static_cast<std::size_t>(axis < 0 ? axis + values.rank() : axis)] = 1;
  std::vector<seen_elements> seen(static_cast<std::size_t>(test::count_of(kept)), nothing_seen);
  const auto elements = elements_of<std::int32_t>(values);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    test::index_list at = test::coordinates_of(static_cast<index_t>(i), shape);
    for (std::size_t axis = 0; axis < at.size(); ++axis) at[axis] %= kept[axis];
    seen_elements& to = seen[test::number_of(at, kept)];
    ++to.count;
    to.largest = std::max(to.largest, elements[i]);
  }
  std::vector<std::int64_t> results;
  for (const seen_elements& all : seen) results.push_back(1000 * all.count + all.largest);
  return results;
}

std::vector<index_t> some_axes(random_choices& choose, index_t rank) {
  std::vector<index_t> axes;
  for (index_t axis = 0; axis < rank; ++axis)
    if (choose(0, 1) == 0)
      axes.insert(axes.begin() + choose(0, static_cast<index_t>(axes.size())),
                  choose(0, 1) == 0 ? axis : axis - rank);
  return axes;
}

TEST(ReduceAxes, MatchesAnIndexByIndexLoopOverRandomLayouts) {
  executor one({.threads = 1}), three({.threads = 3});
  for (std::uint64_t seed = 0; seed < test::cases(300); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = choose(0, 7) == 0
                           ? test::random_shape(choose, {.axes_max = 3, .longest = 60})
                           : test::random_shape(choose);
    const tensor values = random_tensor<std::int32_t>(choose, shape);
    const std::vector<index_t> axes = some_axes(choose, shape.size());
    const executor::scope within(seed % 2 ? one : three);
    const tensor got = told_by(values, dims(axes));
    EXPECT_EQ(got.rank(), shape.size() - static_cast<index_t>(axes.size()));
    EXPECT_EQ(got.dtype(), dtype::int64);
    ASSERT_EQ(elements_of<std::int64_t>(got), expected_of(values, axes));
  }
}

TEST(ReduceAxes, OfNoElementsFinishTheIdentity) {
  const tensor nothing = tensor::zeros({3, 0, 5000}, dtype::int32);
  EXPECT_EQ(elements_of<std::int64_t>(told_by(nothing, {1})), std::vector<std::int64_t>(15000, -7));
  EXPECT_EQ(told_by(nothing, {0}).shape(), dims({0, 5000}));
  EXPECT_EQ(told_by(nothing, {0, 1, 2}).item(), scalar(-7));
  EXPECT_EQ(told_by(tensor::full({}, 4, dtype::int32), {}).item(), scalar(1004));
}

// A fraction that loses bits in any other order.
float told_to_bits(float to, float e) { return to * 0.7F + 1 / (e + 0.3F); }

// plan.2, way.1
TEST(ReduceAxes, HaveTheSameBitsForAnyThreadsAndBudget) {
  random_choices choose(6);
  const test::scratch_directory directory;
  for (const bool turned : {false, true}) {
    const tensor values = random_tensor<float>(choose, {layout({300, 500}), 300 * 500});
    storage bytes = create_file(directory / (turned ? "turned" : "plain"), values.size_bytes());
    std::memcpy(bytes.data(), values.storage().data(), bytes.size_bytes());
    tensor file(bytes, dtype::float32, values.layout());
    if (turned) file = file.swapaxes(0, 1);
    for (const dims& axes : {dims{0}, dims{1}, dims{0, 1}}) {
      const auto results = [&](int threads, std::size_t memory_bytes) {
        return test::run_on(executor({.threads = threads, .memory_bytes = memory_bytes}), [&] {
          return elements_of<float>(reduce_axes(
              file, axes, 0.0F, [](float& to, float e) { to = told_to_bits(to, e); },
              [](float& to, float other) { to = told_to_bits(to, other); }));
        });
      };
      const auto expected = results(1, std::size_t{1} << 30);
      EXPECT_EQ(results(4, std::size_t{1} << 30), expected);
      EXPECT_EQ(results(3, 64 << 10), expected);
      EXPECT_EQ(results(1, 8 << 10), expected);
    }
  }
}

TEST(ReduceAxes, HoldAccumulatorsOfAnySize) {
  struct alignas(64) wide {
    double sums[20];
  };
  const tensor values = tensor::ones({70, 90}, dtype::float64);
  const tensor got = reduce_axes(
      values, {0}, wide{},
      [](wide& to, double e) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&to) % 64, 0U);
        for (double& sum : to.sums) sum += e;
      },
      [](wide& to, const wide& other) {
        for (int i = 0; i < 20; ++i) to.sums[i] += other.sums[i];
      },
      [](const wide& all) { return all.sums[3] == 70 && all.sums[19] == 70; });
  EXPECT_EQ(got.dtype(), dtype::boolean);
  EXPECT_EQ(elements_of<std::uint8_t>(got), std::vector<std::uint8_t>(90, 1));
}

TEST(ReduceAxes, AreRefusedAndEndAsOtherCallsDo) {
  const tensor values = tensor::zeros({200, 300}, dtype::int32);
  const auto code_for = [&](const dims& axes) { return code_of([&] { told_by(values, axes); }); };
  EXPECT_EQ(code_for({2}), errc::invalid_argument);
  EXPECT_EQ(code_for({-3}), errc::invalid_argument);
  EXPECT_EQ(code_for({1, -1}), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { told_by(tensor::zeros({3}, dtype::int64), {0}); }),
            errc::invalid_argument);
  void (*none)(int&, int) = nullptr;
  const auto add_up = [](int& to, int e) { to += e; };
  EXPECT_EQ(code_of([&] { reduce_axes(values, {0}, 0, none, add_up); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { reduce_axes(values, {0}, 0, add_up, none); }), errc::invalid_argument);
  const auto stop = [](int&, int) { throw std::runtime_error("stop"); };
  EXPECT_THROW(reduce_axes(values, {0}, 0, stop, add_up), std::runtime_error);
  EXPECT_THROW(
      reduce_axes(values, {0}, 0, add_up, add_up, [](int) -> int { throw std::bad_alloc(); }),
      std::bad_alloc);
  executor on({.threads = 1});
  const executor::scope within(on);
  const tensor large = tensor::zeros({1000, 1000}, dtype::int32);
  EXPECT_EQ(code_of([&] {
              reduce_axes(
                  large, {0, 1}, 0, [](int&, int) { executor::current().cancel(); }, add_up);
            }),
            errc::cancelled);
}

TEST(ReduceAxes, CountWhatTheyReadAndWrite) {
  executor on({.threads = 2});
  const executor::scope within(on);
  told_by(tensor::zeros({30, 40}, dtype::int32), {0});
  EXPECT_EQ(on.statistics().passes, 1U);
  EXPECT_EQ(on.statistics().bytes_read, 4800U);
  EXPECT_EQ(on.statistics().bytes_written, 320U);
}

}  // namespace
}  // namespace shale
