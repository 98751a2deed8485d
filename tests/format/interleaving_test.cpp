// Tests many interleavings of readers and writers of one file, and of writers that rename files,
// on recorded files.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

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
using test::recording_file_system;

constexpr std::chrono::milliseconds at_once{0};
const std::string path = "/box/history.shale";

// A writer that repeats the history.
struct steady_writer {
  explicit steady_writer(recording_file_system& files)
      : container(container_file::create(files, path, {.id = uuid{}})) {}

  void commit() {
    told.push_back(told.back());
    const auto step = static_cast<int>(told.size() - 2) % test::history_steps;
    test::commit_step(container, step, told.back());
  }

  container_file container;
  std::vector<plain_state> told{{}};  // the content of each generation, from the first
};

// A whole transaction of a writer runs before call number `call` of a reader's opening, for every
// `call`.
TEST(Interleaving, ReadersPinWholeGenerationsBesideWriters) {
  for (int commits = 1; commits <= 3; ++commits) {
    for (std::uint64_t call = 0;; ++call) {
      recording_file_system files;
      steady_writer writer(files);
      writer.commit();
      container_file reader = container_file::open(files, path, open_access::read);
      const std::uint64_t start = files.calls();
      bool ran = false;
      files.before_call = [&] {
        if (files.calls() != start + call) return;
        ran = true;
        for (int i = 0; i < commits; ++i) writer.commit();
      };
      const generation_view view = reader.latest();
      files.before_call = nullptr;
      ASSERT_EQ(observe(view), writer.told[view.generation() - 1]);
      // Later commits do not change the pinned generation.
      while (writer.told.size() < 7) writer.commit();
      ASSERT_EQ(observe(view), writer.told[view.generation() - 1]) << "call " << call;
      ASSERT_EQ(test::unsound(writer.container.latest()), "");
      if (!ran) break;
    }
  }
}

// A reader opens the container, reads it and keeps its view before call number `call` of a writer's
// transaction, for every `call`.
TEST(Interleaving, WritersNeverTouchWhatAReaderHolds) {
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    steady_writer writer(files);
    writer.commit();
    writer.commit();
    std::optional<container_file> reader;
    std::optional<generation_view> view;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (files.calls() != start + call || view) return;
      reader = container_file::open(files, path, open_access::read);
      view = reader->latest();
    };
    writer.commit();
    files.before_call = nullptr;
    if (!view) break;
    ASSERT_GE(view->generation(), 3u);
    ASSERT_LE(view->generation(), 4u);
    while (writer.told.size() < 7) writer.commit();
    ASSERT_EQ(observe(*view), writer.told[view->generation() - 1]) << "call " << call;
  }
}

// Two threads take turns. The reader stops before its call number `reader_stop`. The writer commits
// once and stops before call `writer_stop` of its next transaction. Then the reader runs to its
// end, and after it the writer.
class Baton {
 public:
  enum class turn : std::uint8_t { reader_first, writer_first, reader_second, writer_second, over };

  // Waits for a turn.
  void wait_for(turn wanted) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return now_ >= wanted; });
  }
  void give(turn next) {
    const std::lock_guard lock(mutex_);
    now_ = next;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  turn now_ = turn::reader_first;
};

