// Several extents of one file as one storage, and the functions for mappings of a transaction.
#include "storage/mapped/mapped_extents.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "storage/faults/fault_guard.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/test_support.hpp"
#include "support/system_page.hpp"

namespace shale::detail {
namespace {

using test::code_of;
using test::pattern;
using test::scratch_directory;
using test::write_pattern;

const std::size_t page = test::system_page_bytes();

// An open file with 64 pages of the pattern.
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

// The oracle: the bytes of the extents, one after the other.
std::vector<unsigned char> expected(const std::vector<file_extent>& extents) {
  std::vector<unsigned char> all;
  for (const auto& extent : extents)
    for (std::size_t i = 0; i < extent.bytes; ++i)
      all.push_back(pattern(static_cast<std::size_t>(extent.offset) + i));
  return all;
}

std::vector<unsigned char> bytes_of(const storage& bytes) {
  const auto* const first = reinterpret_cast<const unsigned char*>(bytes.data());
  return {first, first + bytes.size_bytes()};
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

// The unit of extents in containers on every machine; a page of the system may be larger.
constexpr std::size_t small = 4096;

// mapped.1
TEST_F(MappedExtents, MayShareTheirPagesWithOtherBytes) {
  auto whole = test::file_contents(path);
  for (const file_extent extent : {file_extent{5 * small, 2 * small}, {17 * small, 100}}) {
    storage bytes = map({extent}, {.access = access::read_write});
    EXPECT_EQ(bytes_of(bytes), expected({extent}));
    EXPECT_EQ(bytes.file_offset(), extent.offset);
    EXPECT_EQ(bytes.slice(99, 1).file_offset(), extent.offset + 99);
    bytes.data()[99] = std::byte{200};
    bytes.flush();
    whole[extent.offset + 99] = 200;
    make_read_only(bytes);
    EXPECT_EQ(bytes.data()[99], std::byte{200});
  }
  EXPECT_EQ(test::file_contents(path), whole);
}

TEST_F(MappedExtents, OfSmallerPagesAreReadWithAnyPageSize) {
  const std::vector<file_extent> extents{
      {5 * small, 3 * small}, {small, small}, {9 * small, 2 * small}, {11 * small, 100}};
  const storage reading = map(extents);
  EXPECT_EQ(bytes_of(reading), expected(extents));
  EXPECT_FALSE(reading.writable());
  storage own = map(extents, {.access = access::copy_on_write});
  own.data()[3 * small] = std::byte{200};
  EXPECT_EQ(bytes_of(reading), expected(extents));
  // Stores need the file's own pages.
  const auto write = [&] { map(extents, {.access = access::read_write}); };
  if (page == small) EXPECT_NO_THROW(write());
  else EXPECT_EQ(code_of(write), errc::unsupported);
}

TEST_F(MappedExtents, OperateOnEachExtentOfARange) {
  const std::vector<file_extent> extents{{8 * page, 3 * page}, {32 * page, 2 * page}};
  ASSERT_EQ(::fsync(file.get()), 0);
  const storage bytes = map(extents);
  const storage whole = map({{0, 64 * page}});
  // The kernel caches pages of several sizes, and drops only whole ones.
  whole.evict({0, 64 * page}, eviction::system);
  if (bytes.resident_bytes() != 0) GTEST_SKIP() << "this file system keeps pages in memory";
  // The kernel may read more than requested, but at least the requested range.
  bytes.populate({2 * page, 2 * page});
  EXPECT_EQ(bytes.resident_bytes({2 * page, 2 * page}), 2 * page);
  bytes.populate({0, 5 * page});
  EXPECT_EQ(bytes.resident_bytes(), 5 * page);
  EXPECT_EQ(bytes_of(bytes), expected(extents));
}

// mapped.3
TEST_F(MappedExtents, OwnTheirPinAndGiveItUpLast) {
  bool pinned = true;
  std::size_t mapped_then = 99;  // when the pin was released
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
  for (std::size_t offset = bytes.size_bytes(); offset-- > 0;)
    ASSERT_EQ(*reinterpret_cast<const volatile unsigned char*>(bytes.data() + offset) + 0, 0)
        << offset;
  EXPECT_TRUE(bytes.failed());
}

// mapped.3
TEST_F(MappedExtents, DuplicateTheDescriptorOnlyWithoutAnOwner) {
  map({{0, page}});  // The first mapping of a process installs the guard, which has a descriptor.
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
  EXPECT_EQ(test::file_contents(path)[page], 200);
  bytes.check();
}

// As the tensors of a transaction: during a commit nothing pins their bytes yet.
TEST_F(MappedExtents, AreInheritedByChildrenOnceTheirOwnerAllowsIt) {
  storage bytes = map({{0, 2 * page}, {9 * page, page}}, {.access = access::read_write});
  std::vector<unsigned char> wanted = expected({{0, 2 * page}, {9 * page, page}});
  bytes.data()[page] = std::byte{200};
  wanted[page] = 200;
  const auto expect_in_child = [&](errc code) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool so = code_of([&] { bytes.check(); }) == code;
      if (code == errc{}) so = so && !bytes.failed() && bytes_of(bytes) == wanted;
      bytes = {};
      ::_exit(so ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  };
  let_children_inherit(bytes);
  expect_in_child(errc::unsupported);  // it can be written
  make_read_only(bytes);
  expect_in_child(errc::unsupported);
  let_children_inherit(bytes);
  expect_in_child(errc{});
  EXPECT_EQ(bytes_of(bytes), wanted);
  bytes.check();
}

TEST_F(MappedExtents, AbandonedShowZerosAndKeepTheFileAsItWas) {
  storage bytes = map({{0, 2 * page}, {9 * page, page}}, {.access = access::read_write});
  const storage other = map({{0, page}});
  bytes.data()[5] = std::byte{1};
  detach_from_file(bytes);
  EXPECT_TRUE(bytes.failed());
  EXPECT_EQ(code_of([&] { bytes.check(); }), errc::io);
  EXPECT_EQ(code_of([&] { bytes.flush(); }), errc::io);
  EXPECT_EQ(code_of([&] { bytes.populate({0, 1}); }), errc::io);
  EXPECT_EQ(bytes_of(bytes), std::vector<unsigned char>(3 * page, 0));
  bytes.data()[6] = std::byte{77};
  bytes.data()[2 * page] = std::byte{77};
  EXPECT_EQ(bytes.data()[6], std::byte{77});
  const auto file_bytes = test::file_contents(path);
  EXPECT_EQ(file_bytes[5], 1);
  EXPECT_EQ(file_bytes[6], pattern(6));
  EXPECT_EQ(file_bytes[9 * page], pattern(9 * page));
  other.check();
}

}  // namespace
}  // namespace shale::detail
