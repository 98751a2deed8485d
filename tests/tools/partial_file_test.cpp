#include "partial_file.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

class PartialFile : public testing::Test {
 protected:
  PartialFile() {
    char pattern[] = "/tmp/shale-partial-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~PartialFile() override { std::filesystem::remove_all(directory_); }

  std::string target() const { return directory_ + "/x.png"; }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(directory_), {});
  }

  std::string directory_;
};

TEST_F(PartialFile, AppearsWhenItIsPublished) {
  partial_file file(target(), replacing::refuse);
  write(file.path(), "new");
  EXPECT_FALSE(file_exists(target()));
  file.publish();
  EXPECT_EQ(read(target()), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(PartialFile, LeavesNothingBehindOtherwise) {
  write(target(), "old");
  {
    const partial_file file(target(), replacing::allow);
    write(file.path(), "new");
  }
  EXPECT_EQ(read(target()), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(PartialFile, ReplacesOnlyWhenAllowed) {
  write(target(), "old");
  EXPECT_THROW(partial_file(target(), replacing::refuse), error);
  partial_file file(target(), replacing::allow);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(read(target()), "new");
}

TEST_F(PartialFile, TakesThePermissionsOfWhatItReplaces) {
  write(target(), "old");
  std::filesystem::permissions(target(), std::filesystem::perms(0640));
  partial_file file(target(), replacing::allow);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(std::filesystem::status(target()).permissions(), std::filesystem::perms(0640));
}

TEST_F(PartialFile, RefusesATargetThatAppearedMeanwhile) {
  partial_file file(target(), replacing::refuse);
  write(file.path(), "new");
  write(target(), "somebody else's");
  try {
    file.publish();
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::already_exists);
  }
  EXPECT_EQ(read(target()), "somebody else's");
}

TEST_F(PartialFile, SaysAtOnceThatADirectoryIsMissing) {
  try {
    partial_file(directory_ + "/none/x.png", replacing::refuse);
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_found);
  }
}

TEST_F(PartialFile, ReplacesNothingButRegularFiles) {
  ASSERT_EQ(::mkfifo(target().c_str(), 0600), 0);
  for (const std::string& wrong : {target(), directory_, std::string("/dev/null")}) {
    try {
      partial_file(wrong, replacing::allow);
      FAIL() << wrong;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument);
    }
  }
  EXPECT_TRUE(std::filesystem::is_fifo(target()));
}

TEST_F(PartialFile, FollowsALinkThatStays) {
  std::filesystem::create_directory(directory_ + "/below");
  write(directory_ + "/below/real.png", "old");
  std::filesystem::create_symlink("below/real.png", target());
  partial_file file(target(), replacing::allow);
  write(file.path(), "new");
  file.publish();
  EXPECT_TRUE(std::filesystem::is_symlink(target()));
  EXPECT_EQ(read(directory_ + "/below/real.png"), "new");
}

TEST_F(PartialFile, FollowsLinksToWhatIsNotThereYet) {
  std::filesystem::create_directory(directory_ + "/below");
  std::filesystem::create_symlink("below/other.png", target());
  std::filesystem::create_symlink("real.png", directory_ + "/below/other.png");
  partial_file file(target(), replacing::refuse);
  write(file.path(), "new");
  file.publish();
  EXPECT_TRUE(std::filesystem::is_symlink(target()));
  EXPECT_EQ(read(directory_ + "/below/real.png"), "new");
  EXPECT_THROW(partial_file(target(), replacing::refuse), error);
  std::filesystem::create_symlink("loop", directory_ + "/loop");
  EXPECT_THROW(partial_file(directory_ + "/loop", replacing::allow), error);
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ + "/loop"));
}

// Containers that share a volume often have the same process numbers.
TEST_F(PartialFile, HasANameOfItsOwnEachTime) {
  const partial_file first(target(), replacing::refuse);
  const partial_file second(target(), replacing::refuse);
  EXPECT_NE(first.path(), second.path());
}

TEST_F(PartialFile, TakesTheLongestName) {
  const std::string longest = directory_ + "/" + std::string(251, 'n') + ".png";
  partial_file file(longest, replacing::refuse);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(read(longest), "new");
}

TEST_F(PartialFile, RemovesAllBeforeASuddenEnd) {
  const partial_file file(target(), replacing::refuse);
  write(file.path(), "new");
  EXPECT_EXIT(exit_without_partial_files(7), testing::ExitedWithCode(7), "");
  EXPECT_EQ(files(), 0);
}

// A file that was made just then, behind the removal, stayed.
TEST_F(PartialFile, IsNotMadeWhileTheProcessEndsSuddenly) {
  for (int round = 0; round < 50; ++round) {
    const auto make_until_the_end = [&] {
      std::vector<std::jthread> makers;
      std::atomic<int> made = 0;
      for (int k = 0; k < 4; ++k)
        makers.emplace_back([&] {
          for (;; ++made) {
            const partial_file file(target(), replacing::refuse);
            file.make([&] { write(file.path(), "new"); });
          }
        });
      while (made < 100) std::this_thread::yield();
      exit_without_partial_files(7);
    };
    EXPECT_EXIT(make_until_the_end(), testing::ExitedWithCode(7), "");
    ASSERT_EQ(files(), 0);
  }
}

}  // namespace
}  // namespace shale::tools
