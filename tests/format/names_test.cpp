// Tests names: the file that a container's path leads to while it is open, and files that lose
// their name.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/pages/header.hpp"
#include "format/recorded_container.hpp"
#include "format/small_history.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale::format {
namespace {

using test::code_of;
using test::observe;
using test::plain_state;
using test::recording_file_system;

constexpr std::chrono::milliseconds at_once{0};

// Restores the working directory when it is destroyed.
class working_directory {
 public:
  working_directory() : before_(std::filesystem::current_path()) {}
  ~working_directory() { std::filesystem::current_path(before_); }
  working_directory(const working_directory&) = delete;
  working_directory& operator=(const working_directory&) = delete;

 private:
  std::filesystem::path before_;
};

// If the word cannot be mapped, a waiter polls instead and is not woken.
TEST(LivePage, IsMappedForAnyPageSizeOfTheSystem) {
  const test::scratch_directory box;
  const std::string path = box / "s.shale";
  container_file::create(posix_files(), path);
  std::unique_ptr<open_file> opened;
  ASSERT_EQ(posix_files().open(path, open_access::read, opened), 0);
  opened->wake_word(live_page_offset);
  std::ifstream maps("/proc/self/maps");
  int mappings = 0;
  for (std::string line; std::getline(maps, line);) mappings += line.ends_with(path) ? 1 : 0;
  EXPECT_EQ(mappings, 1);
}

class BoundNames : public testing::Test {
 protected:
  BoundNames() {
    std::filesystem::create_directory(first);
    std::filesystem::create_directory(second);
    container_file made = container_file::create(posix_files(), first + "/s.shale");
    test::commit_step(made, 0, state);
    std::filesystem::copy_file(first + "/s.shale", second + "/s.shale");
  }

  static std::uint64_t generation_in(const std::string& folder) {
    return container_file::open(posix_files(), folder + "/s.shale", open_access::read)
        .latest()
        .generation();
  }

