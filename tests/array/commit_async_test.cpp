// Tests commits that do not wait: their order, what the next transaction begins with, threads, and
// what happens to the writer lock.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/expr.hpp"
#include "shale/pending_commit.hpp"
#include "support/bounded.hpp"

namespace shale {
namespace {

using test::code_of;
using test::findings_of;
using test::text_of;

class CommitAsync : public test::fresh_container {
 protected:
  // Commits an array of one chunk without waiting.
  pending_commit add(const std::string& name, int value) {
    transaction change = file_.begin();
    change.create(name, small(array_kind::chunked)).write(expr(value));
    return change.commit_async();
  }

  static array_spec small(array_kind kind) {
    return {.dtype = dtype::int32, .shape = {6, 4}, .kind = kind};
  }

  static scalar first_of(const snapshot& seen, const std::string& name) {
    return seen.at(name).read().at({0, 0});
  }

  const test::hang_alarm limit_;
};

TEST_F(CommitAsync, IsDurableAndVisibleInOrder) {
  std::vector<pending_commit> pending;
  for (int i = 0; i < 40; ++i) pending.push_back(add(std::to_string(i), i));
  std::uint64_t before = 1;
  for (const pending_commit& each : pending) {
    EXPECT_EQ(each.generation(), before + 1);
    before = each.generation();
  }
  pending.back().wait();
  for (const pending_commit& each : pending) {
    EXPECT_TRUE(each.durable());
    each.wait();
  }
  const snapshot seen = container::open(path_).latest();
  EXPECT_EQ(seen.generation(), pending.back().generation());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(first_of(seen, std::to_string(i)), scalar(i));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(CommitAsync, TheNextTransactionBeginsWithTheChanges) {
  add("a", 1);
  transaction change = file_.begin();
  const std::optional<array> base = change.find("a");
  ASSERT_TRUE(base);
  EXPECT_EQ(base->read().at({5, 3}), scalar(1));
  EXPECT_EQ(code_of([&] { change.create("a", small(array_kind::dense)); }), errc::already_exists);
  change.update("a").write(expr(2));
  change.commit_async();
  for (int value = 3; value < 9; ++value) {
    transaction next = file_.begin();
    next.update("a").write(expr(value));
    next.commit_async().wait();
  }
  // An array of a base that was perhaps never published keeps its elements.
  EXPECT_EQ(base->read().at({5, 3}), scalar(1));
  EXPECT_EQ(first_of(file_.latest(), "a"), scalar(8));
}

// A snapshot shows all transactions up to its generation, and none after.
TEST_F(CommitAsync, ReadersSeeWholeTransactionsOnly) {
  pending_commit last = add("a", 0);
  for (int i = 1; i < 60; ++i) {
    transaction change = file_.begin();
    change.update("a").write(expr(i));
    change.set_attribute("a", "count", std::to_string(i));
    last = change.commit_async();
    const snapshot seen = file_.latest();
    if (!seen.find("a")) continue;
    const auto value = first_of(seen, "a").to<std::uint64_t>();
    EXPECT_EQ(value + 2, seen.generation());
    if (value > 0) {
      EXPECT_EQ(seen.at("a").attribute("count"), std::to_string(value));
    }
  }
  last.wait();
  EXPECT_EQ(first_of(file_.latest(), "a"), scalar(59));
}

TEST_F(CommitAsync, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      try {
        for (int i = 0; i < 15; ++i) {
          const std::string name = std::to_string(t) + "/" + std::to_string(i);
          const pending_commit mine = add(name, t);
          mine.wait();
          const snapshot seen = file_.latest();
          EXPECT_GE(seen.generation(), mine.generation());
          EXPECT_TRUE(seen.find(name));
        }
      } catch (const error& failure) {
        ADD_FAILURE() << failure.what();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(file_.latest().names().size(), 60u);
  EXPECT_EQ(file_.latest().generation(), 61u);
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(CommitAsync, IsFollowedByACommitThatWaits) {
  for (int i = 0; i < 20; ++i) {
    const pending_commit before = add(std::to_string(i), i);
    transaction change = file_.begin();
    change.create("d" + std::to_string(i), small(array_kind::dense)).write(expr(i));
    EXPECT_EQ(change.commit(), before.generation() + 1);
    EXPECT_TRUE(before.durable());
    EXPECT_EQ(first_of(file_.latest(), "d" + std::to_string(i)), scalar(i));
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(CommitAsync, AnAbortLeavesWhatWasBefore) {
  const pending_commit before = add("a", 1);
  {
    transaction aborted = file_.begin();
    aborted.remove("a");
    aborted.create("b", small(array_kind::dense)).write(expr(2));
  }
  const pending_commit after = add("c", 3);
  EXPECT_EQ(after.generation(), before.generation() + 1);
  after.wait();
  EXPECT_EQ(file_.latest().names(), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(CommitAsync, StoresDenseArrays) {
  transaction change = file_.begin();
  change.create("d", small(array_kind::dense)).write(expr(7));
  const pending_commit pending = change.commit_async();
  EXPECT_EQ(code_of([&] { change.commit_async(); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.commit(); }), errc::invalid_argument);
  pending.wait();
  EXPECT_EQ(first_of(file_.latest(), "d"), scalar(7));
  EXPECT_EQ(findings_of(file_), "");
}

// A tensor of the transaction shows the generation, so it has to be published.
TEST_F(CommitAsync, WaitsForTensorsThatAreHeld) {
  const pending_commit before = add("a", 1);
  transaction change = file_.begin();
  const tensor shown = change.create("d", small(array_kind::dense)).map();
  shown.as<std::int32_t, 2>()(2, 3) = 5;
  const pending_commit pending = change.commit_async();
  EXPECT_TRUE(before.durable());
  EXPECT_TRUE(pending.durable());
  add("e", 2).wait();
  EXPECT_EQ(shown.at({2, 3}), scalar(5));
  EXPECT_EQ(file_.latest().at("d").read().at({2, 3}), scalar(5));
}

TEST_F(CommitAsync, LetsOthersWriteOnceItIsDurable) {
  container other = container::open(path_, open_mode::write);
  for (int i = 0; i < 3; ++i) {
    add("a" + std::to_string(i), i).wait();
    transaction change = other.begin(no_wait);
    change.create("b" + std::to_string(i), small(array_kind::chunked));
    change.commit();
  }
  EXPECT_EQ(file_.latest().names().size(), 6u);
}

// A copy that was made by commits without waiting is free once the last one is durable.
TEST_F(CommitAsync, LetsACopyTakeANameOnceItIsDurable) {
  const std::string path = directory_ / "copy.shale";
  for (int i = 0; i < 3; ++i) {
    container copy = container::create(path);
    transaction change = copy.begin();
    change.create("a", small(array_kind::chunked)).write(expr(i));
    change.commit_async().wait();
    container old = container::open(path_, open_mode::write);
    old.begin().replace_by(path);
    EXPECT_EQ(first_of(container::open(path_).latest(), "a"), scalar(i));
  }
}

TEST_F(CommitAsync, GoesOnAfterTheContainerIsClosed) {
  pending_commit pending = add("a", 4);
  file_.close();
  pending.wait();
  EXPECT_EQ(first_of(container::open(path_).latest(), "a"), scalar(4));
}

TEST_F(CommitAsync, HandlesThatWereMovedFromThrow) {
  pending_commit pending = add("a", 4);
  const pending_commit moved = std::move(pending);
  EXPECT_EQ(code_of([&] { pending.wait(); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { pending.generation(); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { pending.durable(); }), errc::invalid_argument);
  moved.wait();
}

// Another container takes the name before the generation is published. Whatever is built on it
// fails too.
TEST_F(CommitAsync, AFailureIsReportedAndStopsWhatFollows) {
  const std::string taken = directory_ / "taken.shale";
  container::create(taken);
  transaction change = file_.begin();
  change.create("a", small(array_kind::chunked)).write(expr(1));
  std::filesystem::rename(taken, path_);
  const pending_commit pending = change.commit_async();
  EXPECT_EQ(code_of([&] { add("b", 2).wait(); }), errc::io);
  EXPECT_EQ(code_of([&] { pending.wait(); }), errc::io);
  EXPECT_EQ(code_of([&] { pending.wait(); }), errc::io);  // each time
  EXPECT_FALSE(pending.durable());
  EXPECT_EQ(code_of([&] { add("c", 3); }), errc::io);
  EXPECT_TRUE(container::open(path_).latest().names().empty());
}

// A copy of the container takes the name before the generation is published. Later transactions
// would change the copy, and be durable although one before them is lost.
TEST_F(CommitAsync, NothingIsDurableAfterAFailure) {
  const std::string copy = directory_ / "copy.shale";
  std::filesystem::copy_file(path_, copy);
  transaction change = file_.begin();
  change.create("a", small(array_kind::chunked)).write(expr(1));
  std::filesystem::rename(copy, path_);
  const pending_commit lost = change.commit_async();
  const std::string why = text_of([&] { lost.wait(); });
  EXPECT_NE(why.find("the file was replaced"), std::string::npos) << why;
  for (int i = 0; i < 2; ++i) {
    const std::string refused = text_of([&] { add("b", 2); });
    EXPECT_NE(refused.find("the file was replaced"), std::string::npos) << refused;
    EXPECT_NE(refused.find("open the container anew"), std::string::npos) << refused;
  }
  file_ = container::open(path_, open_mode::write);
  add("b", 2).wait();
  EXPECT_EQ(file_.latest().names(), std::vector<std::string>{"b"});
}

}  // namespace
}  // namespace shale