TEST(Interleaving, ReadersAndWritersMeetAtEveryPairOfSteps) {
  using turn = Baton::turn;
  bool reader_has_more = true;
  for (std::uint64_t reader_stop = 0; reader_has_more; ++reader_stop) {
    bool writer_has_more = true;
    for (std::uint64_t writer_stop = 0; writer_has_more && reader_has_more; ++writer_stop) {
      recording_file_system files;
      container_file writer = container_file::create(files, path, {.id = uuid{}});
      std::vector<plain_state> told{{}};
      const auto commit_one = [&] {
        transaction change = writer.begin(at_once);
        told.push_back(told.back());
        test::storyteller story(change, told.back());
        if (told.size() == 2) story.create_chunked("a");
        for (unsigned i = 0; i < 3; ++i)
          story.chunk("a", i, static_cast<unsigned>(told.size()) + i);
        story.dense("d", 3000, static_cast<unsigned>(told.size()));
        change.commit();
      };
      commit_one();
      commit_one();
      container_file reader = container_file::open(files, path, open_access::read);

      Baton baton;
      bool reader_stopped = false;
      bool writer_stopped = false;
      std::uint64_t writer_start = UINT64_MAX;
      const std::uint64_t reader_start = files.calls();
      const auto writer_id = std::this_thread::get_id();
      files.before_each_call = [&] {
        if (std::this_thread::get_id() == writer_id) {
          if (writer_stopped || files.calls() != writer_start + writer_stop) return;
          writer_stopped = true;
          baton.give(turn::reader_second);
          baton.wait_for(turn::writer_second);
        } else {
          if (reader_stopped || files.calls() != reader_start + reader_stop) return;
          reader_stopped = true;
          baton.give(turn::writer_first);
          baton.wait_for(turn::reader_second);
        }
      };
      std::optional<generation_view> view;
      std::thread reading([&] {
        view = reader.latest();
        baton.give(reader_stopped ? turn::writer_second : turn::over);
      });
      baton.wait_for(turn::writer_first);
      if (reader_stopped) {
        commit_one();
        writer_start = files.calls();
        commit_one();
        if (!writer_stopped) baton.give(turn::reader_second);
      }
      reading.join();
      files.before_each_call = nullptr;
      reader_has_more = reader_stopped;
      writer_has_more = writer_stopped;
      commit_one();
      commit_one();
      ASSERT_EQ(observe(*view), told[view->generation() - 1])
          << "reader's call " << reader_stop << ", writer's call " << writer_stop;
      view.reset();
      ASSERT_EQ(test::unsound(writer.latest()), "");
    }
  }
}

class Renaming : public testing::Test {
 protected:
  // A container of generation `commits` + 1.
  static plain_state make(recording_file_system& files, const std::string& name, int commits) {
    container_file container = container_file::create(files, name, {.id = uuid{}});
    plain_state state;
    for (int step = 0; step < commits; ++step) test::commit_step(container, step, state);
    return state;
  }

  const std::string compacted = "/box/compacted";
};

// Before some call of `begin`, a compacted file takes the name and another process locks that file.
// The transaction must not write into it.
TEST_F(Renaming, TheWriterLockIsThatOfTheFileBehindTheName) {
  bool refused = false;
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    make(files, path, 1);
    make(files, compacted, 3);
    container_file writer = container_file::open(files, path, open_access::write);
    std::optional<container_file> other;
    std::optional<transaction> others;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (other || files.calls() != start + call) return;
      files.rename(compacted, path);
      other = container_file::open(files, path, open_access::write);
      others = other->begin(at_once);
    };
    try {
      const transaction change = writer.begin(at_once);
      EXPECT_EQ(change.generation(), 3u) << "two writers of one file, call " << call;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::busy) << failure.what();
      refused = true;
    }
    files.before_call = nullptr;
    if (!other) break;
  }
  EXPECT_TRUE(refused);
}

// A compacted file takes the name before some call of a reader, and writers use the file at once.
TEST_F(Renaming, APinIsOnTheFileThatIsRead) {
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    const plain_state before = make(files, path, 2);
    const plain_state compact = make(files, compacted, 3);
    container_file reader = container_file::open(files, path, open_access::read);
    // One more commit, so that both files have the same generation.
    plain_state after = before;
    {
      container_file writer = container_file::open(files, path, open_access::write);
      transaction change = writer.begin(at_once);
      test::storyteller(change, after).dense("e", 300, 2);
      change.commit();
    }
    std::optional<container_file> other;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (other || files.calls() != start + call) return;
      files.rename(compacted, path);
      other = container_file::open(files, path, open_access::write);
    };
    const generation_view view = reader.latest();
    files.before_call = nullptr;
    if (!other) break;
    EXPECT_EQ(view.generation(), 4u);
    const plain_state seen = observe(view);
    EXPECT_TRUE(seen == after || seen == compact) << "call " << call;
    // Writers of the file that has the name see the pin of this view.
    if (seen == compact) {
      EXPECT_EQ(other->pinned(), (std::vector<generation_range>{{4, 4}})) << "call " << call;
    } else {
      EXPECT_TRUE(other->pinned().empty()) << "call " << call;
    }
  }
}

