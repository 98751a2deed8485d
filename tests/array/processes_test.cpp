// Tests several processes on one container: readers that follow, writers that are killed, writers
// that wait.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "support/bounded.hpp"
#include "support/child_threads.hpp"
#include "support/instrumented.hpp"

namespace shale {
namespace {

using test::array_peer;
using test::code_of;
using test::findings_of;

// Takes the file's pages out of the page cache, so that the next reader starts cold.
void cool(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  EXPECT_EQ(::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED), 0);
  ::close(descriptor);
}

class Processes : public test::fresh_container {
 protected:
  void write(const std::string& name, double value) {
    transaction change = file_.begin();
    if (change.find(name)) change.update(name).write(expr(value));
    else change.create(name, {.shape = {600, 700}}).write(expr(value));
    change.commit();
  }

  // Under a budget of 16 MiB, the processes write 256 MiB of elements (64 MiB if loops are slow)
  // and compute their mean.
  void expect_to_fit(const std::string& kind) {
    const int rows = test::instrumented ? 2048 : 8192;
    constexpr std::size_t budget = 16u << 20;
    constexpr std::size_t slack = 64u << 20;
    array_peer maker(
        {"make", path_, "big", kind, std::to_string(rows), "8192", std::to_string(budget)});
    const std::string made = maker.read_line();
    ASSERT_EQ(maker.wait(), 0) << made;
    cool(path_);
    array_peer reader({"mean", path_, "big", std::to_string(budget)});
    EXPECT_EQ(std::stod(reader.read_line()), ((rows - 1) * 3 + 8191) / 2.0);
    const std::string peak = reader.read_line();
    EXPECT_EQ(reader.wait(), 0);
    if (!test::instrumented) {
      EXPECT_LE(std::stoul(made), budget + slack);
      EXPECT_LE(std::stoul(peak), budget + slack);
    }
  }
};

TEST_F(Processes, AReaderSeesEachGenerationAndKeepsItsOwn) {
  write("a", 1);
  array_peer reader({"follow", path_, "a"});
  EXPECT_EQ(reader.read_line(), "2 1001");
  for (int value = 2; value < 6; ++value) {
    write("a", value);
    EXPECT_EQ(reader.read_line(), std::to_string(value + 1) + " " + std::to_string(value * 1001));
  }
  transaction change = file_.begin();
  change.remove("a");
  change.commit();
  EXPECT_EQ(reader.wait(), 0);
}

TEST_F(Processes, SnapshotsStayTheSameWhileOthersCommit) {
  write("a", 1);
  const snapshot held = file_.latest();
  const tensor view = held.at("a").map();
  const tensor copy = view.clone();
  array_peer writer({"set", path_, "a", "5", "8"});
  EXPECT_EQ(writer.read_line(), "done");
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_TRUE(equal_bits(view, copy));
  EXPECT_TRUE(equal_bits(held.at("a").read(), copy));
  EXPECT_EQ(file_.latest().at("a").map().at({0, 0}), scalar(12.0));
  EXPECT_EQ(file_.latest().generation(), held.generation() + 8);
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Processes, AKilledWriterLeavesTheOldGenerationAndNoLock) {
  write("a", 1);
  array_peer writer({"hold", path_, "a"});
  ASSERT_EQ(writer.read_line(), "writing");
  EXPECT_EQ(code_of([&] { file_.begin({30}); }), errc::busy);
  EXPECT_EQ(file_.latest().at("a").map().at({3, 4}), scalar(1.0));
  writer.kill();
  EXPECT_EQ(writer.wait(), -9);
  EXPECT_EQ(findings_of(file_), "");
  EXPECT_FALSE(file_.latest().find("unborn"));
  write("a", 3);
  EXPECT_EQ(file_.latest().generation(), 3u);
  EXPECT_EQ(file_.latest().at("a").map().at({599, 699}), scalar(3.0));
  EXPECT_EQ(findings_of(file_), "");
}

// Transactions of array_peer's `commit`. Each adds 1 to one of the arrays, and stores its
// generation.
class AsyncWriters : public test::fresh_container {
 protected:
  static constexpr int threads = 3;

  AsyncWriters() {
    transaction change = file_.begin();
    for (int t = 0; t < threads; ++t)
      change.create("t" + std::to_string(t), of(t)).write(expr(std::int64_t{0}));
    change.create("number", of(0)).write(expr(std::int64_t{2}));
    change.commit();
  }

  static array_spec of(int number) {
    return {.dtype = dtype::int64,
            .shape = {3000},
            .kind = number % 2 == 0 ? array_kind::dense : array_kind::chunked};
  }

  static std::int64_t value_of_all(const array& stored) {
    const tensor read = stored.read();
    const auto values = read.elements<const std::int64_t>();
    for (const std::int64_t value : values) EXPECT_EQ(value, values.front()) << stored.name();
    return values.front();
  }

