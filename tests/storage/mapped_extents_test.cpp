// Several extents of one file as one storage, and what a transaction does to its mappings.
#include "storage/mapped_extents.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "storage/fault_guard.hpp"
#include "storage/file_descriptor.hpp"
#include "storage/test_support.hpp"

namespace shale::detail {
namespace {

using test::code_of;
using test::pattern;
using test::scratch_directory;
using test::write_pattern;

constexpr std::size_t page = 4096;

// An open file of 64 pages of the pattern.
class MappedExtents : public testing::Test {
 protected:
  void SetUp() override {
    write_pattern(path, 64 * page);
    file = file_descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }

  storage map(const std::vector<file_extent>& extents, extent_options options = {}) {
    options.path = path;
    return map_extents(file.get(), extents, options);
  }

  scratch_directory directory;
  const std::string path = directory / "data";
  file_descriptor file;
};

// The oracle: the bytes of the extents one behind the other.
std::vector<unsigned char> expected(const std::vector<file_extent>& extents) {
  std::vector<unsigned char> all;
  for (const auto& each : extents)
    for (std::size_t i = 0; i < each.bytes; ++i)
      all.push_back(pattern(static_cast<std::size_t>(each.offset) + i));
  return all;
}

std::vector<unsigned char> bytes_of(const storage& from) {
  const auto* const first = reinterpret_cast<const unsigned char*>(from.data());
  return {first, first + from.size_bytes()};
}

// mapped.1
TEST_F(MappedExtents, LieSideBySideInTheirOrder) {
  const std::vector<file_extent> extents{
      {8 * page, 3 * page}, {0, page}, {1 * page, 2 * page}, {40 * page, 100}};
  const storage bytes = map(extents);
  EXPECT_EQ(bytes.size_bytes(), 6 * page + 100);
  EXPECT_EQ(bytes_of(bytes), expected(extents));
  EXPECT_EQ(bytes.slice(3 * page + 5, 1).file_offset(), 5u);
  EXPECT_EQ(bytes.slice(6 * page + 5, 1).file_offset(), 40 * page + 5);
  EXPECT_EQ(bytes.slice(2 * page, 1).file_offset(), 10 * page);
  EXPECT_EQ(bytes.kind(), storage_kind::file);
}

TEST_F(MappedExtents, ThatContinueEachOtherAreGuardedAsOne) {
  const auto before = guarded_ranges();
  const storage bytes = map({{0, 2 * page}, {2 * page, 3 * page}, {5 * page, 10}, {10 * page, 0}});
  EXPECT_EQ(guarded_ranges(), before + 1);
  EXPECT_EQ(bytes_of(bytes), expected({{0, 5 * page + 10}}));
}

TEST_F(MappedExtents, RefuseWhatIsNotWholePages) {
  EXPECT_EQ(code_of([&] { map({{0, 100}, {page, page}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { map({{0, page}, {5 * page + 1, page}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { map({{0, page}, {64 * page, page}}); }), errc::io);
  EXPECT_TRUE(map({}).empty());
}

TEST_F(MappedExtents, OperateOnEachExtentOfARange) {
  const std::vector<file_extent> extents{{8 * page, 3 * page}, {32 * page, 2 * page}};
  ASSERT_EQ(::fsync(file.get()), 0);
  const storage bytes = map(extents);
  const storage whole = map({{0, 64 * page}});
  // The kernel keeps pages of several sizes, and drops only whole ones.
  whole.evict({0, 64 * page}, eviction::system);
  if (bytes.resident_bytes() != 0) GTEST_SKIP() << "this file system keeps pages in memory";
  // The kernel reads around what is asked for; it must at least have that.
  bytes.populate({2 * page, 2 * page});
  EXPECT_EQ(bytes.resident_bytes({2 * page, 2 * page}), 2 * page);
  bytes.populate({0, 5 * page});
  EXPECT_EQ(bytes.resident_bytes(), 5 * page);
  EXPECT_EQ(bytes_of(bytes), expected(extents));
}

// mapped.3
TEST_F(MappedExtents, OwnTheirPinAndGiveItUpLast) {
  bool pinned = true;
  std::size_t mapped_then = 99;  // when the pin went
  storage bytes;
  {
    std::shared_ptr<void> pin(&pinned, [&](void* flag) {
      *static_cast<bool*>(flag) = false;
      mapped_then = test::mappings_of(path);
    });
    bytes = map({{0, page}}, {.keep_alive = std::move(pin)});
  }
  storage part = bytes.slice(100, 10);
  bytes = {};
  EXPECT_TRUE(pinned);
  EXPECT_EQ(test::mappings_of(path), 1u);
  part = {};
  EXPECT_FALSE(pinned);
  EXPECT_EQ(mapped_then, 0u);
}

// mapped.2
TEST_F(MappedExtents, AreGuardedOnEveryPageAppendedOnesToo) {
  storage bytes = map({{8 * page, 3 * page}, {0, page}}, {.reserve_bytes = 20 * page});
  append_extents(bytes, std::vector<file_extent>{{30 * page, 2 * page}, {50 * page, 10}});
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
  for (std::size_t at = bytes.size_bytes(); at-- > 0;)
    ASSERT_EQ(*reinterpret_cast<const volatile unsigned char*>(bytes.data() + at) + 0, 0) << at;
  EXPECT_TRUE(bytes.failed());
}

// mapped.3
TEST_F(MappedExtents, DuplicateTheDescriptorOnlyWithoutAnOwner) {
  map({{0, page}});  // The first mapping of a process arms the guard, which has a descriptor.
  const auto before = test::open_descriptors();
  const storage kept = map({{0, page}}, {.keep_alive = std::make_shared<int>()});
  EXPECT_EQ(test::open_descriptors(), before);
  storage own = map({{0, page}});
  EXPECT_EQ(test::open_descriptors(), before + 1);
  own = {};
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST_F(MappedExtents, AppendWithoutMovingAndLeaveOtherHandlesTheirBounds) {
  storage bytes = map({{0, 2 * page}}, {.access = access::read_write, .reserve_bytes = 20 * page});
  const storage earlier = bytes;
  const std::byte* const address = bytes.data();
  append_extents(bytes, std::vector<file_extent>{{30 * page, 3 * page}, {50 * page, 10}});
  EXPECT_EQ(bytes.data(), address);
  EXPECT_EQ(bytes_of(bytes), expected({{0, 2 * page}, {30 * page, 3 * page}, {50 * page, 10}}));
  EXPECT_EQ(earlier.size_bytes(), 2 * page);
  storage behind = earlier;
  EXPECT_EQ(code_of([&] {
              append_extents(behind, std::vector<file_extent>{{0, page}});
            }),
            errc::invalid_argument);
  // The tail of the last extent continues in the file.
  append_extents(bytes, std::vector<file_extent>{{50 * page + 10, 2 * page}});
  EXPECT_EQ(bytes_of(bytes),
            expected({{0, 2 * page}, {30 * page, 3 * page}, {50 * page, 2 * page + 10}}));
  EXPECT_EQ(code_of([&] { bytes.grow(bytes.size_bytes() + 1); }), errc::invalid_argument);
}

TEST_F(MappedExtents, FailedAppendChangesNothing) {
  storage bytes = map({{0, page}}, {.reserve_bytes = 20 * page});
  const auto guarded = guarded_ranges();
  // The first extent can be mapped, the second cannot.
  const std::vector<file_extent> bad{{10 * page, page}, {20 * page + 1, page}};
  EXPECT_EQ(code_of([&] { append_extents(bytes, bad); }), errc::invalid_argument);
  EXPECT_EQ(guarded_ranges(), guarded);
  EXPECT_EQ(bytes.size_bytes(), page);
  append_extents(bytes, std::vector<file_extent>{{30 * page, 2 * page}});
  EXPECT_EQ(bytes_of(bytes), expected({{0, page}, {30 * page, 2 * page}}));
  EXPECT_EQ(code_of([&] {
              append_extents(bytes, std::vector<file_extent>{{0, 30 * page}});
            }),
            errc::invalid_argument);
}

TEST_F(MappedExtents, BecomeReadOnlyForEveryHandle) {
  storage bytes = map({{0, 2 * page}, {9 * page, page}}, {.access = access::read_write});
  storage part = bytes.slice(page, 10);
  part.data()[0] = std::byte{200};
  make_read_only(bytes);
  EXPECT_FALSE(part.writable());
  EXPECT_EQ(part.data()[0], std::byte{200});
  EXPECT_DEATH(*const_cast<volatile std::byte*>(part.data()) = std::byte{1}, "");
  EXPECT_EQ(code_of([&] { part.populate({0, 1}, populate_for::store); }), errc::access_denied);
  EXPECT_EQ(test::bytes_of_file(path)[page], 200);
  bytes.check();
}

TEST_F(MappedExtents, AbandonedShowZerosAndKeepTheFileAsItWas) {
  storage bytes = map({{0, 2 * page}, {9 * page, page}}, {.access = access::read_write});
  const storage other = map({{0, page}});
  bytes.data()[5] = std::byte{1};
  abandon(bytes);
  EXPECT_TRUE(bytes.failed());
  EXPECT_EQ(code_of([&] { bytes.check(); }), errc::io);
  EXPECT_EQ(code_of([&] { bytes.flush(); }), errc::io);
  EXPECT_EQ(code_of([&] { bytes.populate({0, 1}); }), errc::io);
  EXPECT_EQ(bytes_of(bytes), std::vector<unsigned char>(3 * page, 0));
  bytes.data()[6] = std::byte{77};
  bytes.data()[2 * page] = std::byte{77};
  EXPECT_EQ(bytes.data()[6], std::byte{77});
  const auto file_bytes = test::bytes_of_file(path);
  EXPECT_EQ(file_bytes[5], 1);
  EXPECT_EQ(file_bytes[6], pattern(6));
  EXPECT_EQ(file_bytes[9 * page], pattern(9 * page));
  other.check();
}

}  // namespace
}  // namespace shale::detail
