// Tests the thread that publishes, step by step, on recorded files: it stops where a test holds it.
// At the end it runs freely beside several threads, and every crash is tried.
#include "array/transaction/state/commit_pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "format/after_crash.hpp"
#include "format/container/container_file.hpp"
#include "format/os/locks.hpp"
#include "format/small_history.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/recording_file_system.hpp"

namespace shale::arrays {
namespace {

using test::code_of;

constexpr std::chrono::milliseconds at_once{0};
const std::string path = "/box/pipeline.shale";

// Stops another thread until the test lets it go on. Only one of the two runs at a time.
class gate {
 public:
  void stop() {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !stopped_; });
  }
  void wait_until_stopped() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_; });
  }
  void let() {
    const std::lock_guard lock(mutex_);
    stopped_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
};

class CommitPipeline : public testing::Test {
 protected:
  // The thread that publishes stops before its first call, and, if `stops_again_`, before the first
  // call of the second generation that it publishes: after waiters are woken, the name is looked up
  // once.
  void SetUp() override {
    const auto test_thread = std::this_thread::get_id();
    const std::size_t wakes = files_.wakes().size();
    files_.before_each_call = [this, test_thread, wakes] {
      if (std::this_thread::get_id() == test_thread) return;
      if (calls_++ == 0) return gate_.stop();
      if (stops_again_ && files_.wakes().size() == wakes + 1 && ++calls_after_wake_ == 2)
        gate_.stop();
    };
  }

  // The thread has ended when this returns, except for what touches no file.
  void TearDown() override {
    pipeline_->drain();
    files_.before_each_call = nullptr;
  }

  // A transaction that is committed without waiting.
  std::shared_ptr<commit_state> commit() {
    const commit_pipeline::permission may = pipeline_->reserve();
    EXPECT_TRUE(may.granted);
    std::shared_ptr<commit_state> state;
    {
      format::transaction change =
          may.on_written ? format::begin_on_written(may.on_written) : container_.begin(at_once);
      state = pipeline_->hand_over(change);
    }
    pipeline_->ended();
    return state;
  }

  const test::hang_alarm limit_;
  test::recording_file_system files_;
  format::container_file container_ =
      format::container_file::create(files_, path, {.id = format::uuid{}});
  std::shared_ptr<commit_pipeline> pipeline_ = std::make_shared<commit_pipeline>(path);
  gate gate_;
  bool stops_again_ = false;
  int calls_ = 0;             // of the thread that publishes
  int calls_after_wake_ = 0;  // since its first generation was announced
};

// pipeline.2
TEST_F(CommitPipeline, SaysDurableOnlyWhatWasPublished) {
  const auto first = commit();
  gate_.wait_until_stopped();
  const auto second = commit();
  const auto third = commit();
  EXPECT_EQ(first->generation(), 2u);
  EXPECT_EQ(third->generation(), 4u);
  EXPECT_FALSE(first->durable());
  stops_again_ = true;
  gate_.let();
  gate_.wait_until_stopped();
  EXPECT_TRUE(first->durable());
  EXPECT_FALSE(second->durable());
  EXPECT_FALSE(third->durable());
  EXPECT_EQ(container_.latest().generation(), 2u);
  gate_.let();
  first->wait();
  second->wait();
  third->wait();
  pipeline_->drain();
  EXPECT_EQ(container_.latest().generation(), 4u);
}

// pipeline.2, pipeline.5
TEST_F(CommitPipeline, AFailureFailsAllThatFollow) {
  const auto first = commit();
  gate_.wait_until_stopped();
  const auto second = commit();
  const auto third = commit();
  files_.fail_sync(0);
  gate_.let();
  for (const auto& state : {first, second, third}) {
    EXPECT_EQ(code_of([&] { state->wait(); }), errc::io);
    EXPECT_FALSE(state->durable());
  }
  pipeline_->drain();
  files_.fail_sync(1'000'000);
  EXPECT_TRUE(container_.poisoned());
  EXPECT_EQ(code_of([&] { pipeline_->reserve(); }), errc::io);
  EXPECT_EQ(code_of([&] { container_.begin(at_once); }), errc::io);
  format::container_file other =
      format::container_file::open(files_, path, format::open_access::write);
  EXPECT_EQ(other.begin(at_once).generation(), 2u);  // the writer lock is free
}

