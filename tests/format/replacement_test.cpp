// Tests containers that take the name of another one under its writer lock.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
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
constexpr char path[] = "/box/named.shale";

// Another writer tries to commit before each call of a replacement. If its commit is reported, the
// commit is in the file that has the name in the end.
TEST(Replacement, LosesNoCommit) {
  bool let = false;
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    container_file::create(files, path, {.id = uuid{}});
    container_file::create(files, "/box/copy.shale", {.id = uuid{}});
    container_file other = container_file::open(files, path, open_access::write);
    container_file writer = container_file::open(files, path, open_access::write);
    const std::uint64_t start = files.calls();
    bool ran = false;
    std::uint64_t committed = 0;
    files.before_call = [&] {
      if (ran || files.calls() != start + call) return;
      ran = true;
      const errc code = code_of([&] {
        transaction change = other.begin(at_once);
        change.put(test::chunked_record("theirs"));
        change.commit();
        ++committed;
      });
      EXPECT_TRUE(committed == 1 || code == errc::busy) << "call " << call;
    };
    std::uint64_t base = 0;
    {
      transaction hold = writer.begin(at_once);
      base = hold.generation() - 1;
      // Copies the newest generation, like a caller of `replace_by`.
      if (base == 2) {
        container_file copy = container_file::open(files, "/box/copy.shale", open_access::write);
        transaction filled = copy.begin(at_once);
        filled.put(test::chunked_record("theirs"));
        filled.commit();
      }
      hold.replace_by("/box/copy.shale");
      EXPECT_FALSE(hold.active());
    }
    files.before_call = nullptr;
    EXPECT_FALSE(files.now().contains("/box/copy.shale"));
    const auto newest = container_file::open(files, path, open_access::read).latest();
    EXPECT_EQ(newest.find("theirs").has_value(), committed == 1) << "call " << call;
    let = let || committed == 1;
    if (!ran) break;
  }
  EXPECT_TRUE(let);
}

TEST(Replacement, IsRefusedIfTheTargetIsNoFreeContainer) {
  recording_file_system files;
  container_file writer = container_file::create(files, path);
  container_file other = container_file::create(files, "/box/other.shale");
  const auto code = [&](const std::string& program) {
    transaction hold = writer.begin(at_once);
    return code_of([&] { hold.replace_by(program); });
  };
  EXPECT_EQ(code(path), errc::invalid_argument);
  EXPECT_EQ(code("/box/none.shale"), errc::not_found);
  {
    const transaction busy = other.begin(at_once);
    EXPECT_EQ(code("/box/other.shale"), errc::busy);
  }
  for (const std::uint64_t slot : superblock_offsets)
    files.flip("/box/other.shale", slot, std::byte{1});
  EXPECT_EQ(code("/box/other.shale"), errc::corrupt);
  EXPECT_EQ(writer.latest().generation(), 1u);
  EXPECT_EQ(files.now().size(), 2u);
}

// An older generation of it is whole, but whoever opens it is told that the newest one is lost.
TEST(Replacement, IsRefusedIfTheTargetHasLostItsNewestCommit) {
  recording_file_system files;
  container_file writer = container_file::create(files, path);
  container_file::create(files, "/box/other.shale").begin(at_once).commit();
  files.flip("/box/other.shale", superblock_offsets[1], std::byte{1});  // of generation 2
  ASSERT_EQ(
      code_of([&] { container_file::open(files, "/box/other.shale", open_access::read).latest(); }),
      errc::corrupt);
  {
    transaction hold = writer.begin(at_once);
    EXPECT_EQ(code_of([&] { hold.replace_by("/box/other.shale"); }), errc::corrupt);
  }
  EXPECT_EQ(writer.latest().generation(), 1u);
  EXPECT_EQ(files.now().size(), 2u);
}