  working_directory back;
  test::scratch_directory box;
  const std::string first = box / "first";
  const std::string second = box / "second";
  plain_state state;
};

TEST_F(BoundNames, DoNotFollowTheWorkingDirectory) {
  std::filesystem::current_path(first);
  container_file writer = container_file::open(posix_files(), "s.shale", open_access::write);
  container_file reader = container_file::open(posix_files(), "./s.shale", open_access::read);
  container_file made = container_file::create(posix_files(), "made.shale");
  EXPECT_EQ(writer.path(), "s.shale");
  for (const std::string& there : {second, std::string("/")}) {
    std::filesystem::current_path(there);
    test::commit_step(writer, there == "/" ? 2 : 1, state);
    made.begin(at_once).commit();
    EXPECT_EQ(observe(writer.latest()), state);
    EXPECT_EQ(observe(reader.latest()), state);
    EXPECT_EQ(reader.wait_newer(0, at_once), writer.latest().generation());
  }
  EXPECT_EQ(generation_in(first), 4u);
  EXPECT_EQ(generation_in(second), 2u);
  EXPECT_EQ(made.latest().generation(), 3u);
}

TEST_F(BoundNames, DoNotFollowLinksToFolders) {
  std::filesystem::create_directory_symlink(first, box / "current");
  container_file writer =
      container_file::open(posix_files(), box / "current/s.shale", open_access::write);
  std::filesystem::remove(box / "current");
  std::filesystem::create_directory_symlink(second, box / "current");
  test::commit_step(writer, 1, state);
  EXPECT_EQ(generation_in(first), 3u);
  EXPECT_EQ(generation_in(second), 2u);
}

TEST_F(BoundNames, FollowTheirFolderToItsNewName) {
  container_file writer =
      container_file::open(posix_files(), first + "/s.shale", open_access::write);
  std::filesystem::rename(first, box / "renamed");
  std::filesystem::rename(second, first);
  test::commit_step(writer, 1, state);
  EXPECT_EQ(generation_in(box / "renamed"), 3u);
  EXPECT_EQ(generation_in(first), 2u);
}

TEST_F(BoundNames, OfFilesInRemovedFoldersLeadNowhere) {
  container_file writer =
      container_file::open(posix_files(), first + "/s.shale", open_access::write);
  std::filesystem::remove_all(first);
  EXPECT_EQ(code_of([&] { writer.latest(); }), errc::not_found);
  EXPECT_EQ(code_of([&] { writer.begin(at_once); }), errc::not_found);
}

// A file without a name can be reached through one of its descriptors.
TEST_F(BoundNames, MayBeThoseOfOpenFiles) {
  const int held = ::open((first + "/s.shale").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(held, 0);
  std::filesystem::remove(first + "/s.shale");
  for (const char* folder : {"/proc/self/fd/", "/dev/fd/"}) {
    container_file reader =
        container_file::open(posix_files(), folder + std::to_string(held), open_access::read);
    EXPECT_EQ(observe(reader.latest()), state);
  }
  ::close(held);
}

TEST_F(BoundNames, OddOnesAreRefusedAsEver) {
  const auto code = [&](const std::string& path) {
    return code_of([&] { container_file::open(posix_files(), path, open_access::read); });
  };
  EXPECT_EQ(code(""), errc::not_found);
  for (const std::string& folder : {std::string("/"), first + "/", first + "/.."})
    EXPECT_EQ(code(folder), errc::invalid_argument) << folder;
  EXPECT_EQ(code(first + "/s.shale/"), errc::io);
  const std::string long_name(256, 'x');
  EXPECT_EQ(code(first + "/" + long_name), errc::invalid_argument);
  EXPECT_EQ(code(first + "/" + long_name + "/s.shale"), errc::invalid_argument);
  std::string long_path = first;
  while (long_path.size() < 5000) long_path += "/.";
  EXPECT_EQ(code(long_path + "/s.shale"), errc::invalid_argument);
  EXPECT_EQ(code(box / "none/s.shale"), errc::not_found);
}

// ---- a file that loses its name (commit.9) ------------------------------------------------------

constexpr char path[] = "/box/named.shale";

std::uint64_t newest_in(recording_file_system& files, const std::string& name) {
  return container_file::open(files, name, open_access::read).latest().generation();
}

// Another container takes the name before each call of a commit in turn. The commit must not report
// a generation that the name does not lead to.
TEST(LostNames, AreNoticedByEveryCommit) {
  bool refused = false;
  bool too_late = false;
  for (const bool removed : {false, true}) {
    for (std::uint64_t call = 0;; ++call) {
      recording_file_system files;
      container_file writer = container_file::create(files, path, {.id = uuid{}});
      plain_state state;
      test::commit_step(writer, 0, state);
      container_file::create(files, "/box/other.shale", {.id = uuid{}});
      transaction change = writer.begin(at_once);
      test::tell(1, {change, state});
      bool replaced = false;
      const std::uint64_t start = files.calls();
      files.before_call = [&] {
        if (replaced || files.calls() != start + call) return;
        replaced = true;
        files.rename(path, "/box/aside.shale");
        if (!removed) files.rename("/box/other.shale", path);
      };
      std::string text;
      try {
        change.commit();
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::io);
        text = failure.what();
      }
      files.before_call = nullptr;
      if (!replaced) {
        EXPECT_EQ(text, "");
        break;
      }
      ASSERT_NE(text, "") << "reported to the one who has lost the name, call " << call;
      ASSERT_NE(text.find(path), std::string::npos) << text;
      ASSERT_NE(text.find("inode"), std::string::npos) << text;
      // The message says truly whether something was published.
      const bool nothing = text.find("nothing was published") != std::string::npos;
      const bool durable =
          text.find("is durable in the file that was replaced") != std::string::npos;
      EXPECT_NE(nothing, durable) << text;
      EXPECT_EQ(newest_in(files, "/box/aside.shale"), nothing ? 2u : 3u) << text;
      refused = refused || nothing;
      too_late = too_late || durable;
      if (!removed) {
        EXPECT_EQ(newest_in(files, path), 1u);
      }
    }
  }
  EXPECT_TRUE(refused);
  EXPECT_TRUE(too_late);
}

// Another container, another history of the same one, or a copy of the generation that the commit
// began with is copied over the file before each call of a commit up to the one that publishes. The
// commit must not report a generation.
TEST(LostNames, AndLostContentsAreNoticedByEveryCommit) {
  enum class copy : std::uint8_t { of_another, of_another_history, of_the_same_generation };
  for (const copy kind :
       {copy::of_another, copy::of_another_history, copy::of_the_same_generation}) {
    std::optional<std::uint64_t>
        publishing;  // the number of the publishing call in an undisturbed commit
    const auto commit_disturbed_at = [&](std::optional<std::uint64_t> failing) {
      recording_file_system files;
      container_file writer = container_file::create(files, path, {.id = uuid{}});
      plain_state state;
      test::commit_step(writer, 0, state);
      uuid id;
      if (kind == copy::of_another) id.bytes[0] = 7;
      container_file other = container_file::create(files, "/box/other.shale", {.id = id});
      plain_state other_state;
      for (int step = 0; step < 3; ++step) test::commit_step(other, step, other_state);
      const auto copied = files.now().at(kind == copy::of_the_same_generation ? std::string(path)
                                                                              : "/box/other.shale");
      transaction change = writer.begin(at_once);
      test::tell(1, {change, state});
      std::uint64_t call = 0;
      files.before_call = [&] {
        if (!failing && !publishing && newest_in(files, path) == 3) publishing = call - 1;
        if (call++ != failing) return;
        std::unique_ptr<open_file> raw;
        files.open(path, open_access::write, raw);
        raw->truncate(0);
        raw->pwrite(copied, 0);
      };
      const errc code = code_of([&] { change.commit(); });
      files.before_call = nullptr;
      return code;
    };
    EXPECT_EQ(commit_disturbed_at({}), errc{});
    ASSERT_GT(publishing, 10u);
    for (std::uint64_t call = 0; call < *publishing; ++call)
      EXPECT_EQ(commit_disturbed_at(call), errc::io) << "call " << call;
  }
}

// A longer container is copied over the file during a transaction. Its end must stay: the
// transaction knows only where the old file ended.
TEST(LostNames, AndLostContentsAreLeftAsTheyAre) {
  for (const bool commits : {false, true}) {
    recording_file_system files;
    container_file writer = container_file::create(files, path, {.id = uuid{}});
    uuid their_id;
    their_id.bytes[0] = 7;
    container_file other = container_file::create(files, "/box/other.shale", {.id = their_id});
    plain_state theirs;
    for (int step = 0; step < 3; ++step) test::commit_step(other, step, theirs);
    const auto copied = files.now().at("/box/other.shale");
    std::optional<transaction> change = writer.begin(at_once);
    std::unique_ptr<open_file> raw;
    ASSERT_GE(files.open(path, open_access::write, raw), 0);
    ASSERT_LT(files.now().at(path).size(), copied.size());
    const std::size_t published = files.syncs().size() + 1;  // before the superblock is written
    bool done = false;
    const auto copy = [&] {
      raw->truncate(0);
      raw->pwrite(copied, 0);
      done = true;
    };
    if (commits) {
      files.before_call = [&] {
        if (!done && files.syncs().size() == published) copy();
      };
      EXPECT_EQ(code_of([&] { change->commit(); }), errc::io);
      files.before_call = nullptr;
    } else {
      copy();
    }
    change.reset();
    EXPECT_TRUE(done);
    EXPECT_TRUE(files.now().at(path) == copied);
    EXPECT_EQ(observe(container_file::open(files, path, open_access::read).latest()), theirs);
  }
}

// commit.3: another process cuts off what the transaction has added, when the data has been synced.
TEST(LostNames, AndLostLengthsAreNoticed) {
  recording_file_system files;
  container_file writer = container_file::create(files, path, {.id = uuid{}});
  plain_state told;
  test::commit_step(writer, 0, told);
  const std::uint64_t end = writer.latest().end_of_file();
  std::unique_ptr<open_file> raw;
  ASSERT_GE(files.open(path, open_access::write, raw), 0);
  {
    transaction change = writer.begin(at_once);
    plain_state lost = told;
    test::storyteller(change, lost).dense("large", 200'000, 2);
    const std::size_t synced = files.syncs().size() + 1;
    bool cut = false;
    files.before_call = [&] {
      if (cut || files.syncs().size() != synced) return;
      cut = true;
      raw->truncate(end);
    };
    const std::string text = test::text_of([&] { change.commit(); });
    files.before_call = nullptr;
    EXPECT_TRUE(cut);
    EXPECT_NE(text.find("the file has become shorter during the transaction [io]"),
              std::string::npos)
        << text;
    EXPECT_EQ(files.syncs().size(), synced) << "a superblock was written";
  }
  EXPECT_FALSE(writer.poisoned());
  EXPECT_EQ(observe(writer.latest()), told);
  EXPECT_EQ(test::unsound(writer.latest()), "");
  EXPECT_EQ(test::commit_step(writer, 1, told), 3u);
  EXPECT_EQ(observe(writer.latest()), told);
}

// What the transaction writes next would make the file long enough again.
TEST(LostNames, AndLostLengthsAreNoticedBeforeWritesHideThem) {
  recording_file_system files;
  container_file writer = container_file::create(files, path, {.id = uuid{}});
  plain_state told;
  test::commit_step(writer, 0, told);
  const std::uint64_t end = writer.latest().end_of_file();
  std::unique_ptr<open_file> raw;
  ASSERT_GE(files.open(path, open_access::write, raw), 0);
  for (const bool writes : {true, false}) {
    transaction change = writer.begin(at_once);
    plain_state lost = told;
    test::storyteller story(change, lost);
    story.dense("large", 200'000, 2);
    story.chunk("a", 31, 3);
    ASSERT_GE(raw->truncate(end + 50'000), 0);
    if (writes) {
      EXPECT_EQ(code_of([&] { story.chunk("a", 30, 3); }), errc::io);
    }
    EXPECT_EQ(code_of([&] { change.commit(); }), errc::io);
    EXPECT_EQ(observe(writer.latest()), told);
    EXPECT_EQ(test::unsound(writer.latest()), "");
  }
  EXPECT_EQ(test::commit_step(writer, 1, told), 3u);
}

// The errors for a file that another container was copied over.
TEST(LostNames, AndLostContentsAreNotReportedAsDamage) {
  recording_file_system files;
  container_file writer = container_file::create(files, path, {.id = uuid{}});
  uuid their_id;
  their_id.bytes[0] = 7;
  container_file::create(files, "/box/other.shale", {.id = their_id});
  std::unique_ptr<open_file> raw;
  ASSERT_GE(files.open(path, open_access::write, raw), 0);
  raw->pwrite(files.now().at("/box/other.shale"), 0);
  for (const auto& call :
       {std::function<void()>([&] { writer.begin(at_once); }), {[&] { writer.latest(); }}}) {
    const std::string text = test::text_of(call);
    EXPECT_NE(text.find("another container was written over the file [io]"), std::string::npos)
        << text;
  }
}

// Another container takes the name before each call of `open` in turn. `open` must still succeed:
// two descriptions of different files must not look like a file system without locks.
TEST(LostNames, DoNotLookLikeAFileSystemWithoutLocks) {
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    container_file::create(files, path, {.id = uuid{}});
    container_file::create(files, "/box/other.shale", {.id = uuid{}});
    bool replaced = false;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (replaced || files.calls() != start + call) return;
      replaced = true;
      files.rename("/box/other.shale", path);
    };
    EXPECT_EQ(container_file::open(files, path, open_access::write).latest().generation(), 1u);
    files.before_call = nullptr;
    if (!replaced) break;
  }
}

TEST(LostNames, ToAnotherContainerEndAWait) {
  recording_file_system files;
  const container_file waiter = container_file::create(files, path);
  container_file::create(files, "/box/other.shale").begin(at_once).commit();
  files.rename("/box/other.shale", path);
  for (const std::chrono::milliseconds timeout : {at_once, std::chrono::milliseconds{1'000}}) {
    EXPECT_EQ(code_of([&] { waiter.wait_newer(1, timeout); }), errc::io);
    EXPECT_EQ(code_of([&] { waiter.wait_newer(0, timeout); }), errc::io);
  }
}

// The name of a new container cannot be made durable, so `create` removes it. Before each of the
// calls that do so, another process gives the name to another file, or commits to the new file.
TEST(LostNames, AreNotRemovedByTheirEarlierOwner) {
  for (const bool other_file : {false, true}) {
    std::vector<bool> lost;
    for (std::uint64_t call = 0;; ++call) {
      recording_file_system files;
      container_file::create(files, "/box/other.shale", {.id = uuid{}}).begin(at_once).commit();
      std::optional<std::uint64_t> sync;  // the call that fails
      bool reached = false;
      bool theirs = false;
      files.before_call = [&] {
        const bool is_sync = !sync && files.now().contains(path);
        if (is_sync) sync = files.calls();
        if (sync && !reached && files.calls() == *sync + call) {
          reached = true;
          if (other_file) theirs = files.rename("/box/other.shale", path) >= 0;
          else
            theirs =
                code_of([&] {
                  container_file::open(files, path, open_access::write).begin(at_once).commit();
                }) == errc{};
        }
        if (is_sync) files.fail_call(files.calls(), test::fault::error, EIO);
      };
      EXPECT_EQ(code_of([&] { container_file::create(files, path, {.id = uuid{}}); }), errc::io);
      files.before_call = nullptr;
      if (!reached) break;
      lost.push_back(theirs && (!files.now().contains(path) || newest_in(files, path) != 2));
    }
    ASSERT_GT(lost.size(), 5u);
    // No system call removes a name only if it leads to a certain file. So a process that takes
    // names without a lock can come between the last check and the removal.
    if (other_file) lost.pop_back();
    EXPECT_EQ(std::count(lost.begin(), lost.end(), true), 0);
  }
}

}  // namespace
}  // namespace shale::format
