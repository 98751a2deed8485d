// Tests of heap and adopted storages, slices, versions and growth.
#include "shale/storage.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "shale/access.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "storage/test_support.hpp"

namespace shale {
namespace {

using test::code_of;

TEST(Storage, IsEmptyByDefault) {
  storage nothing;
  EXPECT_EQ(nothing.data(), nullptr);
  EXPECT_EQ(nothing.size_bytes(), 0u);
  EXPECT_FALSE(nothing);
  EXPECT_EQ(nothing.use_count(), 0);
  EXPECT_FALSE(nothing.shares_owner_with(nothing));
  nothing.bump_version();
  nothing.flush();
  nothing.check();
  EXPECT_EQ(code_of([&] { nothing.grow(1); }), errc::invalid_argument);
}

TEST(Storage, AllocatesAlignedBytesFromThePoolAndReturnsThem) {
  memory_pool pool;
  {
    storage bytes = storage::allocate(1000, &pool);
    EXPECT_EQ(bytes.size_bytes(), 1000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0u);
    EXPECT_EQ(bytes.kind(), storage_kind::heap);
    EXPECT_TRUE(bytes.writable());
    std::memset(bytes.data(), 7, 1000);
    EXPECT_FALSE(pool.all_clear());
    EXPECT_EQ(pool.statistics().live_blocks, 1u);
  }
  EXPECT_TRUE(pool.all_clear());
}

TEST(Storage, OfNoBytesHasNoAddress) {
  memory_pool pool;
  storage none = storage::allocate(0, &pool);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_TRUE(none);
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(pool.all_clear());
}

TEST(Storage, RefusesWhatThePoolCannotHold) {
  memory_pool pool({.limit_bytes = 1 << 20});
  EXPECT_EQ(code_of([&] { storage::allocate(2 << 20, &pool); }), errc::out_of_memory);
  EXPECT_EQ(code_of([&] { storage::allocate(std::numeric_limits<std::size_t>::max(), &pool); }),
            errc::out_of_memory);
  EXPECT_TRUE(pool.all_clear());
}

TEST(Storage, CopiesShareTheBytes) {
  storage first = storage::allocate(64);
  storage second = first;
  EXPECT_EQ(first.use_count(), 2);
  EXPECT_TRUE(first.shares_owner_with(second));
  EXPECT_EQ(first.data(), second.data());
  EXPECT_FALSE(first.shares_owner_with(storage::allocate(64)));
}

// storage.2
TEST(Storage, SliceKeepsItsParentAlive) {
  memory_pool pool;
  storage part;
  {
    storage whole = storage::allocate(100, &pool);
    for (int i = 0; i < 100; ++i) whole.data()[i] = static_cast<std::byte>(i);
    part = whole.slice(10, 20).slice(5, 3);
    EXPECT_TRUE(part.shares_owner_with(whole));
  }
  EXPECT_FALSE(pool.all_clear());
  EXPECT_EQ(part.owner_offset(), 15u);
  EXPECT_EQ(part.size_bytes(), 3u);
  EXPECT_EQ(part.data()[2], std::byte{17});
  part = {};
  EXPECT_TRUE(pool.all_clear());
}

TEST(Storage, SliceStaysInsideItsParent) {
  storage whole = storage::allocate(100);
  EXPECT_EQ(whole.slice(100, 0).data(), nullptr);
  EXPECT_EQ(whole.slice(100, 0).owner_offset(), 100u);
  EXPECT_EQ(code_of([&] { whole.slice(101, 0); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { whole.slice(99, 2); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { whole.slice(1, std::numeric_limits<std::size_t>::max()); }),
            errc::invalid_argument);
}

TEST(Storage, VersionIsSharedByAllHandlesOfAnOwner) {
  storage whole = storage::allocate(100);
  storage part = whole.slice(50, 10);
  EXPECT_EQ(whole.version(), part.version());
  const auto before = whole.version();
  part.bump_version();
  EXPECT_EQ(whole.version(), before + 1);
  EXPECT_EQ(whole.slice(0, 1).version(), before + 1);
}

TEST(Storage, ReadOnlyHandleMakesReadOnlySlices) {
  storage bytes = storage::allocate(10);
  storage fixed = bytes.as_read_only();
  EXPECT_EQ(fixed.access(), access::read_only);
  EXPECT_FALSE(fixed.slice(1, 2).writable());
  EXPECT_TRUE(bytes.writable());
  EXPECT_EQ(code_of([&] { fixed.populate({0, 10}, populate_for::store); }), errc::access_denied);
  fixed.populate({0, 10});
}

TEST(Storage, ReadOnlyHandlesGrowNothingThatCanBeWritten) {
  const test::scratch_directory directory;
  const std::string path = directory / "data";
  storage owners[] = {storage::allocate(10, nullptr, 100),
                      create_file(path, 10, {.reserve_bytes = 100})};
  for (storage& owner : owners) {
    storage fixed = owner.as_read_only();
    EXPECT_EQ(code_of([&] { fixed.grow(20); }), errc::access_denied);
    EXPECT_EQ(fixed.size_bytes(), 10u);
    EXPECT_EQ(test::file_size(path), 10u);
  }
  // A read-only mapping can still grow with its file.
  storage follower = map_file(path, {.reserve_bytes = 100}).as_read_only();
  owners[1].grow(20);
  follower.grow(20);
  EXPECT_EQ(follower.size_bytes(), 20u);
}

// storage.1
TEST(Storage, GrowsInsideItsReservationWithoutMoving) {
  memory_pool pool;
  storage bytes = storage::allocate(10, &pool, 100);
  EXPECT_EQ(bytes.capacity_bytes(), 100u);
  storage earlier = bytes;
  std::memset(bytes.data(), 5, 10);
  std::byte* const address = bytes.data();
  bytes.grow(100);
  EXPECT_EQ(bytes.data(), address);
  EXPECT_EQ(bytes.size_bytes(), 100u);
  EXPECT_EQ(bytes.data()[9], std::byte{5});
  EXPECT_EQ(earlier.size_bytes(), 10u);
  EXPECT_EQ(earlier.capacity_bytes(), 10u) << "it ends before the storage";
  EXPECT_EQ(bytes.slice(90, 10).capacity_bytes(), 10u);
  EXPECT_TRUE(bytes.shares_owner_with(earlier));
  std::memset(bytes.data(), 6, 100);
}

TEST(Storage, GrowRefusesWhatItCannotDo) {
  storage bytes = storage::allocate(10, nullptr, 100);
  storage earlier = bytes;
  storage front = bytes.slice(0, 5);
  EXPECT_EQ(code_of([&] { bytes.grow(101); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { bytes.grow(9); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { front.grow(6); }), errc::invalid_argument);
  bytes.grow(20);
  EXPECT_EQ(code_of([&] { earlier.grow(30); }), errc::invalid_argument);
  storage back = bytes.slice(15, 5);
  back.grow(25);
  EXPECT_EQ(back.size_bytes(), 25u);
  EXPECT_EQ(back.owner_offset(), 15u);
  storage fixed = storage::allocate(10);
  EXPECT_EQ(code_of([&] { fixed.grow(11); }), errc::invalid_argument);
  fixed.grow(10);
}

TEST(Storage, AdoptsBytesAndCallsTheDeleterOnce) {
  int deleted = 0;
  auto* const bytes = new std::vector<std::byte>(16);
  {
    storage taken = storage::adopt(bytes->data(), 16, [&](void*) {
      delete bytes;
      ++deleted;
    });
    EXPECT_EQ(taken.kind(), storage_kind::adopted);
    EXPECT_EQ(taken.data(), bytes->data());
    storage part = taken.slice(8, 8);
    taken = {};
    part.data()[7] = std::byte{1};
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(Storage, RefusesADeleterThatCannotBeCalled) {
  std::byte bytes[8] = {};
  void (*none)(void*) = nullptr;
  EXPECT_EQ(code_of([&] { storage::adopt(bytes, 8, none); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { storage::adopt(bytes, 8, std::function<void(void*)>()); }),
            errc::invalid_argument);
  EXPECT_EQ(storage::adopt(
                bytes, 8, +[](void*) {})
                .size_bytes(),
            8u);
  EXPECT_EQ(storage::adopt(bytes, 8, std::function<void(void*)>([](void*) {})).size_bytes(), 8u);
}

// storage.4
TEST(Storage, IgnoresExceptionsOfADeleter) {
  std::byte bytes[8] = {};
  int calls = 0;
  const auto fails = [&](void* address) {
    EXPECT_EQ(address, bytes);
    ++calls;
    throw std::runtime_error("no");
  };
  storage::adopt(bytes, 8, fails);
  EXPECT_EQ(calls, 1);
  {
    storage kept = storage::adopt(bytes, 8, fails);
    const storage part = kept.slice(2, 3);
    kept = {};
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(calls, 2);
}

TEST(Storage, RefusedBytesStayTheCallers) {
  int calls = 0;
  EXPECT_EQ(code_of([&] { storage::adopt(nullptr, 3, [&](void*) { ++calls; }); }),
            errc::invalid_argument);
  EXPECT_EQ(calls, 0);
  storage::adopt(nullptr, 0, [&](void*) { ++calls; });
  EXPECT_EQ(calls, 1) << "no bytes have an owner, too";
}

TEST(Storage, BorrowsWithoutADeleter) {
  std::byte bytes[8] = {};
  storage lent = storage::adopt(bytes, sizeof bytes, nullptr, access::read_only);
  EXPECT_EQ(lent.data(), bytes);
  EXPECT_FALSE(lent.writable());
  EXPECT_EQ(code_of([] { storage::adopt(nullptr, 3, nullptr); }), errc::invalid_argument);
  EXPECT_TRUE(storage::adopt(nullptr, 0, nullptr).empty());
}

TEST(Storage, HintsAndFlushesDoNothingToHeapBytes) {
  storage bytes = storage::allocate(4096);
  std::memset(bytes.data(), 9, 4096);
  bytes.advise(access_pattern::random, {0, 4096});
  bytes.prefetch({0, 1 << 30});
  bytes.evict({0, 4096}, eviction::system);
  bytes.start_writeback({0, 4096});
  bytes.finish_writeback({0, 4096});
  bytes.flush();
  bytes.check();
  EXPECT_FALSE(bytes.failed());
  EXPECT_EQ(bytes.resident_bytes(), 4096u);
  EXPECT_EQ(bytes.resident_bytes({4000, 1000}), 96u);
  EXPECT_EQ(bytes.path(), "");
  EXPECT_FALSE(bytes.file_offset());
  EXPECT_EQ(bytes.data()[4095], std::byte{9});
}

}  // namespace
}  // namespace shale
