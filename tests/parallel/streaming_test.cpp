// Tests calls over files that are not in the page cache and exceed the memory budget many times. A
// process of its own makes each call.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shale/apply.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "support/failures.hpp"
#include "support/holds_once.hpp"
#include "support/instrumented.hpp"

namespace shale {
namespace {

constexpr long budget_mib = 16;
constexpr std::int64_t side = test::instrumented ? 4096 : 8192;
constexpr std::int64_t elements = side * side;
constexpr std::int64_t file_bytes = elements * 4;  // 16 budgets, or 4 in builds with slow loops

// With gaps, one row of so many is visited.
constexpr std::size_t row_bytes = std::size_t{64} << 10;
constexpr std::int64_t row_elements = row_bytes / 4;
constexpr std::int64_t row_step = 4;

tensor every_fourth_row(const storage& bytes) {
  return tensor(bytes, dtype::int32, layout({elements / row_elements, row_elements}))
      .sliced(0, {.step = row_step});
}

std::int32_t value_at(std::int64_t i) {
  return static_cast<std::int32_t>((static_cast<std::uint64_t>(i) * 2654435761u) % 1000003);
}

// Whether a file leaves memory.
bool evict_all(const storage& bytes) {
  return test::holds_once([&] {
    bytes.evict({0, bytes.size_bytes()}, eviction::system);
    return bytes.resident_bytes() == 0;
  });
}

struct outcome {
  unsigned long long windows = 0;
  unsigned long long dropped = 0;
  long peak_resident_kib = 0;
  long long result = 0;
};

class Streaming : public testing::Test {
 protected:
  void SetUp() override {
    const char* where = std::getenv("TMPDIR");
    folder_ = std::string(where ? where : "/var/tmp") + "/shale-streaming-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    for (const auto& path : paths_) unlink(path.c_str());
    rmdir(folder_.c_str());
  }

  /// A file of `value(i)`, or of zeros, on the device and out of the page cache.
  template <class Value>
  std::string cold_file(const char* name, Value value) {
    const std::string path = folder_ + "/" + name;
    paths_.push_back(path);
    const int file = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    EXPECT_GE(file, 0);
    std::vector<std::int32_t> piece(1 << 20);
    for (std::int64_t at = 0; at < elements; at += static_cast<std::int64_t>(piece.size())) {
      for (std::size_t i = 0; i < piece.size(); ++i)
        piece[i] = value(at + static_cast<std::int64_t>(i));
      const auto bytes = static_cast<ssize_t>(piece.size() * 4);
      EXPECT_EQ(pwrite(file, piece.data(), piece.size() * 4, at * 4), bytes);
    }
    EXPECT_EQ(fdatasync(file), 0);
    EXPECT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(file);
    return path;
  }

  /// Compares every element of the file with `value(i)`.
  template <class Value>
  static void expect_elements(const std::string& path, Value value) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<std::int32_t> piece(1 << 20);
    std::int64_t wrong = 0;
    for (std::int64_t at = 0; at < elements; at += static_cast<std::int64_t>(piece.size())) {
      ASSERT_EQ(pread(file, piece.data(), piece.size() * 4, at * 4),
                static_cast<ssize_t>(piece.size() * 4));
      for (std::size_t i = 0; i < piece.size(); ++i)
        wrong += piece[i] != value(at + static_cast<std::int64_t>(i));
    }
    close(file);
    EXPECT_EQ(wrong, 0);
  }

  static outcome run(const std::string& arguments) {
    const std::size_t space = arguments.find(' ');
    const std::string command = std::string(SHALE_STREAMING_PEER) + " " +
                                arguments.substr(0, space) + " " + std::to_string(budget_mib) +
                                arguments.substr(space);
    std::FILE* output = popen(command.c_str(), "r");
    outcome got;
    EXPECT_EQ(std::fscanf(output, "%llu %llu %ld %lld", &got.windows, &got.dropped,
                          &got.peak_resident_kib, &got.result),
              4);
    EXPECT_EQ(pclose(output), 0);
    if (!test::instrumented) {
      EXPECT_LE(got.peak_resident_kib, (budget_mib + 16) << 10) << arguments;
    }
    return got;
  }

  static void expect_windows(const outcome& got) {
    EXPECT_GE(got.windows, 16u);
    EXPECT_EQ(got.dropped, got.windows);
  }