  // The newest generation holds all transactions up to it, and is not older than the last report.
  void expect_in_order() {
    const snapshot now = file_.latest();
    const auto generation = static_cast<std::int64_t>(now.generation());
    ASSERT_GE(generation, reported_);
    reported_ = generation;
    EXPECT_EQ(value_of_all(now.at("number")), generation);
    std::int64_t sum = 0;
    for (int t = 0; t < threads; ++t) sum += value_of_all(now.at("t" + std::to_string(t)));
    EXPECT_EQ(sum, generation - 2);
    EXPECT_EQ(findings_of(file_), "");
  }

  void hear(array_peer& writer) {
    const test::hang_alarm limit;
    const std::string line = writer.read_line();
    ASSERT_NE(line, "") << "the writer has ended";
    reported_ = std::max<std::int64_t>(reported_, std::stol(line));
  }

  std::int64_t reported_ = 2;
};

TEST_F(AsyncWriters, ThatAreKilledLeaveGenerationsInOrder) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::repeats(24); ++round) {
    array_peer writer({"commit", path_, std::to_string(threads)});
    for (std::uint64_t lines = random() % 6 + 1; lines > 0; --lines)
      ASSERT_NO_FATAL_FAILURE(hear(writer));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    writer.kill();
    writer.wait();
    ASSERT_NO_FATAL_FAILURE(expect_in_order());
  }
}

// The writer lock goes from one process to the other, although neither ever stops committing.
TEST_F(AsyncWriters, TakeTurnsWithOtherProcesses) {
  array_peer first({"commit", path_, std::to_string(threads)});
  array_peer second({"commit", path_, std::to_string(threads)});
  for (int i = 0; i < 6; ++i) {
    ASSERT_NO_FATAL_FAILURE(hear(first));
    ASSERT_NO_FATAL_FAILURE(hear(second));
  }
  first.kill();
  second.kill();
  first.wait();
  second.wait();
  ASSERT_NO_FATAL_FAILURE(expect_in_order());
}

// A thread publishes while the process ends.
TEST_F(Processes, AnAsyncWriterThatEndsLeavesGenerationsInOrder) {
  for (int round = 0; round < test::repeats(20); ++round) {
    const std::string level = "round" + std::to_string(round);
    array_peer writer({"leave", path_, level, "6"});
    EXPECT_EQ(writer.read_line(), "left");
    EXPECT_EQ(writer.wait(), 0);
    const snapshot now = file_.latest();
    const std::vector<std::string> names = now.names(level + "/");
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(names[i], level + "/" + std::to_string(i));
      EXPECT_EQ(now.at(names[i]).read().at({2}), scalar(static_cast<int>(i)));
    }
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Processes, AWriterWaitsForTheOther) {
  write("a", 1);
  std::optional<transaction> first = file_.begin();
  array_peer writer({"set", path_, "a", "7", "1"});
  first->update("a").write(expr(2));
  first->commit();
  EXPECT_EQ(writer.read_line(), "done");
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(file_.latest().generation(), 4u);
  EXPECT_EQ(file_.latest().at("a").map().at({0, 0}), scalar(7.0));
}

TEST_F(Processes, APinInAnotherProcessKeepsSpaceUntilItDies) {
  write("a", 1);
  array_peer reader({"pin", path_});
  ASSERT_EQ(reader.read_line(), "2");
  for (int i = 0; i < 4; ++i) write("a", i);
  const std::uint64_t bytes = 600 * 700 * 4;
  EXPECT_GE(file_.verify().freed_bytes, bytes);
  reader.kill();
  reader.wait();
  for (int i = 0; i < 4; ++i) write("a", i);
  EXPECT_LT(file_.verify().freed_bytes, 4 * bytes);
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Processes, AForkedChildCanNeitherCommitNorHarmATransaction) {
  transaction change = file_.begin();
  change.create("a", {.shape = {600, 700}, .kind = array_kind::chunked}).write(expr(2.0));
  const pid_t child = ::fork();
  if (child == 0) {
    test::start_no_housekeeper();
    bool refused = false;
    try {
      change.commit();
    } catch (const error&) {
      refused = true;
    }
    change.abort();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  change.commit();
  EXPECT_EQ(at("a").read().at({599, 699}), scalar(2.0));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Processes, ChunkedArraysAreReducedInsideTheMemoryBudget) {
  // Compresses well.
  expect_to_fit("chunked");
}

TEST_F(Processes, DenseArraysAreWrittenAndSummedInsideTheMemoryBudget) {
  // Written through a mapping, checksummed and committed, then read back.
  expect_to_fit("dense");
  EXPECT_TRUE(file_.verify().findings.empty());
}

}  // namespace
}  // namespace shale
