// Tests containers that several processes share on the real file system: pins, kills, waits and
// locks.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <set>
#include <thread>

#include "format/os/file_io.hpp"
#include "format/os/pins.hpp"
#include "format/pages/header.hpp"
#include "format/small_history.hpp"
#include "shale/error.hpp"
#include "support/child_process.hpp"
#include "support/recording_file_system.hpp"
#include "support/scratch_directory.hpp"
#include "support/system_page.hpp"

namespace shale::format {
namespace {

using test::child_process;
using test::observe;
using test::plain_state;
using test::storyteller;

constexpr std::chrono::milliseconds at_once{0};

// A description that holds the lock of a reader of that generation.
std::unique_ptr<open_file> locked(file_system& files, const std::string& path,
                                  std::uint64_t generation) {
  auto opened = open_existing(bound_path(files, path), open_access::read);
  EXPECT_GE(opened->try_lock(pin_locks + generation, lock_mode::shared), 0);
  return opened;
}

class Processes : public testing::Test {
 protected:
  std::uint64_t commit(container_file& container, unsigned seed) {
    transaction change = container.begin(std::chrono::milliseconds{10'000});
    storyteller story(change, told);
    if (!told.contains("a")) story.create_chunked("a");
    for (unsigned i = 0; i < 12; ++i) story.chunk("a", i, seed + i);
    story.dense("d", 20'000 + seed, seed);
    return change.commit();
  }

  test::scratch_directory box;
  const std::string path = box / "shared.shale";
  plain_state told;
};

TEST_F(Processes, AReaderKeepsItsGenerationThroughManyCommits) {
  container_file container = container_file::create(posix_files(), path);
  commit(container, 1);
  child_process reader(SHALE_FORMAT_PEER, {"read", path});
  ASSERT_EQ(reader.read_line(), "2");
  EXPECT_EQ(container.pinned(), (std::vector<generation_range>{{2, 2}}));
  for (unsigned i = 2; i < 60; ++i) commit(container, i * 7);
  reader.write_line("look");
  EXPECT_EQ(reader.read_line(), "same");
  EXPECT_EQ(observe(container.latest()), told);
  EXPECT_EQ(test::unsound(container.latest()), "");
}

TEST_F(Processes, AKilledReaderHoldsNothing) {
  container_file container = container_file::create(posix_files(), path);
  commit(container, 1);
  const std::uint64_t held_bytes = [&] {
    child_process reader(SHALE_FORMAT_PEER, {"read", path});
    EXPECT_EQ(reader.read_line(), "2");
    for (unsigned i = 2; i < 12; ++i) commit(container, i);
    const std::uint64_t freed = verify(container.latest()).freed_bytes;
    reader.kill();
    reader.wait();
    return freed;
  }();
  EXPECT_TRUE(container.pinned().empty());
  commit(container, 20);
  commit(container, 21);
  EXPECT_LT(verify(container.latest()).freed_bytes, held_bytes);
}

TEST_F(Processes, EveryGenerationOfAProcessHasOneDescription) {
  container_file container = container_file::create(posix_files(), path);
  commit(container, 1);
  container_file reader = container_file::open(posix_files(), path, open_access::read);
  const generation_view first = reader.latest();
  const generation_view again = reader.latest();  // shares the pin
  commit(container, 2);
  std::optional<generation_view> second = reader.latest();
  EXPECT_EQ(container.pinned(), (std::vector<generation_range>{{2, 2}, {3, 3}}));
  second.reset();
  EXPECT_EQ(container.pinned(), (std::vector<generation_range>{{2, 2}}));
}

TEST_F(Processes, ScanFindsEveryPinnedGeneration) {
  container_file container = container_file::create(posix_files(), path);
  std::vector<std::unique_ptr<open_file>> pins;
  std::vector<generation_range> expected;
  std::mt19937_64 random(7);
  std::set<std::uint64_t> generations{1, 2, 3, 1000, generations_end - 1};
  while (generations.size() < 200) generations.insert(random() % generations_end);
  for (const std::uint64_t generation : generations) {
    for (int copies = 0; copies < 2; ++copies)  // several readers of one generation are found once
      pins.push_back(locked(posix_files(), path, generation));
    expected.push_back({generation, generation});
  }
  EXPECT_EQ(container.pinned(), expected);
  pins.clear();
  EXPECT_TRUE(container.pinned().empty());
}

// The kernel may report any lock of a range, not only the lowest.
TEST(Pins, AreFoundInAnyOrder) {
  test::recording_file_system files;  // reports the lock that was taken last
  const std::string name = "/box/pins.shale";
  const container_file container = container_file::create(files, name);
  std::vector<std::unique_ptr<open_file>> pins;
  for (const std::uint64_t generation : {70, 3, 900, 1, 71, 4, 2})
    pins.push_back(locked(files, name, generation));
  std::vector<generation_range> expected;
  for (const std::uint64_t generation : {1, 2, 3, 4, 70, 71, 900})
    expected.push_back({generation, generation});
  EXPECT_EQ(container.pinned(), expected);
}

TEST_F(Processes, KilledWritersLeaveTheOldGenerationOrTheNew) {
  container_file::create(posix_files(), path);
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::uint64_t reported = 1;
  for (int round = 0; round < 25; ++round) {
    child_process writer(SHALE_FORMAT_PEER, {"write", path});
    for (unsigned lines = random() % 4 + 1; lines > 0; --lines) {
      const std::string line = writer.read_line();
      ASSERT_EQ(line, std::to_string(reported + 1)) << "the last writer's work was lost";
      ++reported;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    writer.kill();
    writer.wait();
    container_file container = container_file::open(posix_files(), path, open_access::write);
    const generation_view view = container.latest();
    ASSERT_GE(view.generation(), reported);
    reported = view.generation();
    ASSERT_EQ(test::unsound(view), "");
    plain_state seen = observe(view);
    ASSERT_EQ(seen["a"].notes["number"], std::to_string(view.generation()));
    // Even chunks belong to the newest even generation, odd chunks to the newest odd one.
    for (const auto& [number, bytes] : seen["a"].chunks) {
      const std::uint64_t written_by = view.generation() - (view.generation() + number) % 2;
      ASSERT_EQ(bytes, test::pattern(bytes.size(), static_cast<unsigned>(written_by)));
    }
  }
}

TEST_F(Processes, WritersTakeTurns) {
  container_file::create(posix_files(), path);
  child_process first(SHALE_FORMAT_PEER, {"write", path});
  child_process second(SHALE_FORMAT_PEER, {"write", path});
  std::set<std::string> lines;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(lines.insert(first.read_line()).second);
    EXPECT_TRUE(lines.insert(second.read_line()).second);
  }
  EXPECT_EQ(lines.size(), 20u);  // no two processes made the same generation
}

TEST_F(Processes, AWaiterIsWokenByACommit) {
  container_file container = container_file::create(posix_files(), path);
  const container_file waiter = container_file::open(posix_files(), path, open_access::read);
  EXPECT_EQ(waiter.wait_newer(0, at_once), 1u);
  EXPECT_EQ(waiter.wait_newer(1, at_once), std::nullopt);
  EXPECT_EQ(waiter.wait_newer(1, std::chrono::milliseconds{5}), std::nullopt);
  child_process writer(SHALE_FORMAT_PEER, {"write", path});
  EXPECT_GE(waiter.wait_newer(1, std::chrono::milliseconds{60'000}).value_or(0), 2u);
  EXPECT_GE(waiter.wait_newer(5, std::chrono::milliseconds{60'000}).value_or(0), 6u);
}

TEST_F(Processes, FollowsANameThatAnotherFileTook) {
  container_file container = container_file::create(posix_files(), path);
  commit(container, 1);
  container_file reader = container_file::open(posix_files(), path, open_access::read);
  const generation_view old_view = reader.latest();
  const plain_state old_state = told;
  // Like compacting: a new file with the same uuid takes the name.
  const std::string other = box / "other.shale";
  {
    container_file made = container_file::create(posix_files(), other, {.id = container.id()});
    told.clear();
    commit(made, 50);
    commit(made, 51);
  }
  ASSERT_EQ(std::rename(other.c_str(), path.c_str()), 0);
  EXPECT_EQ(reader.latest().generation(), 3u);
  EXPECT_EQ(observe(reader.latest()), told);
  EXPECT_EQ(observe(old_view), old_state);  // the old view still shows its generation
  EXPECT_EQ(commit(container, 52), 4u);     // the writer follows the name too
  EXPECT_EQ(reader.latest().generation(), 4u);
}

TEST_F(Processes, NoticesThatAStrangerTookTheName) {
  container_file container = container_file::create(posix_files(), path);
  const std::string other = box / "other.shale";
  container_file::create(posix_files(), other);
  ASSERT_EQ(std::rename(other.c_str(), path.c_str()), 0);
  try {
    container.begin(at_once);
    FAIL() << "wrote into a stranger's file";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::io);
  }
}

TEST_F(Processes, RefusesToCreateOverAFile) {
  container_file::create(posix_files(), path);
  try {
    container_file::create(posix_files(), path);
    FAIL() << "created over a file";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::already_exists);
  }
}

// On some file systems, a reservation that fails half-way keeps the space that it has taken.
TEST_F(Processes, ReservingWhatCannotFitTakesNothing) {
  std::unique_ptr<open_file> made;
  ASSERT_GE(posix_files().create_unnamed(path, 0600, made), 0);
  struct statvfs disk {};
  ASSERT_EQ(::statvfs(box.path().c_str(), &disk), 0);
  if (disk.f_blocks == 0) GTEST_SKIP() << "nobody counts the blocks of " << box.path();
  const os_result result = made->allocate(0, 2 * disk.f_bfree * disk.f_frsize);
  EXPECT_TRUE(result == -ENOSPC || result == -EFBIG) << result;
  struct stat about {};
  ASSERT_EQ(::fstat(made->descriptor(), &about), 0);
  EXPECT_EQ(about.st_blocks, 0);
}

// A store through a mapping makes the system write whole pages, which also need space on a full
// disk.
TEST_F(Processes, MappedExtentsHaveSpaceForWholePages) {
  container_file::create(posix_files(), path);
  container_file writer = container_file::open(posix_files(), path, open_access::write);
  transaction change = writer.begin(at_once);
  const std::uint64_t page = test::system_page_bytes();
  // Chunks that are never written take no space.
  extent mapped;
  do {
    change.allocate_chunk(2 * page);
    mapped = change.allocate(page_bytes);
  } while (mapped.offset % page != (page > page_bytes ? page_bytes : 0));
  change.allocate_chunk(2 * page);
  change.allocate(page_bytes);
  const auto blocks = [&] {
    struct stat about {};
    EXPECT_EQ(::stat(path.c_str(), &about), 0);
    return static_cast<std::uint64_t>(about.st_blocks) * 512;
  };
  const std::uint64_t before = blocks();
  change.prepare_mapped_write(mapped);
  EXPECT_GE(blocks(), before + page - page_bytes);
}

TEST_F(Processes, OpensOnlyContainers) {
  const auto code = [&](const std::string& name) {
    try {
      container_file::open(posix_files(), name, open_access::read);
      return errc{};
    } catch (const error& refused) {
      return refused.code();
    }
  };
  EXPECT_EQ(code(box / "absent"), errc::not_found);
  std::FILE* const text = std::fopen((box / "text").c_str(), "w");
  for (int i = 0; i < 100'000; ++i) std::fputs("text ", text);
  std::fclose(text);
  EXPECT_EQ(code(box / "text"), errc::corrupt);
  EXPECT_EQ(code("/dev/null"), errc::invalid_argument);
  EXPECT_EQ(code("/tmp"), errc::invalid_argument);
  container_file::create(posix_files(), path);
  ASSERT_EQ(::truncate(path.c_str(), 60'000), 0);
  EXPECT_EQ(code(path), errc::corrupt);
  EXPECT_EQ(code(path + "/below"), errc::io);
}

TEST_F(Processes, ReadersNeedNoWriteAccess) {
  container_file::create(posix_files(), path);
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  container_file reader = container_file::open(posix_files(), path, open_access::read);
  EXPECT_EQ(reader.latest().generation(), 1u);
  EXPECT_THROW(reader.begin(at_once), error);
}

TEST_F(Processes, GivesDenseSpaceThatReadsAsZeros) {
  container_file container = container_file::create(posix_files(), path);
  for (unsigned i = 1; i < 6; ++i) {  // several generations, so that old space is reused
    commit(container, i);
    transaction change = container.begin(at_once);
    const extent range = change.allocate(50'000);
    std::vector<std::byte> bytes(50'000, std::byte{1});
    change.read(range.offset, bytes);
    EXPECT_EQ(bytes, std::vector<std::byte>(50'000));
    EXPECT_GE(change.descriptor(), 0);
  }
}

TEST_F(Processes, ShareContainersInSharedMemory) {
  const std::string shared = "/dev/shm/shale-format-test-" + std::to_string(::getpid());
  container_file container = container_file::create(posix_files(), shared);
  commit(container, 1);
  child_process reader(SHALE_FORMAT_PEER, {"read", shared});
  EXPECT_EQ(reader.read_line(), "2");
  for (unsigned i = 2; i < 9; ++i) commit(container, i);
  EXPECT_EQ(container.pinned(), (std::vector<generation_range>{{2, 2}}));
  reader.write_line("look");
  EXPECT_EQ(reader.read_line(), "same");
  EXPECT_EQ(observe(container.latest()), told);
  EXPECT_EQ(test::unsound(container.latest()), "");
  posix_files().remove(shared);
}

TEST_F(Processes, AlignsLargeExtentsForHugePages) {
  container_file container = container_file::create(posix_files(), path);
  transaction change = container.begin(at_once);
  EXPECT_EQ(change.allocate(large_extent_bytes).offset % (2u << 20), 0u);
  EXPECT_EQ(change.allocate(large_extent_bytes - 1).offset % page_bytes, 0u);
  EXPECT_EQ(change.allocate(1).offset % page_bytes, 0u);
}

}  // namespace
}  // namespace shale::format
