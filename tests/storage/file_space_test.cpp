// Whether bytes of a file can be overwritten without more space. Reserving is tested with the files
// that need it (mapped_file_test.cpp).
#include "storage/files/file_space.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/files/file_system_kind.hpp"
#include "storage/test_support.hpp"
#include "support/full_disk.hpp"

namespace shale::detail {
namespace {

constexpr std::uint64_t mib = 1u << 20;

class FileSpace : public testing::Test {
 protected:
  FileSpace() : file(::open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    alignas(fiemap) std::byte request[sizeof(fiemap)] = {};
    reinterpret_cast<fiemap*>(request)->fm_length = mib;
    struct statfs status {};
    is_told = ::ioctl(file, FS_IOC_FIEMAP, request) == 0 && ::fstatfs(file, &status) == 0 &&
              !copies_on_write(static_cast<std::uint64_t>(status.f_type));
  }
  ~FileSpace() override { ::close(file); }

  void write(std::uint64_t offset, std::uint64_t bytes) const {
    const std::vector<char> data(bytes, 1);
    ASSERT_EQ(::pwrite(file, data.data(), bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes));
  }

  // File systems in memory do not tell it, and the usual folder may lie in one.
  const test::scratch_directory directory{"/var/tmp"};
  const std::string path = directory / "file";
  const int file;
  bool is_told = false;  // this file system says where the bytes of a file lie
};

TEST_F(FileSpace, OfHolesIsMissing) {
  ASSERT_EQ(::ftruncate(file, 4 * mib), 0);
  EXPECT_FALSE(has_space(file, 0, 4 * mib));
  write(0, mib);
  write(2 * mib, mib);
  ASSERT_EQ(::fsync(file), 0);
  EXPECT_FALSE(has_space(file, 0, 4 * mib));
  EXPECT_FALSE(has_space(file, 0, 3 * mib)) << "a hole in the middle";
  EXPECT_FALSE(has_space(file, mib, 3 * mib)) << "a hole at the beginning";
  EXPECT_FALSE(has_space(file, mib, 2 * mib));
  EXPECT_FALSE(has_space(file, mib / 2, 2 * mib + mib / 2));
  EXPECT_FALSE(has_space(file, 3 * mib - 4096, 3 * mib + 4096));
  EXPECT_FALSE(has_space(file, 5 * mib, 6 * mib)) << "the file has ended before";
}

TEST_F(FileSpace, OfWrittenAndReservedBytesIsThere) {
  write(0, 2 * mib);
  ASSERT_EQ(::fsync(file), 0);
  EXPECT_EQ(has_space(file, 0, 2 * mib), is_told);
  EXPECT_EQ(has_space(file, 4096, 8192), is_told);
  ASSERT_EQ(::posix_fallocate(file, 2 * mib, 2 * mib), 0);
  EXPECT_EQ(has_space(file, 0, 4 * mib), is_told);
  EXPECT_EQ(has_space(file, 3 * mib, 4 * mib), is_told);
}

// The blocks of a file with a hole may be those of the range.
TEST(SurelyFull, IsNoFileThatHasItsBlocksBehindAHole) {
  const test::small_disk disk;
  const int file = ::open((disk.files() / "sparse").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  const std::vector<char> data(600u << 10, 1);
  ASSERT_EQ(::pwrite(file, data.data(), data.size(), 3 * mib), static_cast<ssize_t>(data.size()));
  const std::uint64_t end = 3 * mib + data.size();
  EXPECT_FALSE(is_surely_full(file, 3 * mib, end));
  EXPECT_FALSE(is_surely_full(file, 3 * mib, end + (100u << 10)));
  if (disk.is_mounted()) {
    EXPECT_TRUE(is_surely_full(file, 3 * mib, end + mib));
    EXPECT_TRUE(is_surely_full(file, 0, 3 * mib)) << "more than all blocks of the disk";
  }
  ::close(file);
}

TEST_F(FileSpace, BeyondTheLimitOfFilesIsMissing) {
  write(0, 2 * mib);
  ASSERT_EQ(::fsync(file), 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low{mib, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const bool below = has_space(file, 0, mib), above = has_space(file, 0, mib + 4096);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(below, is_told);
  EXPECT_FALSE(above);
}

}  // namespace
}  // namespace shale::detail
