// Tests scans by functions of the caller. The oracle goes along the axis element by element. The
// scanned function depends on the order of the elements.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "shale/fold_axes.hpp"
#include "shale/mapped_file.hpp"
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
using test::sharing;

// The polynomial of some elements, sum * 3 + e for each, and the factor by which they multiply what
// comes before. It is associative, and not commutative.
struct polynomial {
  std::uint64_t factor;
  std::uint64_t sum;
};

constexpr polynomial no_elements{1, 0};

void take_in(polynomial& to, std::int32_t e) {
  to.factor *= 3;
  to.sum = to.sum * 3 + static_cast<std::uint64_t>(e);
}

void append_to(polynomial& to, const polynomial& other) {
  to.sum = to.sum * other.factor + other.sum;
  to.factor *= other.factor;
}

std::uint64_t sum_of(const polynomial& all) { return all.sum; }

void scan_into(const tensor& out, const tensor& values, index_t axis) {
  scan_axis_into(out, values, axis, no_elements, take_in, append_to, sum_of);
}

// The same, element by element.
std::vector<std::uint64_t> expected_of(const tensor& values, index_t axis) {
  std::size_t step = 1;
  for (index_t later = axis + 1; later < values.rank(); ++later)
    step *= static_cast<std::size_t>(values.shape()[later]);
  const auto extent = static_cast<std::size_t>(values.shape()[axis]);
  const auto elements = elements_of<std::int32_t>(values);
  std::vector<std::uint64_t> sums;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::uint64_t before = i / step % extent == 0 ? 0 : sums[i - step];
    sums.push_back(before * 3 + static_cast<std::uint64_t>(elements[i]));
  }
  return sums;
}

TEST(ScanAxis, MatchesAnIndexByIndexLoopOverRandomLayouts) {
  executor one({.threads = 1}), three({.threads = 3});
  for (std::uint64_t seed = 0; seed < test::cases(300); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape = choose(0, 7) == 0 ? test::random_shape(choose, {.axes_max = 3, .longest = 60})
                                   : test::random_shape(choose);
    if (shape.empty()) shape = {5};
    const index_t axis = choose(0, shape.size() - 1);
    const tensor values =
        random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, shape));
    const tensor out = random_tensor<std::uint64_t>(choose, shape, sharing::distinct);
    const auto expected = expected_of(values.broadcast_to(shape), axis);
    const executor::scope within(seed % 2 ? one : three);
    scan_into(out, values, choose(0, 1) == 0 ? axis : axis - shape.size());
    ASSERT_EQ(elements_of<std::uint64_t>(out), expected);
  }
}

// chain.1: lanes of several units, in memory, streamed, and by copies against storage order.
TEST(ScanAxis, HandsAccumulatorsFromUnitToUnit) {
  random_choices choose(2);
  const test::scratch_directory directory;
  const tensor values = random_tensor<std::int32_t>(choose, {layout({700, 300}), 700 * 300});
  storage bytes = create_file(directory / "numbers", values.size_bytes());
  std::memcpy(bytes.data(), values.storage().data(), bytes.size_bytes());
  const tensor file(bytes, dtype::int32, values.layout());
  for (const bool turned : {false, true})
    for (const index_t axis : {0, 1}) {
      const tensor seen = turned ? file.swapaxes(0, 1) : file;
      const auto expected = expected_of(seen, axis);
      for (const std::size_t memory_bytes : {std::size_t{1} << 30, std::size_t{64} << 10})
        for (const int threads : {1, 4}) {
          const tensor out = tensor::zeros(seen.shape(), dtype::uint64);
          test::run_on(executor({.threads = threads, .memory_bytes = memory_bytes}),
                       [&] { scan_into(out, seen, axis); });
          ASSERT_EQ(elements_of<std::uint64_t>(out), expected)
              << "turned " << turned << ", axis " << axis << ", " << memory_bytes << " bytes";
        }
    }
}

