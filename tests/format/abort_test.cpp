// Tests transactions that do not commit: they are aborted, destroyed, or end with their process, on
// recorded files.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "format/after_crash.hpp"
#include "format/bytes/byte_order.hpp"
#include "format/generations/generation_state.hpp"
#include "format/os/pins.hpp"
#include "format/pages/header.hpp"
#include "format/recorded_container.hpp"
#include "format/small_history.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

using test::fault;
using test::observe;
using test::plain_state;

constexpr std::chrono::milliseconds at_once{0};

class Abort : public test::recorded_container {};

TEST_F(Abort, LeavesTheFileAsItWas) {
  plain_state state;
  test::commit_step(container, 0, state);
  const auto before = files.now();
  {
    plain_state ignored = state;
    transaction change = container.begin(at_once);
    test::tell(1, {change, ignored});
    test::storyteller(change, ignored).dense("large", 200'000, 1);
    EXPECT_GT(files.now().at(path).size(), before.at(path).size());
    change.abort();
    EXPECT_FALSE(change.active());
    EXPECT_THROW(change.find("a"), error);
    EXPECT_THROW(change.commit(), error);
  }
  EXPECT_EQ(files.now().at(path).size(),
            before.at(path).size());  // even the file's size is as before
  EXPECT_EQ(observe(container.latest()), state);
  EXPECT_EQ(container.begin(at_once).generation(), 3u);
}

TEST_F(Abort, OfAKilledWriterIsTidiedUpByTheNextCommit) {
  {
    std::unique_ptr<open_file> dead;
    ASSERT_GE(files.open(path, open_access::write, dead), 0);
    dead->allocate(1u << 20, 1u << 20);
  }
  container.begin(at_once).commit();
  EXPECT_EQ(files.now().at(path).size(), container.latest().end_of_file());
}

// commit.8: all bytes that a reader holds lie before the tail.
TEST_F(Abort, GivesTheTailBackBesideReaders) {
  plain_state state;
  test::commit_step(container, 0, state);
  const generation_view reader = container.latest();
  const std::uint64_t before = files.now().at(path).size();
  {
    transaction change = container.begin(at_once);
    change.allocate(100'000);
    EXPECT_GT(files.now().at(path).size(), before);
  }
  EXPECT_EQ(files.now().at(path).size(), before);
  EXPECT_EQ(observe(reader), state);
}

TEST_F(Abort, KeepsTheTailWhileTheNoShrinkByteIsHeld) {
  std::unique_ptr<open_file> mapper;
  ASSERT_GE(files.open(path, open_access::read, mapper), 0);
  ASSERT_GE(mapper->try_lock(no_shrink_lock, lock_mode::shared), 0);
  std::uint64_t size = 0;
  {
    transaction change = container.begin(at_once);
    change.allocate(100'000);
    size = files.now().at(path).size();
  }
  EXPECT_EQ(files.now().at(path).size(), size);
}

TEST_F(Abort, FollowsAnExceptionBetweenSyncAndSuperblock) {
  plain_state ignored;
  transaction change = container.begin(at_once);
  test::tell(0, {change, ignored});
  const auto lose = [] { throw error(errc::io, "a mapping failed"); };
  EXPECT_THROW(change.commit({.after_sync = lose}), error);
  EXPECT_FALSE(change.active());
  EXPECT_FALSE(container.poisoned());
  EXPECT_EQ(container.latest().generation(), 1u);
  EXPECT_EQ(container.begin(at_once).generation(), 2u);
}

// The caller pins what it goes on to read, and gives up its mappings, while nobody else can write.
TEST_F(Abort, TellsItsCallerBeforeTheLockIsReleased) {
  // A container that was open before a failed sync of this process would refuse to begin.
  const auto begin_elsewhere = [&] {
    return test::code_of(
        [&] { container_file::open(files, path, open_access::write).begin(at_once); });
  };
  int failures = 0;
  bool failed = true;
  for (std::uint64_t call = 0; failed; ++call) {
    SCOPED_TRACE(call);
    container_file own = container_file::open(files, path, open_access::write);
    transaction change = own.begin(at_once);
    std::vector<commit_outcome> told;
    errc others{};
    const auto tell = [&](commit_outcome outcome) {
      told.push_back(outcome);
      failed = !files.failed_call().empty();
      files.fail_call(UINT64_MAX, fault::none);
      others = begin_elsewhere();
    };
    files.fail_call(files.calls() + call, fault::error, EIO);
    const errc code = test::code_of([&] { change.commit({.before_release = tell}); });
    files.fail_call(UINT64_MAX, fault::none);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(others, errc::busy);
    EXPECT_EQ(told[0], code == errc{} ? commit_outcome::durable : commit_outcome::failed);
    EXPECT_TRUE(code == errc{} || code == errc::io);
    failures += code != errc{};
    EXPECT_EQ(begin_elsewhere(), errc{});
  }
  EXPECT_GT(failures, 4);
}

TEST_F(Abort, FollowsAFailedWriteOfData) {
  transaction change = container.begin(at_once);
  change.put(test::chunked_record("a"));
  const extent range = change.allocate_chunk(10);
  const auto bytes = test::pattern(10, 1);
  files.fail_call(files.calls(), fault::error, EIO);
  EXPECT_THROW(change.write(range.offset, bytes), error);
  files.fail_call(UINT64_MAX, fault::none);
  EXPECT_THROW(change.commit(), error);
  EXPECT_EQ(container.latest().generation(), 1u);
}

// A change that failed half-way may have left the trees inconsistent, so lookups and the commit
// must refuse.
TEST_F(Abort, FollowsAChangeThatFailedHalfWay) {
  plain_state state;
  {
    transaction change = container.begin(at_once);
    test::tell(0, {change, state});
    test::storyteller(change, state).note("a", "long", std::string(6000, 'x'));
    change.commit();
  }
  bool failed = false;
  for (std::uint64_t call = 0; call < 8; ++call) {
    container_file again = container_file::open(files, path, open_access::write);
    transaction change = again.begin(at_once);
    const std::uint64_t end = files.calls();
    files.fail_call(end + call, fault::error, EIO);
    plain_state ignored = state;
    try {
      test::storyteller(change, ignored).note("a", "long", std::string(7000, 'y'));
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::io);
      failed = true;
    }
    files.fail_call(UINT64_MAX, fault::none);
    if (ignored != state) break;  // there are no more calls
    const errc looked_up = test::code_of([&] { change.find("a"); });
    try {
      change.commit();
      // A read failed before anything was changed.
      EXPECT_EQ(looked_up, errc{});
      EXPECT_EQ(observe(again.latest()), state);
    } catch (const error& refused) {
      EXPECT_EQ(looked_up, errc::io);
      EXPECT_EQ(refused.code(), errc::io);
      EXPECT_NE(std::string(refused.what()).find("one of its changes or writes has failed"),
                std::string::npos);
    }
    EXPECT_EQ(observe(again.latest()), state);
    EXPECT_EQ(test::unsound(again.latest()), "");
  }
  EXPECT_TRUE(failed);
}

}  // namespace
}  // namespace shale::format