// The attempt to take the writer lock of the other container is the one call of this kind that a
// replacement makes. It fails, or a signal interrupts it.
TEST(Replacement, IsToldWhyTheLockOfTheTargetIsNotTaken) {
  const auto code_if_the_lock_fails = [](test::fault how, int error_number) {
    for (std::uint64_t call = 0; call < 1000; ++call) {
      recording_file_system files;
      container_file writer = container_file::create(files, path);
      container_file::create(files, "/box/copy.shale");
      transaction hold = writer.begin(at_once);
      files.fail_call(files.calls() + call, how, error_number);
      const errc code = code_of([&] { hold.replace_by("/box/copy.shale"); });
      if (files.failed_call() == "try_lock") return code;
    }
    return errc::unsupported;  // the call was not found
  };
  EXPECT_EQ(code_if_the_lock_fails(test::fault::interrupted, 0), errc{});
  EXPECT_EQ(code_if_the_lock_fails(test::fault::error, EIO), errc::io);
  EXPECT_EQ(code_if_the_lock_fails(test::fault::error, EAGAIN), errc::busy);
}

// Another file takes the name of the copy before some call of the replacement. If that comes after
// the copy was opened, the replacement is refused: the other file was neither checked nor synced.
// Only a change directly before the call that renames cannot be seen.
TEST(Replacement, IsRefusedAfterTheTargetLostItsName) {
  std::vector<bool> took_other;  // by call
  for (bool done = false; !done;) {
    recording_file_system files;
    container_file writer = container_file::create(files, path);
    container_file::create(files, "/box/copy.shale");
    const uuid other = container_file::create(files, "/box/other.shale").id();
    transaction hold = writer.begin(at_once);
    std::size_t calls = 0;
    files.before_call = [&] {
      if (calls++ == took_other.size()) files.rename("/box/other.shale", "/box/copy.shale");
    };
    const errc code = code_of([&] { hold.replace_by("/box/copy.shale"); });
    files.before_call = nullptr;
    done = calls <= took_other.size();
    took_other.push_back(code == errc{} &&
                         container_file::open(files, path, open_access::read).id() == other);
  }
  const auto opened = std::find(took_other.begin(), took_other.end(), false);
  ASSERT_NE(opened, took_other.begin());
  EXPECT_LE(std::count(opened, took_other.end(), true), 1);
}

// One more descriptor is left each time, until they are enough.
TEST(Replacement, ThatLacksADescriptorLeavesTheNameAsItWas) {
  for (int left = 0;; ++left) {
    SCOPED_TRACE(left);
    recording_file_system files;
    container_file writer = container_file::create(files, path);
    const uuid before = writer.id();
    container_file::create(files, "/box/copy.shale");
    transaction hold = writer.begin(at_once);
    files.open_files_max = files.open_files() + left;
    const errc code = code_of([&] { hold.replace_by("/box/copy.shale"); });
    files.open_files_max = INT_MAX;
    const uuid after = container_file::open(files, path, open_access::read).id();
    EXPECT_EQ(after == before, code != errc{});
    EXPECT_EQ(files.now().contains("/box/copy.shale"), code != errc{});
    if (code == errc{}) {
      EXPECT_GT(left, 0);
      break;
    }
    ASSERT_EQ(code, errc::io);
    EXPECT_TRUE(hold.active());
  }
}

// Another file took the name while the copy was made.
TEST(Replacement, IsRefusedAfterTheNameWasLost) {
  recording_file_system files;
  container_file writer = container_file::create(files, path);
  container_file::create(files, "/box/copy.shale");
  container_file::create(files, "/box/other.shale");
  transaction hold = writer.begin(at_once);
  files.rename("/box/other.shale", path);
  EXPECT_EQ(code_of([&] { hold.replace_by("/box/copy.shale"); }), errc::io);
  EXPECT_TRUE(files.now().contains("/box/copy.shale"));
}

// Replaces a container with one array by a copy, which has the same array. After a crash the name
// leads to a container with that array, wherever the crash comes.
class DurableReplacement : public testing::Test {
 protected:
  const std::string copy_path = "/box/copy.shale";
  recording_file_system files;
  container_file own = container_file::create(files, path, {.id = uuid{}});
  plain_state told;

  void SetUp() override { test::commit_step(own, 0, told); }

  void replace() {
    const std::size_t before = files.changes();
    own.begin(at_once).replace_by(copy_path);
    EXPECT_FALSE(files.now().contains(copy_path));
    std::mt19937_64 random(11);
    recording_file_system::replay crash(files);
    while (crash.next()) {
      if (crash.count() < before) continue;
      for (int cut = 0; cut < 8; ++cut) {
        SCOPED_TRACE("after " + std::to_string(crash.count() - before) + " changes");
        expect_array(crash.after_power_cut(&random));
      }
    }
    expect_array(files.after_power_cut(nullptr));
  }