TEST(ScanAxis, MayReplaceItsOperand) {
  random_choices choose(3);
  const tensor x = random_tensor<std::int64_t>(choose, {200, 300}, sharing::distinct);
  auto expected = elements_of<std::int64_t>(x);
  for (std::size_t i = 300; i < expected.size(); ++i) expected[i] += expected[i - 300];
  const auto add_up = [](std::int64_t& to, std::int64_t e) { to += e; };
  const tensor sums = scan_axis(x, 0, std::int64_t{0}, add_up, add_up);
  EXPECT_EQ(sums.dtype(), dtype::int64);
  EXPECT_TRUE(sums.is_contiguous());
  scan_axis_into(x, x, 0, std::int64_t{0}, add_up, add_up);
  EXPECT_EQ(elements_of<std::int64_t>(x), expected);
  EXPECT_EQ(elements_of<std::int64_t>(sums), expected);
  scan_axis_into(x.flip({0}), x, 0, std::int64_t{0}, add_up, add_up);
  for (std::size_t i = 300; i < expected.size(); ++i) expected[i] += expected[i - 300];
  EXPECT_EQ(elements_of<std::int64_t>(x.flip({0})), expected);
}

TEST(ScanAxis, OfNothingStoresNothing) {
  for (const dims& shape : {dims{0}, dims{3, 0}, dims{0, 3}})
    scan_into(tensor::zeros(shape, dtype::uint64), tensor::zeros(shape, dtype::int32), -1);
}

// chain.3
TEST(ScanAxis, EndsWithTheFirstException) {
  executor four({.threads = 4});
  const executor::scope within(four);
  const tensor values = tensor::ones({400'000}, dtype::int32);
  const auto add_up = [](std::int64_t& to, std::int64_t other) { to += other; };
  for (const int at : {0, 30'000, 399'999}) {
    std::atomic<int> calls = 0;
    EXPECT_THROW(scan_axis(
                     values, 0, std::int64_t{0},
                     [&](std::int64_t& to, std::int32_t e) {
                       if (calls++ == at) throw std::runtime_error("stop");
                       to += e;
                     },
                     add_up),
                 std::runtime_error);
  }
  EXPECT_THROW(scan_axis(
                   values, 0, std::int64_t{0}, [](std::int64_t& to, std::int32_t e) { to += e; },
                   [](std::int64_t&, std::int64_t) { throw std::runtime_error("stop"); }),
               std::runtime_error);
  EXPECT_EQ(code_of([&] {
              scan_axis(
                  values, 0, std::int64_t{0},
                  [](std::int64_t&, std::int32_t) { executor::current().cancel(); }, add_up);
            }),
            errc::cancelled);
}

TEST(ScanAxis, IsRefusedAsOtherCallsAre) {
  const tensor values = tensor::zeros({3, 4}, dtype::int32);
  const tensor out = tensor::zeros({3, 4}, dtype::uint64);
  const auto result = [](const tensor& to, const tensor& from, index_t axis) {
    return code_of([&] { scan_into(to, from, axis); });
  };
  EXPECT_EQ(result(out, values, 1), errc{});
  EXPECT_EQ(result(out, values, 2), errc::invalid_argument);
  EXPECT_EQ(result(out, values, -3), errc::invalid_argument);
  EXPECT_EQ(result(out.select(0, 0).select(0, 0), values.select(0, 0).select(0, 0), 0),
            errc::invalid_argument);
  EXPECT_EQ(result(out.as_read_only(), values, 0), errc::access_denied);
  EXPECT_EQ(result(out.narrow(0, 0, 1), values, 0), errc::invalid_argument);
  EXPECT_EQ(result(values, values, 0), errc::invalid_argument) << "its dtype";
  EXPECT_EQ(result(out, out, 0), errc::invalid_argument) << "its dtype";
}

}  // namespace
}  // namespace shale