// The file is too short when the data is synced. The device did not fail, so nothing is poisoned.
TEST_F(CommitPipeline, AFileThatIsTooShortIsNotPublishedTo) {
  const std::uint64_t end = container_.latest().end_of_file();
  const auto state = commit();
  gate_.wait_until_stopped();
  {
    std::unique_ptr<format::open_file> stranger;
    ASSERT_GE(files_.open(path, format::open_access::write, stranger), 0);
    ASSERT_GE(stranger->truncate(end), 0);
  }
  gate_.let();
  EXPECT_EQ(code_of([&] { state->wait(); }), errc::io);
  pipeline_->drain();
  EXPECT_FALSE(container_.poisoned());
  EXPECT_EQ(container_.latest().generation(), 1u);
  EXPECT_EQ(code_of([&] { pipeline_->reserve(); }), errc::io);
  EXPECT_EQ(container_.begin(at_once).generation(), 2u);
}

// pipeline.1
TEST_F(CommitPipeline, GrantsOneTransactionAtATime) {
  EXPECT_TRUE(pipeline_->reserve().granted);
  EXPECT_FALSE(pipeline_->reserve().granted);
  pipeline_->ended();
  EXPECT_TRUE(pipeline_->reserve().granted);
  pipeline_->ended();
}

// pipeline.3, pipeline.4
TEST_F(CommitPipeline, EndsTheChainForAWriterThatWaits) {
  const auto state = commit();
  gate_.wait_until_stopped();
  std::unique_ptr<format::open_file> waiting;
  ASSERT_GE(files_.open(path, format::open_access::write, waiting), 0);
  ASSERT_GE(waiting->try_lock(format::queue_lock, format::lock_mode::exclusive), 0);
  EXPECT_FALSE(pipeline_->reserve().granted);
  gate_.let();
  state->wait();
  pipeline_->drain();
  const auto may = pipeline_->reserve();
  EXPECT_TRUE(may.granted);
  EXPECT_EQ(may.on_written, nullptr);
  pipeline_->ended();
  EXPECT_GE(waiting->try_lock(format::writer_lock, format::lock_mode::exclusive), 0);
}

// pipeline.4
TEST_F(CommitPipeline, KeepsTheLockForATransactionThatGoesOn) {
  const auto state = commit();
  gate_.wait_until_stopped();
  const auto may = pipeline_->reserve();
  ASSERT_NE(may.on_written, nullptr);
  {
    const format::transaction going_on = format::begin_on_written(may.on_written);
    gate_.let();
    state->wait();
    pipeline_->drain();
    format::container_file other =
        format::container_file::open(files_, path, format::open_access::write);
    EXPECT_EQ(code_of([&] { other.begin(at_once); }), errc::busy);
  }
  pipeline_->ended();
  EXPECT_EQ(container_.begin(at_once).generation(), 3u);
}

// pipeline.4: whoever waits for the commit may begin with another object of the same file.
TEST_F(CommitPipeline, ReleasesTheLockBeforeItSaysDurable) {
  const auto state = commit();
  gate_.wait_until_stopped();
  stops_again_ = true;
  gate_.let();
  gate_.wait_until_stopped();  // it is about to release the lock
  EXPECT_FALSE(state->durable());
  gate_.let();
  state->wait();
  format::container_file other =
      format::container_file::open(files_, path, format::open_access::write);
  EXPECT_EQ(other.begin(at_once).generation(), 3u);
}

TEST_F(CommitPipeline, ForgetsATransactionThatCannotBeHandedOver) {
  ASSERT_TRUE(pipeline_->reserve().granted);
  {
    format::transaction change = container_.begin(at_once);
    change.refuse_commit();
    EXPECT_EQ(code_of([&] { pipeline_->hand_over(change); }), errc::io);
  }
  pipeline_->ended();
  const auto state = commit();
  gate_.wait_until_stopped();
  gate_.let();
  state->wait();
  EXPECT_EQ(state->generation(), 2u);
}

// ---- crashes ------------------------------------------------------------------------------------

// Threads that commit without waiting, with an oracle of the content of each generation.
class committers {
 public:
  explicit committers(test::recording_file_system& files)
      : files_(files),
        container_(format::container_file::create(files, path, {.id = format::uuid{}})) {}

