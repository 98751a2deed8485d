// Tests functions over elements and their indices. The oracle computes the coordinates of each
// element from its number.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "parallel/pass/element_indices.hpp"
#include "shale/apply.hpp"
#include "shale/mapped_file.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;
using test::random_tensor;
using test::sharing;

// A number that tells the index, and the function that stores it beside what was there.
template <class Index>
std::int64_t number_told_by(const Index& index) {
  std::int64_t number = 0;
  for (const auto entry : index) number = number * 1000 + entry + 1;
  return number;
}

void store_indices(const tensor& out, const tensor& in) {
  apply_indexed([](const dims& index, std::int64_t& to,
                   std::int32_t from) { to += number_told_by(index) - from; },
                out, in);
}

// What store_indices makes of them.
std::vector<std::int64_t> expected_of(const tensor& out, const tensor& in) {
  auto expected = elements_of<std::int64_t>(out);
  const auto from = elements_of<std::int32_t>(in.broadcast_to(out.shape()));
  const auto shape = test::as_list(out.shape());
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] += number_told_by(test::coordinates_of(static_cast<index_t>(i), shape)) - from[i];
  return expected;
}

// indices.1
TEST(ApplyIndexed, TellsTheIndexOfEachElementOfRandomLayouts) {
  executor one({.threads = 1}), three({.threads = 3});
  for (std::uint64_t seed = 0; seed < test::cases(300); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = choose(0, 7) == 0
                           ? test::random_shape(choose, {.axes_max = 3, .longest = 60})
                           : test::random_shape(choose);
    const tensor out = random_tensor<std::int64_t>(choose, shape, sharing::distinct);
    const tensor in =
        random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, shape));
    const auto expected = expected_of(out, in);
    const executor::scope within(seed % 2 ? one : three);
    store_indices(out, in);
    ASSERT_EQ(elements_of<std::int64_t>(out), expected);
  }
}

// indices.1: by copies of files in different storage orders.
TEST(ApplyIndexed, TellsItInFilesAgainstStorageOrder) {
  const test::scratch_directory directory;
  int files = 0;
  const auto in_file = [&](const tensor& from) {
    storage bytes = create_file(directory / std::to_string(files++), from.storage().size_bytes());
    std::memcpy(bytes.data(), from.storage().data(), bytes.size_bytes());
    return tensor(bytes, from.dtype(), from.layout());
  };
  executor on({.threads = 2, .memory_bytes = 8 << 10});
  const executor::scope within(on);
  for (std::uint64_t seed = 0; seed < test::cases(40); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape{choose(60, 150), choose(1, 3), choose(60, 150)};
    const tensor out = in_file(random_tensor<std::int64_t>(choose, shape, sharing::distinct));
    const tensor in =
        in_file(random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, shape)));
    const auto expected = expected_of(out, in);
    store_indices(out, in);
    ASSERT_EQ(elements_of<std::int64_t>(out), expected);
  }
  EXPECT_GT(on.statistics().mapped_tiles, 0U);
}

TEST(ApplyIndexed, CountsAxesOfTheBroadcastOperands) {
  const tensor out = tensor::zeros({2, 3, 1}, dtype::int32);
  const tensor row = tensor::zeros({3, 1}, dtype::float32);
  std::atomic<int> calls = 0;
  apply_indexed(
      [&](dims index, std::int32_t& to, float) {
        ++calls;
        ASSERT_EQ(index.size(), 3);
        to = static_cast<std::int32_t>(10 * index[0] + index[1]);
      },
      out, row);
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(elements_of<std::int32_t>(out), (std::vector<std::int32_t>{0, 1, 2, 10, 11, 12}));
  const tensor one = tensor::zeros({}, dtype::int32);
  apply_indexed([](const dims& index, std::int32_t& to) { to = index.empty() ? 5 : 6; }, one);
  EXPECT_EQ(one.item(), scalar(5));
  apply_indexed([&](const dims&, std::int32_t&) { ++calls; }, tensor::zeros({4, 0}, dtype::int32));
  EXPECT_EQ(calls, 6);
}

TEST(ApplyIndexed, IsRefusedAndEndsAsApplyDoes) {
  const tensor out = tensor::zeros({3, 4}, dtype::float32);
  const auto store_first = [](const dims& index, float& to) { to = static_cast<float>(index[0]); };
  EXPECT_EQ(code_of([&] { apply_indexed(store_first, out.as_read_only()); }), errc::access_denied);
  EXPECT_EQ(code_of([&] { apply_indexed(store_first, tensor::zeros({3}, dtype::int32)); }),
            errc::invalid_argument);
  void (*none)(const dims&, float&) = nullptr;
  EXPECT_EQ(code_of([&] { apply_indexed(none, out); }), errc::invalid_argument);
  EXPECT_THROW(apply_indexed([](const dims&, float&) { throw std::runtime_error("stop"); }, out),
               std::runtime_error);
}

}  // namespace
}  // namespace shale