 private:
  void expect_array(const recording_file_system::image& image) {
    recording_file_system left(image);
    const errc failed = code_of([&] {
      const auto seen = container_file::open(left, path, open_access::read).latest();
      EXPECT_EQ(observe(seen), told);
      EXPECT_EQ(test::unsound(seen), "");
    });
    EXPECT_EQ(failed, errc{});
  }
};

// As `cp` makes it.
TEST_F(DurableReplacement, SyncsACopyThatNobodyHasSynced) {
  const recording_file_system::content bytes = files.now().at(path);
  std::unique_ptr<open_file> made;
  ASSERT_EQ(files.create_unnamed(copy_path, 0600, made), 0);
  ASSERT_EQ(made->pwrite(bytes, 0), static_cast<os_result>(bytes.size()));
  ASSERT_EQ(files.link(*made, copy_path), 0);
  made.reset();
  replace();
}

// The superblock of its last commit is in the cache, and may not be on the device.
TEST_F(DurableReplacement, WritesSuperblocksAgainWhoseSyncFailed) {
  plain_state theirs;
  {
    container_file other = container_file::create(files, copy_path, {.id = uuid{}});
    files.fail_sync(2);  // those of `begin` and of the data succeed
    EXPECT_EQ(code_of([&] { test::commit_step(other, 0, theirs); }), errc::io);
    files.fail_sync(1'000'000);
  }
  ASSERT_EQ(observe(container_file::open(files, copy_path, open_access::read).latest()), told);
  replace();
}

// The pages of its last commit could not be written and have left the cache, but a reader has them.
TEST_F(DurableReplacement, IsRefusedIfAReaderHoldsAGenerationThatWasLost) {
  plain_state theirs;
  {
    container_file other = container_file::create(files, copy_path, {.id = uuid{}});
    files.fail_sync(2);
    EXPECT_EQ(code_of([&] { test::commit_step(other, 0, theirs); }), errc::io);
    files.fail_sync(1'000'000);
  }
  std::optional<generation_view> reader =
      container_file::open(files, copy_path, open_access::read).latest();
  EXPECT_EQ(reader->generation(), 2u);
  files.evict_lost();
  EXPECT_EQ(code_of([&] { own.begin(at_once).replace_by(copy_path); }), errc::io);
  EXPECT_TRUE(files.now().contains(copy_path));
  EXPECT_EQ(own.latest().generation(), 2u);
  reader.reset();
  EXPECT_EQ(code_of([&] { own.begin(at_once).replace_by(copy_path); }), errc{});
}

TEST_F(DurableReplacement, IsRefusedIfTheSyncFails) {
  container_file other = container_file::create(files, copy_path, {.id = uuid{}});
  test::commit_step(other, 0, told);
  transaction hold = own.begin(at_once);
  files.fail_sync(0);
  EXPECT_EQ(code_of([&] { hold.replace_by(copy_path); }), errc::io);
  files.fail_sync(1'000'000);
  hold.abort();
  EXPECT_TRUE(files.now().contains(copy_path));
  EXPECT_TRUE(other.poisoned());
  EXPECT_FALSE(own.poisoned());
  EXPECT_EQ(own.latest().generation(), 2u);
  EXPECT_NO_THROW(own.begin(at_once));
}

// The link lies in another folder than the container that it leads to, and its text is relative.
TEST(Replacement, RenamesTheFileThatALinkLeadsTo) {
  const test::scratch_directory box;
  const std::string own = box / "a/data.shale";
  const std::string copy = box / "b/copies/new.shale";
  const std::string link = box / "b/link";
  std::filesystem::create_directories(box / "a");
  std::filesystem::create_directories(box / "b/copies");
  std::filesystem::create_symlink("copies/new.shale", link);
  container_file writer = container_file::create(posix_files(), own);
  plain_state theirs;
  container_file made = container_file::create(posix_files(), copy);
  test::commit_step(made, 0, theirs);
  transaction hold = writer.begin(at_once);
  hold.replace_by(link);
  EXPECT_FALSE(hold.active());
  EXPECT_FALSE(std::filesystem::is_symlink(own));
  EXPECT_FALSE(std::filesystem::exists(copy));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(observe(container_file::open(posix_files(), own, open_access::read).latest()), theirs);
}

}  // namespace
}  // namespace shale::format