// commit.1, docs/decisions/0021: a dying writer left a slot torn, and the kernel could not write
// it. Later the kernel may read the old superblock back from the device. By then no writer may have
// reused the space of that superblock's generation. `next_writers` runs the writers up to that
// moment.
template <class Next>
void expect_reader_not_misled(Next&& next_writers) {
  bool reader_has_more = true;
  for (std::uint64_t call = 0; reader_has_more; ++call) {
    bool writer_has_more = true;
    for (std::uint64_t death = 0; writer_has_more && reader_has_more; ++death) {
      recording_file_system files;
      container_file writer = container_file::create(files, path, {.id = uuid{}});
      std::vector<plain_state> told{{}};
      const auto change_all = [&](transaction& change) {
        told.resize(change.generation() - 1);
        told.push_back(told.back());
        test::storyteller story(change, told.back());
        if (told.size() == 2) story.create_chunked("a");
        for (unsigned i = 0; i < 3; ++i)
          story.chunk("a", i, static_cast<unsigned>(told.size() * 16) + i);
      };
      const auto commit_one = [&] {
        transaction change = writer.begin(at_once);
        change_all(change);
        change.commit();
      };
      for (int i = 0; i < 2; ++i) commit_one();
      container_file reader = container_file::open(files, path, open_access::read);
      commit_one();  // generation 4, in slot 1: the reader picks it

      reader_has_more = false;
      const std::uint64_t start = files.calls();
      files.before_call = [&] {
        if (reader_has_more || files.calls() != start + call) return;
        reader_has_more = true;
        commit_one();  // generation 5, in slot 0
        {              // the writer of generation 6 dies, perhaps while it writes the superblock
          transaction change = writer.begin(at_once);
          change_all(change);
          files.fail_call(files.calls() + death, fault::death);
          writer_has_more = test::code_of([&] { change.commit(); }) != errc{};
        }
        files.fail_call(UINT64_MAX, fault::none);
        next_writers(files, change_all);
        files.evict_lost();
      };
      const generation_view view = reader.latest();
      files.before_call = nullptr;
      ASSERT_EQ(observe(view), told[view.generation() - 1])
          << "reader's call " << call << ", writer's call " << death;
    }
  }
}

TEST(Interleaving, AReaderIsNotMisledByASlotThatComesBack) {
  expect_reader_not_misled([](recording_file_system& files, const auto& change_all) {
    {  // the next writer's first sync fails
      container_file next = container_file::open(files, path, open_access::write);
      files.fail_sync(0);
      EXPECT_EQ(test::code_of([&] { next.begin(at_once); }), errc::io);
      files.fail_sync(1'000'000);
    }
    // The writer after it has written its data when the kernel reads the slot from the device
    // again.
    container_file last = container_file::open(files, path, open_access::write);
    transaction change = last.begin(at_once);
    change_all(change);
  });
}

TEST(Interleaving, AReaderIsNotMisledByARewriteThatNeverArrived) {
  expect_reader_not_misled([](recording_file_system& files, const auto& change_all) {
    container_file next = container_file::open(files, path, open_access::write);
    transaction change = next.begin(at_once);
    files.fail_writeback(path);  // write-back of the unsynced bytes fails
    change_all(change);
  });
}

TEST(Interleaving, ASecondWriterWaitsItsTurn) {
  recording_file_system files;
  container_file first = container_file::create(files, path, {.id = uuid{}});
  container_file second = container_file::open(files, path, open_access::write);
  std::optional<transaction> change = first.begin(at_once);
  for (container_file* const opened :
       {&first, &second}) {  // also with several objects of one process
    try {
      opened->begin(std::chrono::milliseconds{50});
      FAIL() << "two writers at once";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::busy);
    }
  }
  change->commit();
  EXPECT_EQ(second.begin(at_once).generation(), 3u);
}

}  // namespace
}  // namespace shale::format