 private:
  std::string folder_;
  std::vector<std::string> paths_;
};

// stream.4
TEST_F(Streaming, FoldsStayInsideTheBudget) {
  const std::string path = cold_file("a", value_at);
  long long sum = 0, column = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    sum += value_at(i);
    if (i % 8192 == 7) column += value_at(i);
  }
  for (const char* mode : {"sum", "sum_backwards"}) {
    SCOPED_TRACE(mode);
    const outcome got = run(std::string(mode) + " " + path);
    EXPECT_EQ(got.result, sum);
    expect_windows(got);
  }
  const outcome strided = run("sum_column " + path);
  EXPECT_EQ(strided.result, column);
  expect_windows(strided);
}

// stream.4: the faults of one operand do not map pages of the other again that nobody drops.
TEST_F(Streaming, OperandsThatCrossInOneFileStayInsideTheBudget) {
  const std::string path = cold_file("a", value_at);
  constexpr std::int64_t stacks = 32 * 32, header = 32, depth = (elements - header) / stacks;
  long long sum = 0;
  for (std::int64_t i = 0; i < stacks; ++i)
    for (std::int64_t quarter = 0; quarter < 4; ++quarter)
      sum += value_at(header + i * depth + quarter * depth / 4);
  EXPECT_EQ(run("sum_crossed " + path).result, sum);
}

// stream.2, stream.4
TEST_F(Streaming, UpdatesInPlaceStayInsideTheBudget) {
  const std::string path = cold_file("a", value_at);
  expect_windows(run("update " + path));
  expect_elements(path, [](std::int64_t i) { return 3 * value_at(i) + 1; });
}

// stream.4: the elements are 128 KiB apart. If the file lies in large pages of the page cache, a
// store into one of them may map all of these bytes.
TEST_F(Streaming, UpdatesOfAColumnStayInsideTheBudget) {
  const std::string path = cold_file("a", value_at);
  const storage bytes = map_file(path);
  bytes.populate({0, bytes.size_bytes()});
  const outcome got = run("update_column " + path);
  EXPECT_GT(got.windows, 1u);
  EXPECT_EQ(got.dropped, got.windows);
  expect_elements(
      path, [](std::int64_t i) { return i % 32768 == 7 ? 3 * value_at(i) + 1 : value_at(i); });
}

// stream.4: each of 64 workers would have a window of its own.
TEST_F(Streaming, UpdatesByManyThreadsStayInsideTheBudget) {
  const std::string path = cold_file("a", value_at);
  expect_windows(run("update_by_many " + path));
  expect_elements(path, [](std::int64_t i) { return 3 * value_at(i) + 1; });
}

// stream.2, stream.4
TEST_F(Streaming, TwoFilesStayInsideTheBudget) {
  const std::string out = cold_file("a", value_at);
  const std::string in = cold_file("b", [](std::int64_t i) { return value_at(i + 9); });
  expect_windows(run("combine " + out + " " + in));
  expect_elements(out, [](std::int64_t i) { return value_at(i) + 2 * value_at(i + 9); });
  // Two shifted views of one file.
  expect_windows(run("differences " + out + " " + in));
  expect_elements(out, [](std::int64_t i) {
    return i < elements - 5000 ? value_at(i + 5009) - value_at(i + 9)
                               : value_at(i) + 2 * value_at(i + 9);
  });
}

TEST_F(Streaming, TransposedCopiesStayInsideTheBudget) {
  const std::string out = cold_file("a", [](std::int64_t) { return 0; });
  const std::string in = cold_file("b", value_at);
  const outcome got = run("transpose " + out + " " + in);
  EXPECT_EQ(got.dropped, got.windows);
  expect_elements(out, [](std::int64_t i) { return value_at(i % side * side + i / side); });
}

// stream.4: if the file lies in large pages of the page cache, gaps are mapped, too.
TEST_F(Streaming, GapsStayInsideTheBudget) {
  const std::string path = cold_file("a", value_at);
  long long sum = 0;
  for (std::int64_t i = 0; i < elements; ++i)
    if (i / row_elements % row_step == 0) sum += value_at(i);
  for (const bool cold : {true, false}) {
    SCOPED_TRACE(cold ? "cold" : "in memory");
    if (!cold) {
      const storage bytes = map_file(path);
      bytes.populate({0, bytes.size_bytes()});
    }
    const outcome got = run("sum_rows " + path);
    EXPECT_EQ(got.result, sum);
    expect_windows(got);
  }
}

