#include "shale/container.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "array/test_support.hpp"
#include "shale/snapshot.hpp"
#include "shale/verification.hpp"

namespace shale {
namespace {

using test::code_of;
using test::findings_of;
using test::text_of;

class Container : public testing::Test {
 protected:
  std::uint64_t add(container& file, const std::string& name, const tensor& values,
                    array_kind kind = array_kind::dense) {
    transaction change = file.begin();
    change.create(name, {.dtype = values.dtype(), .shape = values.shape(), .kind = kind})
        .write(values);
    return change.commit();
  }

  test::scratch_directory directory_;
  std::string path_ = directory_ / "survey.shale";
};

TEST_F(Container, StartsEmptyAndSound) {
  const container file = container::create(path_);
  const snapshot first = file.latest();
  EXPECT_EQ(first.generation(), 1u);
  EXPECT_TRUE(first.names().empty());
  const verification all = file.verify();
  EXPECT_TRUE(all.findings.empty()) << findings_of(file);
  EXPECT_EQ(all.generation, 1u);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(all.file_bytes, static_cast<std::uint64_t>(status.st_size));
  EXPECT_EQ(all.live_bytes + all.freed_bytes + all.free_bytes, all.file_bytes);
}

TEST_F(Container, IsNotCreatedOverAnother) {
  container::create(path_);
  EXPECT_EQ(code_of([&] { container::create(path_); }), errc::already_exists);
}

TEST_F(Container, HasThePermissionsThatItIsCreatedWith) {
  const mode_t before = ::umask(022);
  for (const auto& [wanted, given] : {std::pair(0600u, 0600u), {0660u, 0640u}, {0777u, 0755u}}) {
    container::create(path_, open_mode::write, wanted);
    struct stat status {};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, given);
    ASSERT_EQ(::unlink(path_.c_str()), 0);
  }
  ::umask(before);
  for (const unsigned wrong : {0444u, 0200u, 01600u, 010600u}) {
    EXPECT_EQ(code_of([&] { container::create(path_, open_mode::write, wrong); }),
              errc::invalid_argument);
    EXPECT_NE(::access(path_.c_str(), F_OK), 0);
  }
}

TEST_F(Container, KeepsItsUuid) {
  const std::string uuid = container::create(path_).uuid();
  EXPECT_EQ(uuid.size(), 36u);
  EXPECT_EQ(container::open(path_).uuid(), uuid);
  EXPECT_NE(container::create(directory_ / "other.shale").uuid(), uuid);
}

TEST_F(Container, AbsenceIsNotExceptional) {
  EXPECT_FALSE(container::open_if_exists(path_));
  EXPECT_EQ(code_of([&] { container::open(path_); }), errc::not_found);
  EXPECT_EQ(code_of([&] { container::open_or_create(directory_ / "no/such.shale"); }),
            errc::not_found);
}

TEST_F(Container, OpenOrCreateOpensWhatIsThere) {
  container made = container::open_or_create(path_);
  add(made, "dem", test::seeded({3, 4}, 1));
  const container again = container::open_or_create(path_);
  EXPECT_EQ(again.uuid(), made.uuid());
  EXPECT_TRUE(again.latest().find("dem"));
}

TEST_F(Container, RefusesWhatIsNoContainer) {
  std::ofstream(path_) << std::string(100'000, 'x');
  const std::string text = text_of([&] { container::open(path_); });
  EXPECT_NE(text.find("[corrupt]"), std::string::npos) << text;
  EXPECT_NE(text.find(path_), std::string::npos) << text;
}

// A call that opens a container by name has no earlier container that another one could have
// replaced.
TEST_F(Container, OpensTheFileThatTookItsName) {
  container::create(path_);
  std::atomic<bool> done = false;
  std::thread replacing([&] {
    for (int round = 0; round < 150; ++round) {
      const std::string next = path_ + ".next";
      container::create(next);
      container::open(path_, open_mode::write).begin().replace_by(next);
    }
    done = true;
  });
  while (!done) {
    EXPECT_EQ(code_of([&] { container::open(path_); }), errc{});
    EXPECT_EQ(code_of([&] { container::open_or_create(path_); }), errc{});
  }
  replacing.join();
}

TEST_F(Container, RefusesToBeReplacedByNothing) {
  container file = container::create(path_);
  EXPECT_EQ(code_of([&] { file.begin().replace_by(""); }), errc::invalid_argument);
  EXPECT_NE(test::text_of([&] { file.begin().replace_by(""); }).find("is empty"),
            std::string::npos);
}

TEST_F(Container, OpenedForReadingBeginsNothing) {
  container::create(path_);
  container file = container::open(path_);
  EXPECT_EQ(code_of([&] { file.begin(); }), errc::access_denied);
}

TEST_F(Container, SnapshotsStayWhatTheyWere) {
  container file = container::create(path_);
  const tensor first = test::seeded({50, 60}, 1);
  const tensor second = test::seeded({50, 60}, 2);
  add(file, "a", first);
  const snapshot before = file.latest();
  {
    transaction change = file.begin();
    change.update("a").write(second);
    change.create("b", {.shape = {2}});
    change.commit();
  }
  const snapshot after = file.latest();
  EXPECT_EQ(after.generation(), before.generation() + 1);
  EXPECT_TRUE(equal_bits(before.at("a").map(), first));
  EXPECT_TRUE(equal_bits(after.at("a").map(), second));
  EXPECT_FALSE(before.find("b"));
  EXPECT_EQ(after.names(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(Container, ListsNamesByPrefixInPages) {
  container file = container::create(path_);
  transaction change = file.begin();
  for (const char* name : {"x/2", "x/1", "y", "x", "x/10"}) change.create(name, {.shape = {1}});
  change.commit();
  const snapshot now = file.latest();
  EXPECT_EQ(now.names(), (std::vector<std::string>{"x", "x/1", "x/10", "x/2", "y"}));
  EXPECT_EQ(now.names("x/"), (std::vector<std::string>{"x/1", "x/10", "x/2"}));
  EXPECT_EQ(now.names("x/", "x/1", 1), std::vector<std::string>{"x/10"});
}

TEST_F(Container, MissingArraysAreNamedWithCloseOnes) {
  container file = container::create(path_);
  add(file, "elevation", test::seeded({2}, 0));
  const snapshot now = file.latest();
  EXPECT_FALSE(now.find("elevatoin"));
  const std::string text = text_of([&] { now.at("elevatoin"); });
  EXPECT_NE(text.find("[not_found]"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'elevation'?"), std::string::npos) << text;
  EXPECT_NE(text.find(path_), std::string::npos) << text;
}

TEST_F(Container, WaitNewerAnswersAtOnceOrInTime) {
  container file = container::create(path_);
  EXPECT_EQ(file.wait_newer(0, no_wait), 1u);
  EXPECT_FALSE(file.wait_newer(1, {20}));
  add(file, "a", test::seeded({2}, 0));
  EXPECT_EQ(file.wait_newer(1, {20}), 2u);
}

TEST_F(Container, ClosedGivesUpItsDescriptorsButNotItsSnapshots) {
  container file = container::create(path_);
  const tensor values = test::seeded({1000}, 5);
  add(file, "a", values);
  const snapshot kept = file.latest();
  file.close();
  EXPECT_EQ(code_of([&] { file.latest(); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { file.begin(); }), errc::invalid_argument);
  EXPECT_TRUE(equal_bits(kept.at("a").map(), values));
}

TEST_F(Container, SecondWriterIsBusyUntilTheFirstEnds) {
  container file = container::create(path_);
  container other = container::open(path_, open_mode::write);
  {
    const transaction first = file.begin();
    EXPECT_EQ(code_of([&] { other.begin({10}); }), errc::busy);
    EXPECT_EQ(code_of([&] { file.begin(no_wait); }), errc::busy);
    EXPECT_EQ(file.latest().generation(), 1u);
  }
  EXPECT_EQ(other.begin().generation(), 2u);
}

TEST_F(Container, WaitsForEverWhereThatIsAsked) {
  constexpr timeout for_ever{std::numeric_limits<std::int64_t>::max()};
  container file = container::create(path_);
  std::optional<transaction> change = file.begin(for_ever);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    change.reset();
  });
  EXPECT_NO_THROW(file.begin(for_ever).commit());
  later.join();
  EXPECT_EQ(file.wait_newer(1, for_ever), 2u);
}

}  // namespace
}  // namespace shale
