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
#include "shale/foreign_file.hpp"
#include "shale/raw.hpp"

namespace shale {
namespace {

class UnfinishedFile : public testing::Test {
 protected:
  UnfinishedFile() {
    char pattern[] = "/tmp/shale-unfinished-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~UnfinishedFile() override { std::filesystem::remove_all(directory_); }

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

TEST_F(UnfinishedFile, AppearsWhenItIsPublished) {
  unfinished_file file(target(), existing_file::refuse);
  write(file.path(), "new");
  EXPECT_FALSE(std::filesystem::exists(target()));
  file.publish();
  EXPECT_EQ(read(target()), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(UnfinishedFile, LeavesNothingBehindOtherwise) {
  write(target(), "old");
  {
    const unfinished_file file(target(), existing_file::replace);
    write(file.path(), "new");
  }
  EXPECT_EQ(read(target()), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(UnfinishedFile, ReplacesOnlyWhenAllowed) {
  write(target(), "old");
  EXPECT_THROW(unfinished_file(target(), existing_file::refuse), error);
  unfinished_file file(target(), existing_file::replace);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(read(target()), "new");
}

TEST_F(UnfinishedFile, TakesThePermissionsOfWhatItReplaces) {
  write(target(), "old");
  std::filesystem::permissions(target(), std::filesystem::perms(0640));
  unfinished_file file(target(), existing_file::replace);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(std::filesystem::status(target()).permissions(), std::filesystem::perms(0640));
}

TEST_F(UnfinishedFile, RefusesATargetThatAppearedMeanwhile) {
  unfinished_file file(target(), existing_file::refuse);
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

TEST_F(UnfinishedFile, SaysAtOnceThatADirectoryIsMissing) {
  try {
    unfinished_file(directory_ + "/none/x.png", existing_file::refuse);
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_found);
  }
}

TEST_F(UnfinishedFile, ReplacesNothingButRegularFiles) {
  ASSERT_EQ(::mkfifo(target().c_str(), 0600), 0);
  for (const std::string& wrong : {target(), directory_, std::string("/dev/null")}) {
    try {
      unfinished_file(wrong, existing_file::replace);
      FAIL() << wrong;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument);
    }
  }
  EXPECT_TRUE(std::filesystem::is_fifo(target()));
}

TEST_F(UnfinishedFile, FollowsALinkThatStays) {
  std::filesystem::create_directory(directory_ + "/below");
  write(directory_ + "/below/real.png", "old");
  std::filesystem::create_symlink("below/real.png", target());
  unfinished_file file(target(), existing_file::replace);
  write(file.path(), "new");
  file.publish();
  EXPECT_TRUE(std::filesystem::is_symlink(target()));
  EXPECT_EQ(read(directory_ + "/below/real.png"), "new");
}

TEST_F(UnfinishedFile, FollowsLinksToWhatIsNotThereYet) {
  std::filesystem::create_directory(directory_ + "/below");
  std::filesystem::create_symlink("below/other.png", target());
  std::filesystem::create_symlink("real.png", directory_ + "/below/other.png");
  unfinished_file file(target(), existing_file::refuse);
  write(file.path(), "new");
  file.publish();
  EXPECT_TRUE(std::filesystem::is_symlink(target()));
  EXPECT_EQ(read(directory_ + "/below/real.png"), "new");
  EXPECT_THROW(unfinished_file(target(), existing_file::refuse), error);
  std::filesystem::create_symlink("loop", directory_ + "/loop");
  EXPECT_THROW(unfinished_file(directory_ + "/loop", existing_file::replace), error);
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ + "/loop"));
}

TEST_F(UnfinishedFile, MayBeMadeByAnotherWriter) {
  unfinished_file file(target(), existing_file::refuse);
  file.create([&] { write_raw(file.path(), tensor::of<std::uint8_t>({65, 66})); });
  file.publish();
  EXPECT_EQ(read(target()), "AB");
  EXPECT_EQ(files(), 1);
}

// Containers that share a volume often have the same process numbers.
TEST_F(UnfinishedFile, HasANameOfItsOwnEachTime) {
  const unfinished_file first(target(), existing_file::refuse);
  const unfinished_file second(target(), existing_file::refuse);
  EXPECT_NE(first.path(), second.path());
}

TEST_F(UnfinishedFile, TakesTheLongestName) {
  const std::string longest = directory_ + "/" + std::string(251, 'n') + ".png";
  unfinished_file file(longest, existing_file::refuse);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(read(longest), "new");
}

TEST_F(UnfinishedFile, RemovesAllBeforeASuddenEnd) {
  const unfinished_file file(target(), existing_file::refuse);
  write(file.path(), "new");
  EXPECT_EXIT(exit_without_unfinished_files(7), testing::ExitedWithCode(7), "");
  EXPECT_EQ(files(), 0);
}

// A file that was made just then, behind the removal, stayed.
TEST_F(UnfinishedFile, IsNotMadeWhileTheProcessEndsSuddenly) {
  for (int round = 0; round < 50; ++round) {
    const auto make_until_the_end = [&] {
      std::vector<std::jthread> makers;
      std::atomic<int> made = 0;
      for (int k = 0; k < 4; ++k)
        makers.emplace_back([&] {
          for (;; ++made) {
            const unfinished_file file(target(), existing_file::refuse);
            file.create([&] { write(file.path(), "new"); });
          }
        });
      while (made < 100) std::this_thread::yield();
      exit_without_unfinished_files(7);
    };
    EXPECT_EXIT(make_until_the_end(), testing::ExitedWithCode(7), "");
    ASSERT_EQ(files(), 0);
  }
}

}  // namespace
}  // namespace shale
