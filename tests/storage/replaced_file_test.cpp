// Files that another process removes, replaces or rewrites while they are mapped.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "shale/mapped_file.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/test_support.hpp"
#include "support/nameless_file.hpp"

namespace shale {
namespace {

using test::code_of;
using test::pattern;
using test::run_peer;

constexpr std::size_t size = 100'000;

// The number of bytes, from the start on, that have the pattern.
std::size_t matching_bytes(const storage& bytes) {
  std::size_t offset = 0;
  while (offset < bytes.size_bytes() &&
         std::to_integer<unsigned char>(bytes.data()[offset]) == pattern(offset))
    ++offset;
  return offset;
}

class ReplacedFile : public testing::Test {
 protected:
  void SetUp() override { test::write_pattern(path, size); }

  test::scratch_directory directory;
  const std::string path = directory / "data";
};

// file.1
TEST_F(ReplacedFile, StaysWithItsMappingsAfterItsRemoval) {
  const storage reading = map_file(path);
  storage writing = map_file(path, {.access = access::read_write, .reserve_bytes = 2 * size});
  ASSERT_EQ(run_peer({"remove", path}), 0);
  EXPECT_EQ(code_of([&] { map_file(path); }), errc::not_found);
  EXPECT_EQ(matching_bytes(reading), size);
  writing.grow(2 * size);
  writing.data()[0] = std::byte{99};
  writing.flush();
  EXPECT_EQ(reading.data()[0], std::byte{99});
  reading.check();
  writing.check();
  // The name can be used again.
  const storage fresh = create_file(path, 10);
  EXPECT_EQ(fresh.data()[0], std::byte{0});
}

// file.1
TEST_F(ReplacedFile, StaysWithItsMappingsAndTheNameOpensTheNewFile) {
  const storage reading = map_file(path);
  storage writing = map_file(path, {.access = access::read_write, .reserve_bytes = 2 * size});
  ASSERT_EQ(run_peer({"replace", path, "10"}), 0);
  const storage fresh = map_file(path);
  EXPECT_EQ(fresh.size_bytes(), 10u);
  EXPECT_EQ(fresh.data()[9], std::byte{7});
  EXPECT_EQ(matching_bytes(reading), size);
  reading.check();
  // Stores and growth reach the old file, and never the new one.
  writing.data()[5] = std::byte{99};
  writing.grow(2 * size);
  writing.flush();
  EXPECT_EQ(reading.data()[5], std::byte{99});
  EXPECT_EQ(test::file_size(path), 10u);
  EXPECT_EQ(fresh.data()[5], std::byte{7});
}

TEST_F(ReplacedFile, NothingOfARemovedFileIsKeptBehindItsLastStorage) {
  const auto before = test::process_footprint::now();
  {
    storage bytes = map_file(path, {.access = access::read_write});
    ASSERT_EQ(run_peer({"remove", path}), 0);
    bytes.data()[0] = std::byte{1};
  }
  EXPECT_EQ(test::mappings_of(path), 0u);
  // One descriptor stays: that of the guard, made with the first mapping of the process.
  EXPECT_LE(test::open_descriptors(), before.descriptors + 1);
}

// Links in /proc are not names.
TEST_F(ReplacedFile, IsWrittenButNotReplacedIfItHasNoName) {
  for (const auto kind :
       {test::nameless::memory, test::nameless::removed, test::nameless::unnamed}) {
    const test::nameless_file file(kind, directory.path());
    if (!file.is_open()) continue;
    const std::string text = file.text();
    EXPECT_EQ(code_of([&] { create_file(file.path(), 10); }), errc::already_exists) << text;
    const std::string refused =
        test::text_of([&] { create_file(file.path(), 10, {.existing = existing_file::replace}); });
    EXPECT_NE(refused.find("[invalid_argument]"), std::string::npos) << text << ": " << refused;
    EXPECT_NE(refused.find(file.path()), std::string::npos) << refused;
    EXPECT_EQ(file.size(), 0u) << text;
    const storage bytes = create_file(file.path(), 10, {.existing = existing_file::keep});
    EXPECT_EQ(file.size(), 10u) << text;
    EXPECT_NE(::access(text.c_str(), F_OK), 0) << text;
  }
}

TEST_F(ReplacedFile, IsReplacedThroughADescriptorIfItHasAName) {
  const detail::file_descriptor open = detail::open_descriptor(path, O_RDONLY);
  const std::string link = "/proc/self/fd/" + std::to_string(open.get());
  const storage fresh = create_file(link, 10, {.existing = existing_file::replace});
  EXPECT_EQ(map_file(path).size_bytes(), 10u);
}

}  // namespace
}  // namespace shale
