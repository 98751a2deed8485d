// Tests tensors with more than 2^31 elements, in sparse files: no index may have only 32 bits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "shale/apply.hpp"
#include "shale/mapped_file.hpp"
#include "storage/files/file_descriptor.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

constexpr index_t count = (index_t{1} << 31) + 12345;

// The elements that are not zero lie around the limits of 31 bits and at the ends.
const std::map<index_t, std::int8_t> marks{
    {0, 1},
    {4095, 2},
    {(index_t{1} << 31) - 1, 3},
    {index_t{1} << 31, -4},
    {(index_t{1} << 31) + 1, 5},
    {(index_t{1} << 30) + 7, 6},
    {count - 1, 7},
};

class Large : public testing::Test {
 protected:
  void SetUp() override {
    const detail::file_descriptor file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(file.get(), count), 0);
    for (const auto& [at, value] : marks) ASSERT_EQ(::pwrite(file.get(), &value, 1, at), 1);
  }

  static long long sum_of(const tensor& values) {
    return reduce(
        values, 0LL, [](long long& to, std::int8_t x) { to += x; },
        [](long long& to, long long other) { to += other; });
  }

  static long long sum_of_marks(auto counts) {
    long long sum = 0;
    for (const auto& [at, value] : marks)
      if (counts(at)) sum += value;
    return sum;
  }

  test::scratch_directory directory;
  const std::string path = directory / "sparse";
  executor on{{.threads = 2, .memory_bytes = std::size_t{64} << 20}};
  executor::scope within{on};
};

TEST_F(Large, EveryElementIsReadOnce) {
  const tensor values(map_file(path), dtype::int8, layout({count}));
  EXPECT_EQ(sum_of(values), sum_of_marks([](index_t) { return true; }));
  EXPECT_EQ(sum_of(values.flip().sliced(0, {.step = 3})),
            sum_of_marks([](index_t at) { return (count - 1 - at) % 3 == 0; }));
  std::atomic<index_t> seen = 0, marked = 0;
  apply(
      [&](std::int8_t x) {
        if (x != 0) marked.fetch_add(1);
      },
      values);
  EXPECT_EQ(marked, static_cast<index_t>(marks.size()));
  for_each_segment<const std::int8_t>(
      [&](std::span<const std::int8_t> part) { seen += static_cast<index_t>(part.size()); },
      values);
  EXPECT_EQ(seen, count);
}

TEST_F(Large, BroadcastIndexSpacesMayBeLargerThanAnyOperand) {
  // The 3 x 2^30 positions have 2^30 stored bytes and three numbers.
  constexpr index_t n = index_t{1} << 30;
  const tensor values(map_file(path, {.bytes = n}), dtype::int8, layout({1, n}));
  const tensor weights =
      tensor::of({std::int8_t{1}, std::int8_t{10}, std::int8_t{100}}).view({3, 1});
  std::atomic<long long> sum = 0;
  apply(
      [&](std::int8_t x, std::int8_t w) {
        if (x != 0) sum.fetch_add(static_cast<long long>(x) * w);
      },
      values.broadcast_to({3, n}), weights.broadcast_to({3, n}));
  EXPECT_EQ(sum, 111 * sum_of_marks([](index_t at) { return at < n; }));
}

TEST_F(Large, EveryElementIsWrittenOnce) {
  const std::string out_path = directory / "out";
  {
    const tensor from(map_file(path), dtype::int8, layout({count}));
    const tensor to(create_file(out_path, static_cast<std::size_t>(count)), dtype::int8,
                    layout({count}));
    apply_into(
        to, [](std::int8_t x) { return static_cast<std::int8_t>(x + 9); }, from);
  }
  const detail::file_descriptor file(::open(out_path.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::int8_t> piece(std::size_t{4} << 20);
  const std::vector<std::int8_t> plain(piece.size(), 9);
  index_t wrong = 0;
  for (index_t at = 0; at < count; at += static_cast<index_t>(piece.size())) {
    const auto bytes =
        static_cast<std::size_t>(std::min<index_t>(static_cast<index_t>(piece.size()), count - at));
    ASSERT_EQ(::pread(file.get(), piece.data(), bytes, at), static_cast<ssize_t>(bytes));
    // The marks are removed, so that all other elements must be 9.
    for (auto mark = marks.lower_bound(at);
         mark != marks.end() && mark->first < at + static_cast<index_t>(bytes); ++mark)
      piece[static_cast<std::size_t>(mark->first - at)] -= mark->second;
    wrong += !std::equal(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(bytes),
                         piece.begin());
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace shale