  // A commit that was reported to be durable, and the number of recorded changes at that time.
  struct report {
    std::uint64_t generation = 0;
    std::size_t changes = 0;
  };

  // Commits `count` times. Waits for the commits whose bits are set, and for the last one.
  void run(int count, unsigned waits) {
    std::shared_ptr<commit_state> last;
    for (int i = 0; i < count; ++i) {
      last = commit();
      if (((waits >> i) & 1u) != 0 || i == count - 1) wait_for(*last);
    }
  }

  // Returns when no thread uses the files any more.
  void end() { pipeline_->drain(); }

  const std::vector<test::plain_state>& told() const noexcept { return told_; }

  // The last generation that was reported before that many changes.
  std::uint64_t reported_by(std::size_t changes) const {
    std::uint64_t last = 1;
    for (const report& each : reports_)
      if (each.changes <= changes) last = std::max(last, each.generation);
    return last;
  }

 private:
  // The transaction that is granted has `told_` for itself.
  std::shared_ptr<commit_state> commit() {
    commit_pipeline::permission may = pipeline_->reserve();
    for (; !may.granted; may = pipeline_->reserve()) std::this_thread::yield();
    std::shared_ptr<commit_state> state;
    {
      format::transaction change =
          may.on_written ? format::begin_on_written(may.on_written) : container_.begin(at_once);
      test::plain_state next = told_.back();
      const int step = static_cast<int>(told_.size() - 1) % test::history_steps;
      if (step == 0) erase_all(change, next);  // the history begins anew
      test::tell(step, {change, next});
      told_.push_back(next);
      state = pipeline_->hand_over(change);
    }
    pipeline_->ended();
    return state;
  }

  static void erase_all(format::transaction& change, test::plain_state& state) {
    while (!state.empty()) {
      const std::string name = state.begin()->first;
      test::storyteller(change, state).erase(name);
    }
  }

  void wait_for(const commit_state& state) {
    state.wait();
    const std::size_t changes = files_.changes();
    const std::lock_guard lock(reporting_);
    reports_.push_back({state.generation(), changes});
  }

  test::recording_file_system& files_;
  format::container_file container_;
  std::shared_ptr<commit_pipeline> pipeline_ = std::make_shared<commit_pipeline>(path);
  std::vector<test::plain_state> told_{{}};  // of each generation, from the first
  std::mutex reporting_;
  std::vector<report> reports_;
};

// A reader sees all transactions up to one that is not before the last one that was reported.
void expect_whole(const committers& made, std::size_t count,
                  const test::recording_file_system::image& image) {
  const test::sighting seen = test::look(image, path);
  ASSERT_GE(seen.generation, made.reported_by(count)) << "after " << count << " changes";
  ASSERT_LE(seen.generation, made.told().size());
  ASSERT_EQ(seen.state, made.told()[seen.generation - 1]) << "after " << count << " changes";
}

// pipeline.2
TEST(AsyncCrashes, LeaveGenerationsThatAreWholeAndInOrder) {
  std::mt19937_64 random(20261);
  test::recording_file_system files;
  files.used_by_threads = true;
  committers made(files);
  const std::size_t first = files.changes();
  {
    const test::hang_alarm limit;
    std::vector<std::jthread> threads;
    for (const unsigned waits : {0b0000'0000u, 0b0010'0100u, 0b0101'0101u})
      threads.emplace_back([&made, waits] { made.run(8, waits); });
  }
  made.end();  // the thread that publishes may still release the lock
  ASSERT_EQ(made.told().size(), 25u);
  test::recording_file_system::replay crash(files);
  do {
    if (crash.count() < first || test::is_left_out(random)) continue;
    expect_whole(made, crash.count(), crash.after_kill());
    expect_whole(made, crash.count(), crash.after_power_cut(nullptr));
    for (int sample = 0; sample < 2; ++sample)
      expect_whole(made, crash.count(), crash.after_power_cut(&random));
    if (testing::Test::HasFatalFailure()) return;
  } while (crash.next());
  EXPECT_EQ(test::look(files.after_power_cut(nullptr), path).generation, 25u);
}

}  // namespace
}  // namespace shale::arrays
