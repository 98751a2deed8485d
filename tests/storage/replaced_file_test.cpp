// Files that another process removes, replaces or rewrites while they are mapped.
#include <gtest/gtest.h>

#include <string>

#include "shale/mapped_file.hpp"
#include "storage/test_support.hpp"

namespace shale {
namespace {

using test::code_of;
using test::pattern;
using test::run_peer;

constexpr std::size_t size = 100'000;

// How many bytes from the start on are those of the pattern.
std::size_t matching_bytes(const storage& bytes) {
  std::size_t at = 0;
  while (at < bytes.size_bytes() && std::to_integer<unsigned char>(bytes.data()[at]) == pattern(at))
    ++at;
  return at;
}

class ReplacedFile : public testing::Test {
 protected:
  void SetUp() override { test::write_pattern(path, size); }

  test::scratch_directory directory;
  const std::string path = directory / "data";
};

// file.1
TEST_F(ReplacedFile, RemovedItStaysWithItsMappings) {
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
  // The name is free.
  const storage fresh = create_file(path, 10);
  EXPECT_EQ(fresh.data()[0], std::byte{0});
}

// file.1
TEST_F(ReplacedFile, ReplacedItStaysWithItsMappingsAndOpensAsTheNewOne) {
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
  // One stays: the guard's, made with the first mapping of the process.
  EXPECT_LE(test::open_descriptors(), before.descriptors + 1);
}

}  // namespace
}  // namespace shale
