// Tests locks: the queue of writers, locks of other programs, and many pins in few descriptions.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "format/bytes/file_layout.hpp"
#include "format/os/pins.hpp"
#include "format/pages/header.hpp"
#include "format/pages/page.hpp"
#include "format/pages/root_page.hpp"
#include "format/pages/superblock.hpp"
#include "format/recorded_container.hpp"
#include "format/small_history.hpp"
#include "format/transaction/writer.hpp"
#include "format/transaction/writer_lock_wait.hpp"
#include "shale/error.hpp"
#include "support/child_process.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale::format {
namespace {

using test::code_of;
using test::observe;
using test::plain_state;
using test::recording_file_system;

constexpr std::chrono::milliseconds at_once{0};

template <class Body>
std::string text_of(Body&& body) {
  try {
    body();
  } catch (const error& failure) {
    return failure.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A thread of low priority may sleep for ten times as long as it wants.
TEST(Writers, WaitNoLongerThanTheirLimitOnABusyMachine) {
  const std::string path = "/box/busy.shale";
  recording_file_system files;
  container_file first = container_file::create(files, path, {.id = uuid{}});
  container_file second = container_file::open(files, path, open_access::write);
  const transaction writing = first.begin(at_once);
  files.pauses_take = 10;
  const std::chrono::milliseconds limit{1000};
  EXPECT_EQ(code_of([&] { second.begin(limit); }), errc::busy);
  EXPECT_GE(files.paused, limit);
  EXPECT_LE(files.paused, limit + 10 * lock_step_max);
}

// ---- readers beside a writer --------------------------------------------------------------------

// A writer is stopped before each call of a transaction in turn. The transaction is aborted or
// committed, and has space to give back. Readers must not wait for it.
TEST(Readers, FinishWhileAWriterIsStopped) {
  const std::string path = "/box/stopped.shale";
  for (const bool commits : {false, true}) {
    for (std::uint64_t call = 0;; ++call) {
      recording_file_system files;
      container_file writer = container_file::create(files, path, {.id = uuid{}});
      plain_state state;
      test::commit_step(writer, 0, state);
      std::vector<plain_state> told{state, state};
      bool ran = false;
      const std::uint64_t start = files.calls();
      files.before_call = [&] {
        if (ran || files.calls() != start + call) return;
        ran = true;
        container_file reader = container_file::open(files, path, open_access::read);
        const generation_view view = reader.latest();
        ASSERT_GE(view.generation(), 2u);
        ASSERT_EQ(observe(view), told[view.generation() - 2]) << "call " << call;
      };
      {
        transaction change = writer.begin(at_once);
        test::storyteller(change, told[1]).dense("kept", 300, 1);
        change.allocate(100'000);
        if (commits) change.commit();
      }
      files.before_call = nullptr;
      EXPECT_EQ(files.now().at(path).size(), writer.latest().end_of_file());
      if (!ran) break;
    }
  }
}

class RealLocks : public testing::Test {
 protected:
  // A lock that any program can take if it may open the file.
  class stranger {
   public:
    stranger(const std::string& path, short type, std::uint64_t first, std::uint64_t bytes,
             int command = F_OFD_SETLK)
        : descriptor_(::open(path.c_str(), (type == F_RDLCK ? O_RDONLY : O_RDWR) | O_CLOEXEC)) {
      struct flock request {};
      request.l_type = type;
      request.l_start = static_cast<off_t>(first);
      request.l_len = static_cast<off_t>(bytes);
      EXPECT_EQ(::fcntl(descriptor_, command, &request), 0);
    }
    ~stranger() { ::close(descriptor_); }
    stranger(const stranger&) = delete;
    stranger& operator=(const stranger&) = delete;

   private:
    int descriptor_;
  };

  const std::string this_process = "this process " + std::to_string(::getpid()) + " (";

  test::scratch_directory box;
  const std::string path = box / "locked.shale";
  container_file container = container_file::create(posix_files(), path);
};

TEST_F(RealLocks, AStoppedWriterThatTruncatesStopsNoReader) {
  const stranger truncating(path, F_WRLCK, no_shrink_lock, 1);
  EXPECT_EQ(container_file::open(posix_files(), path, open_access::read).latest().generation(), 1u);
}

TEST_F(RealLocks, AreWaitedForAsLongAsItSays) {
  const transaction writing = container.begin(at_once);
  container_file other = container_file::open(posix_files(), path, open_access::write);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of([&] { other.begin(std::chrono::milliseconds{200}); }), errc::busy);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds{200});
}

// A signal ends a sleep, but must not end the pause. Only one pause is measured: on a busy machine,
// many pauses that end early take as long as a few whole ones, because each starts late.
TEST(Pauses, AreNotEndedBySignals) {
  struct sigaction heard {};
  heard.sa_handler = [](int) {};
  struct sigaction before {};
  ::sigaction(SIGALRM, &heard, &before);
  const itimerval often{{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  const std::chrono::milliseconds duration{500};
  const auto start = std::chrono::steady_clock::now();
  posix_files().pause(duration);
  const auto paused = std::chrono::steady_clock::now() - start;
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_GE(paused, duration);
}

TEST_F(RealLocks, AWholeFilesExclusiveLockIsNamedWithItsHolder) {
  const stranger other(path, F_WRLCK, 0, 0);
  const std::string text =
      text_of([&] { container_file::open(posix_files(), path, open_access::read).latest(); });
  EXPECT_TRUE(says(text, "an exclusive lock of bytes 0 to 9223372036854775807")) << text;
  EXPECT_TRUE(says(text, this_process)) << text;
  EXPECT_EQ(code_of([&] { container_file::open(posix_files(), path, open_access::read); }),
            errc::busy);
}

TEST_F(RealLocks, AWholeFilesSharedLockStopsWritersByName) {
  const stranger other(path, F_RDLCK, 0, 0);
  EXPECT_EQ(container_file::open(posix_files(), path, open_access::read).latest().generation(), 1u);
  const std::string text = text_of([&] { container.begin(at_once); });
  EXPECT_TRUE(says(text, "a shared lock of bytes 0 to 9223372036854775807")) << text;
  EXPECT_TRUE(says(text, this_process)) << text;
  EXPECT_FALSE(says(text, "device")) << text;
}

TEST_F(RealLocks, TheWritersByteHeldByAReaderIsNamed) {
  const stranger other(path, F_RDLCK, writer_lock, 1);
  const std::string text = text_of([&] { container.begin(at_once); });
  EXPECT_TRUE(says(text, "[busy]")) << text;
  EXPECT_TRUE(says(text, "a shared lock of bytes 1152921504606846976 to")) << text;
}

TEST_F(RealLocks, AWriterIsNamedToTheOther) {
  const transaction change = container.begin(at_once);
  container_file second = container_file::open(posix_files(), path, open_access::write);
  const std::string text = text_of([&] { second.begin(at_once); });
  EXPECT_TRUE(says(text, "another transaction holds the file")) << text;
  EXPECT_TRUE(says(text, "held by " + this_process)) << text;
}

TEST_F(RealLocks, APosixLocksProcessIsNamed) {
  // POSIX locks belong to processes, so another process has to hold it.
  test::child_process other(
      "/usr/bin/python3",
      {"-c",
       "import fcntl,sys\nf=open(sys.argv[1],'r+')\nfcntl.lockf(f,fcntl.LOCK_EX,1,2**60)\n"
       "print('locked',flush=True)\nsys.stdin.readline()",
       path});
  ASSERT_EQ(other.read_line(), "locked");
  const std::string text = text_of([&] { container.begin(at_once); });
  EXPECT_TRUE(says(text, "process " + std::to_string(other.pid()) + " (python3)")) << text;
}

// A process of another user may call itself what it likes, and root may read the message.
TEST_F(RealLocks, ProcessesAreNamedWithoutControlCharacters) {
  test::child_process other(
      "/usr/bin/python3",
      {"-c",
       "import fcntl,sys\nopen('/proc/self/comm','wb').write(b'a\\x1b[2Jb\\xff')\n"
       "f=open(sys.argv[1],'r+')\nfcntl.lockf(f,fcntl.LOCK_EX,1,2**60)\n"
       "print('locked',flush=True)\nsys.stdin.readline()",
       path});
  ASSERT_EQ(other.read_line(), "locked");
  const std::string text = text_of([&] { container.begin(at_once); });
  EXPECT_TRUE(says(text, "process " + std::to_string(other.pid()) + " (a\\x1b[2Jb\\xff)")) << text;
}

TEST_F(RealLocks, PinsOfImpossibleGenerationsAreIgnored) {
  {
    const stranger other(path, F_RDLCK, pin_locks + 1'000'000, 1);
    const std::string text = text_of([&] { container.begin(at_once); });
    EXPECT_TRUE(says(text, "[busy]")) << text;
    EXPECT_TRUE(says(text, "bytes 2305843009214693952 to 2305843009214693952")) << text;
    EXPECT_TRUE(says(text, this_process)) << text;
    EXPECT_FALSE(says(text, "device")) << text;
  }
  EXPECT_EQ(container.begin(at_once).generation(), 2u);
}

// Anybody who may read can take it, and it looks like a reader's.
TEST_F(RealLocks, ALockOnTheNextGenerationsByteMayBeNoPin) {
  {
    const stranger other(path, F_RDLCK, pin_locks + 2, 1);
    const std::string text = text_of([&] { container.begin(at_once); });
    EXPECT_TRUE(says(text, "close the reader and try again")) << text;
    EXPECT_TRUE(says(text, "a lock of its own on byte 2305843009213693954")) << text;
    EXPECT_TRUE(says(text, this_process)) << text;
  }
  EXPECT_EQ(container.begin(at_once).generation(), 2u);
}

TEST_F(RealLocks, APosixLockOnTheNextGenerationsByteIsNoPin) {
  test::child_process other(
      "/usr/bin/python3",
      {"-c",
       "import fcntl,sys\nf=open(sys.argv[1],'r')\nfcntl.lockf(f,fcntl.LOCK_SH,1,2**61+2)\n"
       "print('locked',flush=True)\nsys.stdin.readline()",
       path});
  ASSERT_EQ(other.read_line(), "locked");
  const std::string text = text_of([&] { container.begin(at_once); });
  EXPECT_TRUE(says(text, "[busy]")) << text;
  EXPECT_TRUE(says(text, "process " + std::to_string(other.pid()) + " (python3)")) << text;
  EXPECT_FALSE(says(text, "device")) << text;
}

TEST_F(RealLocks, ALockOfAllPinBytesIsNoPin) {
  for (const short type : {F_RDLCK, F_WRLCK}) {
    const stranger other(path, type, pin_locks, row_locks - pin_locks);
    EXPECT_EQ(code_of([&] { container.begin(at_once); }), errc::busy);
    EXPECT_TRUE(container.pinned().empty());
  }
}

TEST_F(RealLocks, AnExclusiveLockOfAPinsByteStopsItsReadersByName) {
  const stranger other(path, F_WRLCK, pin_locks + 1, 1);
  const std::string text = text_of([&] { container.latest(); });
  EXPECT_TRUE(says(text, "[busy]")) << text;
  EXPECT_TRUE(says(text, this_process)) << text;
}

TEST_F(RealLocks, TheProbesByteHeldExclusivelyIsNotAFileSystemWithoutLocks) {
  const stranger other(path, F_WRLCK, probe_lock, 1);
  EXPECT_EQ(code_of([&] { container_file::open(posix_files(), path, open_access::read); }),
            errc::busy);
}

// ---- many pins in few descriptions --------------------------------------------------------------

class ManyPins : public test::recorded_container {
 protected:
  std::uint64_t commit() {
    transaction change = container.begin(at_once);
    test::storyteller(change, told_now).dense("d", 300, ++seed);
    const std::uint64_t made = change.commit();
    told[made] = told_now;
    return made;
  }

  std::set<std::uint64_t> pinned() const {
    std::set<std::uint64_t> all;
    for (const generation_range& range : container.pinned())
      for (std::uint64_t g = range.first; g <= range.last; ++g) all.insert(g);
    return all;
  }

  plain_state told_now;
  std::map<std::uint64_t, plain_state> told;
  unsigned seed = 0;
};

TEST_F(ManyPins, AreHeldExactlyInAnyOrderOfRelease) {
  std::mt19937_64 random(3);
  container_file reader = container_file::open(files, path, open_access::read);
  std::map<std::uint64_t, generation_view> held;
  const int others = files.open_files();
  for (int step = 0; step < 600; ++step) {
    if (random() % 5 < 3 || held.empty()) {
      commit();
      const generation_view view = reader.latest();
      held.emplace(view.generation(), view);
    } else {
      held.erase(std::next(held.begin(), static_cast<long>(random() % held.size())));
    }
    ASSERT_LE(files.open_files() - others, static_cast<int>(pin_set::descriptions_max));
    std::set<std::uint64_t> expected;
    for (const auto& [generation, view] : held) expected.insert(generation);
    ASSERT_EQ(pinned(), expected) << step;
  }
  ASSERT_GT(held.size(), 2 * pin_set::descriptions_max);
  for (const auto& [generation, view] : held) ASSERT_EQ(observe(view), told[generation]);
  held.clear();
  EXPECT_TRUE(pinned().empty());
  EXPECT_EQ(files.open_files(), others);
}

TEST_F(ManyPins, AreTakenAndKeptWithoutAnyDescriptorLeft) {
  container_file reader = container_file::open(files, path, open_access::read);
  std::vector<generation_view> held;
  for (int i = 0; i < 3; ++i) {
    commit();
    held.push_back(reader.latest());
  }
  commit();
  files.open_files_max = files.open_files();
  held.push_back(reader.latest());  // shares a description
  EXPECT_EQ(pinned(), (std::set<std::uint64_t>{2, 3, 4, 5}));
  held.pop_back();  // the lock stays as long as the neighbour's, so no byte is unlocked too early
  EXPECT_TRUE(pinned().contains(2) && pinned().contains(3) && pinned().contains(4));
  files.open_files_max = INT_MAX;
  held.clear();
  EXPECT_TRUE(pinned().empty());
}

// pins.3: all pins share one description. A generation is lost before it is published.
TEST_F(ManyPins, OfUnpublishedBasesGoAtOnce) {
  std::vector<generation_view> held;
  std::set<std::uint64_t> expected;
  for (int i = 0; i < 70; ++i) {
    commit();
    if (i > 0) files.open_files_max = files.open_files();
    held.push_back(container.latest());
    expected.insert(held.back().generation());
    files.open_files_max = INT_MAX;
  }
  std::shared_ptr<writer> owner;
  {
    transaction lost = container.begin(at_once);
    plain_state ignored = told_now;
    test::storyteller(lost, ignored).dense("d", 300, 1);
    lost.commit_unpublished();
    owner = lost.writer_owner();
  }
  {
    const transaction next = begin_on_written(owner);
    files.open_files_max = files.open_files();
    const generation_view base = next.pin_base();
    files.open_files_max = INT_MAX;
    EXPECT_TRUE(pinned().contains(base.generation()));
    EXPECT_FALSE(expected.contains(base.generation()));
  }
  EXPECT_EQ(pinned(), expected);
  owner->end();
  container_file other = container_file::open(files, path, open_access::write);
  EXPECT_EQ(other.begin(at_once).generation(), *expected.rbegin() + 1);
}

// pins.2: a writer scans the pins before every call of a release of a neighbouring pin.
TEST_F(ManyPins, HaveNoGapWhileNeighboursGo) {
  container_file reader = container_file::open(files, path, open_access::read);
  std::map<std::uint64_t, generation_view> held;
  for (std::size_t i = 0; i < 2 * pin_set::descriptions_max; ++i) {
    commit();
    const generation_view view = reader.latest();
    held.emplace(view.generation(), view);
  }
  std::set<std::uint64_t> kept;
  int looks = 0;
  files.before_call = [&] {
    ++looks;
    for (const std::uint64_t generation : kept)
      ASSERT_TRUE(pinned().contains(generation)) << generation;
  };
  while (held.size() > 1) {
    kept.clear();
    for (const auto& [generation, view] : held) kept.insert(generation);
    kept.erase(held.begin()->first);
    held.erase(held.begin());
  }
  files.before_call = nullptr;
  EXPECT_GT(looks, 16);
}

// Views are destroyed on one thread while another thread makes views.
TEST_F(RealLocks, PinsAreLetGoOnAnyThread) {
  std::mutex mutex;
  std::vector<generation_view> waiting;
  bool over = false;
  container_file reader = container_file::open(posix_files(), path, open_access::read);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (bool last = false; !last;) {
        std::vector<generation_view> mine;
        {
          const std::lock_guard lock(mutex);
          last = over;
          while (waiting.size() > (last ? 0 : 20)) {
            mine.push_back(waiting.front());
            waiting.erase(waiting.begin());
            if (mine.size() > 7) break;
          }
          last = last && waiting.empty();
        }
        std::this_thread::yield();
      }
    });
  for (int i = 0; i < 150; ++i) {
    container.begin(at_once).commit();
    const generation_view view = reader.latest();
    const std::lock_guard lock(mutex);
    waiting.push_back(view);
  }
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  for (std::thread& running : threads) running.join();
  EXPECT_TRUE(container.pinned().empty());
}

// ---- other refusals of a writer -----------------------------------------------------------------

using Refusal = test::recorded_container;

TEST_F(Refusal, OfGenerationsThatHaveNoLock) {
  // The newest generation has the largest possible number.
  const auto bytes = files.now().at(path);
  superblock_sector sector;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(superblock_offsets[0]), 512,
              sector.begin());
  superblock fields = decode_superblock(sector, uuid{}, 0).value();
  for (const std::uint64_t last : {generations_end - 2, generations_end - 1}) {
    page root(bytes_view(bytes).subspan(fields.root.offset, page_bytes));
    root.stamp(last, fields.root.offset);
    superblock next = fields;
    next.generation = last;
    next.root_checksum = checksum_metadata(root.bytes());
    std::unique_ptr<open_file> raw;
    ASSERT_GE(files.open(path, open_access::write, raw), 0);
    raw->pwrite(root.bytes(), fields.root.offset);
    raw->pwrite(encode_superblock(next, uuid{}, 0), superblock_offsets[0]);
    std::byte announced[4];
    store(announced, static_cast<std::uint32_t>(last));
    raw->pwrite(announced, live_page_offset);
    raw.reset();
    container_file again = container_file::open(files, path, open_access::write);
    EXPECT_EQ(again.latest().generation(), last);
    if (last == generations_end - 1) {
      const std::string text = text_of([&] { again.begin(at_once); });
      EXPECT_TRUE(says(text, "generations are used up")) << text;
    } else {
      EXPECT_EQ(again.begin(at_once).generation(),
                last + 1);  // it was not published, because its fields were lost
    }
  }
}

TEST_F(Refusal, OfFilesThatOtherHostsMayHaveOpen) {
  files.remote = true;
  EXPECT_EQ(container_file::open(files, path, open_access::read).latest().generation(), 1u);
  EXPECT_EQ(code_of([&] { container_file::open(files, path, open_access::write); }),
            errc::unsupported);
  EXPECT_EQ(code_of([&] { container_file::create(files, "/box/other.shale"); }), errc::unsupported);
  EXPECT_EQ(files.now().size(), 1u);
  container_file alone = container_file::open(files, path, open_access::write, {.sole_host = true});
  EXPECT_EQ(alone.begin(at_once).commit(), 2u);
  EXPECT_EQ(
      container_file::create(files, "/box/other.shale", {.sole_host = true}).latest().generation(),
      1u);
}

}  // namespace
}  // namespace shale::format