// stream.4
TEST_F(Streaming, NobodyRunsAwayFromAWorkerThatWasPutToSleep) {
  const storage bytes = map_file(cold_file("a", value_at));
  if (bytes.kind() != storage_kind::file) GTEST_SKIP() << "this file system is not mapped";
  executor on({.threads = 2, .memory_bytes = std::size_t{budget_mib} << 20});
  const executor::scope within(on);
  const auto* const first = reinterpret_cast<const std::int32_t*>(std::as_const(bytes).data());
  std::uint64_t windows = 0;
  for_each_segment<const std::int32_t>(
      [&](std::span<const std::int32_t> part) {
        if (part.data() != first) return;
        // Wait until the other workers cannot get further.
        for (int unchanged = 0; unchanged < 20; ++unchanged) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
          if (std::exchange(windows, on.statistics().windows) != windows) unchanged = 0;
        }
      },
      tensor(bytes, dtype::int32, layout({elements})));
  EXPECT_GT(on.statistics().windows, 32u);
  EXPECT_LE(windows, 8u);
}

// stream.1
TEST_F(Streaming, WorkersDoNotWaitForOneThatFailed) {
  const storage bytes = map_file(cold_file("a", value_at));
  if (bytes.kind() != storage_kind::file) GTEST_SKIP() << "this file system is not mapped";
  executor on({.threads = 3, .memory_bytes = std::size_t{budget_mib} << 20});
  const executor::scope within(on);
  const auto* const first = reinterpret_cast<const std::int32_t*>(std::as_const(bytes).data());
  EXPECT_THROW(for_each_segment<const std::int32_t>(
                   [&](std::span<const std::int32_t> part) {
                     if (part.data() != first) return;
                     std::this_thread::sleep_for(std::chrono::milliseconds(100));
                     throw std::runtime_error("the first");
                   },
                   tensor(bytes, dtype::int32, layout({elements}))),
               std::runtime_error);
}

TEST_F(Streaming, WindowsShareTheirBudgetWithThePool) {
  constexpr std::size_t budget = std::size_t{budget_mib} << 20;
  const storage bytes = map_file(cold_file("a", value_at));
  if (bytes.kind() != storage_kind::file) GTEST_SKIP() << "this file system is not mapped";
  memory_pool pool;
  executor on({.threads = 2, .memory_bytes = budget, .pool = &pool});
  const executor::scope within(on);
  pool.deallocate(pool.allocate(4 * budget), 4 * budget);
  EXPECT_GE(pool.statistics().idle_bytes, 4 * budget);
  std::atomic<std::size_t> most = 0;
  std::atomic<std::size_t> least = budget;
  for_each_segment<const std::int32_t>(
      [&](std::span<const std::int32_t>) {
        const auto now = pool.statistics();
        most = std::max(most.load(), now.idle_bytes + now.reserved_bytes);
        least = std::min(least.load(), now.reserved_bytes);
      },
      tensor(bytes, dtype::int32, layout({elements})));
  EXPECT_LE(most, budget);
  EXPECT_EQ(least, budget / 2);
  EXPECT_EQ(pool.statistics().reserved_bytes, 0u);
}

// stream.5
TEST_F(Streaming, GapsAreNotRead) {
  const std::string path = cold_file("a", value_at);
  const storage bytes = map_file(path);
  if (bytes.kind() != storage_kind::file || bytes.resident_bytes() > 0)
    GTEST_SKIP() << "this file system is not mapped, or keeps what is evicted";
  executor on({.threads = 2, .memory_bytes = std::size_t{budget_mib} << 20});
  const executor::scope within(on);
  std::size_t gaps_read = 0;
  std::size_t rows_missing = 0;
  const auto* const base = reinterpret_cast<const std::byte*>(std::as_const(bytes).data());
  EXPECT_TRUE(test::holds_once([&] {
    EXPECT_TRUE(evict_all(bytes));
    std::atomic<std::int64_t> seen = 0;
    std::atomic<std::size_t> in_gaps = 0;
    std::atomic<std::size_t> not_in_rows = 0;
    for_each_segment<const std::int32_t>(
        [&](std::span<const std::int32_t> part) {
          seen += static_cast<std::int64_t>(part.size());
          const auto at =
              static_cast<std::size_t>(reinterpret_cast<const std::byte*>(part.data()) - base);
          const std::size_t row = at / row_bytes * row_bytes;
          not_in_rows += row_bytes - bytes.resident_bytes({row, row_bytes});
          in_gaps += bytes.resident_bytes({row + row_bytes, (row_step - 1) * row_bytes});
        },
        every_fourth_row(bytes));
    EXPECT_EQ(seen, elements / row_step);
    rows_missing = not_in_rows;
    gaps_read = in_gaps;
    return rows_missing == 0 && gaps_read == 0;
  })) << rows_missing
      << " bytes of rows were not in memory, " << gaps_read << " of gaps were";
}

