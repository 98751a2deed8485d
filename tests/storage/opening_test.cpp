// Opens files that exist: pipes, leased files, and files that are neither.
#include "storage/files/opening.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>

#include "shale/mapped_file.hpp"
#include "storage/files/file_descriptor.hpp"
#include "support/bounded.hpp"
#include "support/lease_holder.hpp"
#include "support/scratch_directory.hpp"

namespace shale::detail {
namespace {

class Opening : public testing::Test {
 protected:
  int error_of(const std::string& path, int flags) {
    const file_descriptor opened(open_past_leases(AT_FDCWD, path, flags));
    return opened ? 0 : errno;
  }

  test::scratch_directory directory_;
  const std::string path_ = directory_ / "file";
  const test::hang_alarm limit_;
};

TEST_F(Opening, FindsFilesFromADirectory) {
  test::write_file(path_, "");
  const file_descriptor folder(open_past_leases(AT_FDCWD, directory_ / ".", O_PATH | O_DIRECTORY));
  ASSERT_TRUE(folder);
  const file_descriptor file(open_past_leases(folder.get(), "file", O_RDWR));
  ASSERT_TRUE(file);
  EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(error_of(directory_ / "other", O_RDONLY), ENOENT);
}

TEST_F(Opening, DoesNotWaitForTheOtherEndOfAPipe) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(error_of(path_, O_RDONLY), 0);
  EXPECT_EQ(error_of(path_, O_WRONLY), ENXIO);
}

TEST_F(Opening, WaitsUntilALeaseIsGivenBack) {
  const std::function<void()> ways[] = {
      [&] { EXPECT_EQ(error_of(path_, O_RDONLY), 0); },
      [&] { EXPECT_EQ(error_of(path_, O_RDWR | O_NOFOLLOW), 0); },
      [&] { EXPECT_EQ(map_file(path_).size_bytes(), 3u); },
      [&] { EXPECT_EQ(map_file(path_, {.access = access::read_write}).size_bytes(), 3u); },
      [&] {
        EXPECT_EQ(create_file(path_, 3, {.existing = existing_file::keep}).size_bytes(), 3u);
      }};
  test::write_file(path_, "abc");
  for (const auto& open : ways) {
    const test::lease_holder other(path_);
    if (!other.holds()) GTEST_SKIP() << "this file system grants no leases";
    open();
  }
}

}  // namespace
}  // namespace shale::detail
