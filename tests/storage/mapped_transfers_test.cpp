// Tests reading and writing the bytes of mapped files by their descriptors. The oracles are the
// pattern that the file was made with, and the file as `read` shows it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "shale/mapped_file.hpp"
#include "storage/blocks/backing.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/mapped/mapped_extents.hpp"
#include "storage/test_support.hpp"
#include "support/process_footprint.hpp"
#include "support/system_page.hpp"

namespace shale::detail {
namespace {

using test::file_contents;
using test::pattern;
using test::write_pattern;

const std::size_t page = test::system_page_bytes();

// A file with 64 pages of the pattern.
class MappedTransfers : public testing::Test {
 protected:
  void SetUp() override { write_pattern(path, 64 * page); }

  storage map_writable() { return map_file(path, {.access = access::read_write}); }

  // Whether bytes are written, which the file then has.
  bool writes(const storage& bytes, std::size_t offset) {
    return write_file(bytes, offset, std::vector<std::byte>(page + 3, std::byte{7}));
  }

  static bool reads(const storage& bytes, std::size_t offset) {
    std::vector<std::byte> into(page + 3);
    return read_file(bytes, offset, into);
  }

  test::scratch_directory directory;
  const std::string path = directory / "data";
};

TEST_F(MappedTransfers, ReadTheBytesOfTheFile) {
  const storage all = map_file(path, {.offset = 100});
  for (const storage& bytes : {all.slice(10, 3 * page), all.slice(10, 3 * page).slice(5, 2 * page)})
    for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, page - 1}) {
      std::vector<std::byte> into(page + 3);
      ASSERT_TRUE(read_file(bytes, offset, into));
      const std::size_t first = 100 + bytes.owner_offset() + offset;
      for (std::size_t i = 0; i < into.size(); ++i)
        ASSERT_EQ(into[i], std::byte{pattern(first + i)}) << i;
    }
}

TEST_F(MappedTransfers, WriteTheseBytesAndNoOthers) {
  std::vector<unsigned char> expected = file_contents(path);
  const storage bytes = map_file(path, {.offset = 100, .access = access::read_write});
  ASSERT_TRUE(writes(bytes.slice(10, 3 * page), 5));
  std::fill_n(expected.begin() + 115, page + 3, static_cast<unsigned char>(7));
  EXPECT_EQ(file_contents(path), expected);
  for (std::size_t i = 0; i < bytes.size_bytes(); ++i)
    ASSERT_EQ(bytes.data()[i], std::byte{expected[100 + i]}) << i;
}

TEST_F(MappedTransfers, CrossTheExtentsOfAMapping) {
  std::vector<unsigned char> expected = file_contents(path);
  const file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  const std::vector<file_extent> extents{{8 * page, page}, {32 * page, 2 * page}};
  const storage bytes = map_extents(file.get(), extents, {.access = access::read_write});
  std::vector<std::byte> into(page + 3);
  ASSERT_TRUE(read_file(bytes, page - 10, into));
  for (std::size_t i = 0; i < into.size(); ++i)
    ASSERT_EQ(into[i],
              std::byte{i < 10 ? expected[9 * page - 10 + i] : expected[32 * page + i - 10]})
        << i;
  ASSERT_TRUE(writes(bytes, page - 10));
  std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(9 * page - 10), 10,
              static_cast<unsigned char>(7));
  std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(32 * page), page - 7,
              static_cast<unsigned char>(7));
  EXPECT_EQ(file_contents(path), expected);
}

// Each of these has bytes that the file does not show, or must not get.
TEST_F(MappedTransfers, AreLeftToThePagesWhereBytesMayDiffer) {
  const std::vector<unsigned char> before = file_contents(path);
  const storage mine = map_file(path, {.access = access::copy_on_write});
  EXPECT_FALSE(reads(mine, 0));
  EXPECT_FALSE(writes(mine, 0));
  EXPECT_FALSE(reads(storage::allocate(4 * page), 0));
  EXPECT_FALSE(writes(storage::allocate(4 * page), 0));
  const storage read_only = map_file(path);
  EXPECT_TRUE(reads(read_only, 0));
  EXPECT_FALSE(writes(read_only, 0));
  for (const int flag : {O_APPEND, O_DIRECT}) {
    const file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    const storage bytes = map_file(file.get(), {.access = access::read_write});
    EXPECT_TRUE(reads(bytes, 0));
    if (::fcntl(file.get(), F_SETFL, flag) != 0) continue;  // no O_DIRECT on this file system
    EXPECT_FALSE(reads(bytes, 0));
    EXPECT_FALSE(writes(bytes, 0));
  }
  EXPECT_EQ(file_contents(path), before);
}

TEST_F(MappedTransfers, WriteNothingOnceTheTransactionHasEnded) {
  const std::vector<unsigned char> before = file_contents(path);
  const file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  const std::vector<file_extent> extents{{8 * page, 4 * page}};
  const storage kept = map_extents(file.get(), extents, {.access = access::read_write});
  storage handle = kept;
  make_read_only(handle);
  EXPECT_FALSE(writes(kept, 0));
  EXPECT_TRUE(reads(kept, 0));
  const storage dropped = map_extents(file.get(), extents, {.access = access::read_write});
  detach_from_file(dropped);
  EXPECT_FALSE(writes(dropped, 0));
  EXPECT_FALSE(reads(dropped, 0));
  EXPECT_EQ(file_contents(path), before);
}

// A program that closes all descriptors may open another file with the number of a mapping's.
TEST_F(MappedTransfers, TouchNoFileThatGotTheNumberOfTheirDescriptor) {
  const std::string other = directory / "other";
  write_pattern(other, 64 * page);
  const std::vector<unsigned char> before = file_contents(other);
  storage bytes = map_file(path, {.access = access::read_write, .reserve_bytes = 100 * page});
  const file_descriptor file(::open(other.c_str(), O_RDWR | O_CLOEXEC));
  for (const int number : test::descriptors_of(path))
    ASSERT_GE(::dup3(file.get(), number, O_CLOEXEC), 0);
  EXPECT_FALSE(reads(bytes, 0));
  EXPECT_FALSE(writes(bytes, 0));
  EXPECT_EQ(test::code_of([&] { bytes.grow(80 * page); }), errc::io);
  EXPECT_EQ(file_contents(other), before);
  EXPECT_NO_THROW(bytes.check());
}

// A write of the last bytes would lengthen a file again that is truncated at the same time, and
// nobody would notice.
TEST_F(MappedTransfers, LeaveTheLastBytesToThePages) {
  const storage bytes = map_writable();
  EXPECT_FALSE(writes(bytes, 63 * page - 3));
  EXPECT_TRUE(writes(bytes, 63 * page - 4));
}

TEST_F(MappedTransfers, DoNotMakeATruncatedFileLonger) {
  const storage bytes = map_writable();
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(2 * page)), 0);
  EXPECT_FALSE(writes(bytes, page));
  EXPECT_FALSE(reads(bytes, page));
  EXPECT_EQ(test::file_size(path), 2 * page);
}

// `pwrite` fails behind the limit, with a signal that ends the process. Stores do not.
TEST_F(MappedTransfers, DoNotWriteBehindTheLimitOfFileSizes) {
  const storage bytes = map_writable();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 2 * page;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool written = writes(bytes, page);
  const bool inside = writes(bytes, 0);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(written);
  EXPECT_TRUE(inside);
}

}  // namespace
}  // namespace shale::detail