// stream.1: no kernel touches bytes that the file has lost, or the storage would be marked.
TEST_F(Streaming, LostFilesAreAnErrorAndNoFault) {
  const std::string path = cold_file("a", value_at);
  const storage bytes = map_file(path);
  if (bytes.kind() != storage_kind::file) GTEST_SKIP() << "this file system is not mapped";
  executor on({.threads = 2, .memory_bytes = std::size_t{budget_mib} << 20});
  const executor::scope within(on);
  std::once_flag first;
  EXPECT_EQ(test::code_of([&] {
              for_each_segment<const std::int32_t>(
                  [&](std::span<const std::int32_t>) {
                    std::call_once(first,
                                   [&] { EXPECT_EQ(truncate(path.c_str(), file_bytes / 2), 0); });
                  },
                  tensor(bytes, dtype::int32, layout({elements})));
            }),
            errc::io);
  EXPECT_FALSE(bytes.failed());
}

// stream.3
TEST_F(Streaming, LeavesThePagesThatWereInMemory) {
  const std::string path = cold_file("a", value_at);
  const storage bytes = map_file(path);
  const byte_range all{0, bytes.size_bytes()};
  bytes.populate(all);
  if (bytes.resident_bytes() != bytes.size_bytes()) GTEST_SKIP() << "there is too little memory";
  EXPECT_TRUE(test::holds_once([&] {
    bytes.populate(all);
    executor on({.threads = 2, .memory_bytes = std::size_t{budget_mib} << 20});
    const executor::scope within(on);
    std::atomic<std::int64_t> seen = 0;
    for_each_segment<const std::int32_t>(
        [&](std::span<const std::int32_t> part) { seen += static_cast<std::int64_t>(part.size()); },
        tensor(bytes, dtype::int32, layout({elements})));
    EXPECT_EQ(seen, elements);
    EXPECT_GE(on.statistics().windows, 16u);
    return bytes.resident_bytes() == bytes.size_bytes();
  }));
}

// stream.3: pages in gaps that were in the page cache stay there, and pages that this call read do
// not.
TEST_F(Streaming, DropsWhatItBroughtInAndNoMore) {
  const std::string path = cold_file("a", value_at);
  const storage bytes = map_file(path);
  if (bytes.kind() != storage_kind::file || bytes.resident_bytes() > 0)
    GTEST_SKIP() << "this file system is not mapped, or keeps what is evicted";
  executor on({.threads = 2, .memory_bytes = std::size_t{budget_mib} << 20});
  const executor::scope within(on);
  const auto visit = [&](const tensor& values) {
    std::atomic<std::int64_t> seen = 0;
    for_each_segment<const std::int32_t>(
        [&](std::span<const std::int32_t> part) { seen += static_cast<std::int64_t>(part.size()); },
        values);
    EXPECT_EQ(seen, values.size());
  };
  const auto leaves_at_most = [&](const tensor& values, std::size_t most) {
    return test::holds_once([&] {
      EXPECT_TRUE(evict_all(bytes));
      visit(values);
      return bytes.resident_bytes() <= most;
    });
  };
  EXPECT_TRUE(
      leaves_at_most(tensor(bytes, dtype::int32, layout({elements})), bytes.size_bytes() / 8));
  EXPECT_TRUE(leaves_at_most(every_fourth_row(bytes), bytes.size_bytes() / row_step / 8));

  const std::size_t step_bytes = row_step * row_bytes;
  const auto for_each_gap = [&](const auto& visit_gap) {
    for (std::size_t at = row_bytes; at < bytes.size_bytes(); at += step_bytes)
      visit_gap(byte_range{at, row_bytes});
  };
  const auto gaps_resident = [&] {
    std::size_t sum = 0;
    for_each_gap([&](byte_range gap) { sum += bytes.resident_bytes(gap); });
    return sum;
  };
  EXPECT_TRUE(test::holds_once([&] {
    EXPECT_TRUE(evict_all(bytes));
    for_each_gap([&](byte_range gap) { bytes.prefetch(gap); });
    for_each_gap([&](byte_range gap) { bytes.populate(gap); });
    visit(every_fourth_row(bytes));
    return gaps_resident() == bytes.size_bytes() / row_step;
  }));
}

}  // namespace
}  // namespace shale
