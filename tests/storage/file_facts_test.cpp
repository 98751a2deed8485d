// What is asked of files without their times, compared with what stat says.
#include "storage/system/file_facts.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "storage/system/not_offered.hpp"
#include "storage/test_support.hpp"

namespace shale::detail {
namespace {

void expect_same(const file_facts& found, const struct stat& wanted) {
  EXPECT_EQ(found.device, wanted.st_dev);
  EXPECT_EQ(found.inode, wanted.st_ino);
  EXPECT_EQ(found.bytes, static_cast<std::uint64_t>(wanted.st_size));
  EXPECT_EQ(found.mode, wanted.st_mode);
}

void expect_same_as_stat(const std::string& path) {
  struct stat wanted {};
  ASSERT_EQ(::stat(path.c_str(), &wanted), 0) << path;
  file_facts found;
  EXPECT_EQ(facts_of(AT_FDCWD, path.c_str(), found), 0) << path;
  expect_same(found, wanted);
}

TEST(FileFacts, AreThoseOfStat) {
  const test::scratch_directory directory;
  const std::string file = directory / "file", link = directory / "link";
  test::write_pattern(file, 12'345);
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  ASSERT_EQ(::symlink("file", link.c_str()), 0);
  for (const std::string& path : {file, link, directory / "", std::string("/dev/null"),
                                  std::string("/proc/self/status"), std::string("/dev/shm")})
    expect_same_as_stat(path);

  const int descriptor = ::open(file.c_str(), O_RDONLY);
  ASSERT_EQ(::unlink(file.c_str()), 0);
  struct stat wanted {};
  ASSERT_EQ(::fstat(descriptor, &wanted), 0);
  file_facts found;
  EXPECT_EQ(facts_of(descriptor, found), 0);
  expect_same(found, wanted);
  ::close(descriptor);

  EXPECT_EQ(facts_of(descriptor, found), EBADF);
  EXPECT_EQ(facts_of(AT_FDCWD, file.c_str(), found), ENOENT);
  EXPECT_EQ(facts_of(AT_FDCWD, link.c_str(), found), ENOENT);
}

TEST(FileFacts, OfANameBeginInTheFolder) {
  const test::scratch_directory directory;
  test::write_pattern(directory / "file", 77);
  const int folder = ::open((directory / "").c_str(), O_PATH | O_DIRECTORY);
  file_facts found;
  EXPECT_EQ(facts_of(folder, "file", found), 0);
  EXPECT_EQ(found.bytes, 77u);
  ::close(folder);
}

TEST(FileFacts, ACallThatASandboxRefusesIsNotOffered) {
  EXPECT_TRUE(is_not_offered(ENOSYS));
  EXPECT_TRUE(is_not_offered(EPERM));
  EXPECT_FALSE(is_not_offered(EIO));
  EXPECT_FALSE(is_not_offered(EBADF));
}

}  // namespace
}  // namespace shale::detail
