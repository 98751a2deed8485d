// Files as storages: offsets, access, creation, growth, residency, and calls that must be refused.
#include "shale/mapped_file.hpp"
#include "shale/existing_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "storage/faults/fault_guard.hpp"
#include "storage/files/file_copy.hpp"
#include "storage/files/file_system_kind.hpp"
#include "storage/test_support.hpp"
#include "support/system_page.hpp"

namespace shale {
namespace {

using test::code_of;
using test::file_contents;
using test::file_size;
using test::pattern;
using test::scratch_directory;
using test::text_of;
using test::write_pattern;

// The first position at which `bytes` differs from the file's pattern from `offset` on; the size of
// `bytes` if there is none.
std::size_t matching_bytes(const storage& bytes, std::size_t offset) {
  std::size_t position = 0;
  while (position < bytes.size_bytes() &&
         std::to_integer<unsigned char>(bytes.data()[position]) == pattern(offset + position))
    ++position;
  return position;
}

void put(storage& bytes, std::size_t offset, unsigned char value) {
  bytes.data()[offset] = static_cast<std::byte>(value);
}

class MappedFile : public testing::Test {
 protected:
  scratch_directory directory;
  const std::string path = directory / "data";
};

TEST_F(MappedFile, ShowsTheWholeFileByDefault) {
  write_pattern(path, 10'000);
  const storage bytes = map_file(path);
  EXPECT_EQ(bytes.size_bytes(), 10'000u);
  EXPECT_EQ(matching_bytes(bytes, 0), 10'000u);
  EXPECT_EQ(bytes.kind(), storage_kind::file);
  EXPECT_EQ(bytes.path(), path);
  EXPECT_EQ(bytes.file_offset(), 0u);
}

// mapped.1
TEST_F(MappedFile, BeginsAtAnyOffset) {
  write_pattern(path, 3 << 20);
  for (const std::size_t offset : {1u, 63u, 4095u, 4096u, 4097u, 2097151u, 2097153u}) {
    for (const std::size_t length : {1u, 4096u, 8193u, 500'000u}) {
      const storage bytes = map_file(path, {.offset = offset, .bytes = length});
      EXPECT_EQ(bytes.size_bytes(), length);
      EXPECT_EQ(matching_bytes(bytes, offset), length) << offset;
      EXPECT_EQ(bytes.slice(length - 1, 1).file_offset(), offset + length - 1);
    }
  }
}

TEST_F(MappedFile, OfLargeFilesAgreesWithTheFileModuloHugePages) {
  write_pattern(path, 9 << 20);
  for (const std::size_t offset : {0u, 4096u, 3u << 20, (4u << 20) + 100}) {
    const storage bytes = map_file(path, {.offset = offset});
    EXPECT_EQ((reinterpret_cast<std::uintptr_t>(bytes.data()) - offset) % (2 << 20), 0u);
    EXPECT_EQ(matching_bytes(bytes, offset), bytes.size_bytes());
  }
}

// The flags of the mapping at `address` in the kernel, two letters each.
std::string mapping_flags(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &first, &last) == 2)
      inside = first <= wanted && wanted < last;
    else if (inside && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return {};
}

TEST_F(MappedFile, OfLargeFilesIsAdvisedToUseHugePages) {
  if (::access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0)
    GTEST_SKIP() << "this kernel has no transparent huge pages";
  write_pattern(path, 4 << 20);
  EXPECT_NE(mapping_flags(map_file(path).data()).find(" hg "), std::string::npos);
  EXPECT_EQ(mapping_flags(map_file(path, {.bytes = 1 << 20}).data()).find(" hg "),
            std::string::npos);
}

TEST_F(MappedFile, RefusesRangesOutsideTheFile) {
  write_pattern(path, 100);
  EXPECT_EQ(code_of([&] { map_file(path, {.offset = 101}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { map_file(path, {.offset = 50, .bytes = 51}); }), errc::invalid_argument);
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(code_of([&] { map_file(path, {.offset = 50, .bytes = most - 10}); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { map_file(path, {.reserve_bytes = most - 10}); }), errc::out_of_memory);
  EXPECT_EQ(map_file(path, {.offset = 100}).size_bytes(), 0u);
  EXPECT_NE(text_of([&] { map_file(path, {.offset = 101}); }).find(path), std::string::npos);
}

TEST_F(MappedFile, OfAnEmptyFileIsEmpty) {
  write_pattern(path, 0);
  storage none = map_file(path, {.access = access::read_write, .populate = true});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.path(), path);
  none.flush();
  none.check();
}

TEST_F(MappedFile, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(code_of([&] { map_file(path); }), errc::not_found);
  EXPECT_EQ(code_of([&] { map_file(directory.path()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { map_file(directory.path(), {.access = access::read_write}); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { map_file("/dev/zero"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { map_file("/proc/self/maps"); }), errc::invalid_argument);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { map_file(path); }), errc::invalid_argument);
}

// file.1
TEST_F(MappedFile, OutlivesItsName) {
  write_pattern(path, 5000);
  const storage bytes = map_file(path);
  ::unlink(path.c_str());
  EXPECT_EQ(matching_bytes(bytes, 0), 5000u);
  bytes.check();
}

TEST_F(MappedFile, ReadOnlyRefusesWriting) {
  write_pattern(path, 100);
  const storage bytes = map_file(path);
  EXPECT_FALSE(bytes.writable());
  EXPECT_EQ(code_of([&] { bytes.populate({0, 100}, populate_for::store); }), errc::access_denied);
  EXPECT_DEATH(*const_cast<volatile std::byte*>(bytes.data()) = std::byte{0}, "");
}

TEST_F(MappedFile, NeedsThePermissionsItUses) {
  write_pattern(path, 100);
  ::chmod(path.c_str(), 0444);
  ::chmod(directory.path().c_str(), 0755);
  // Root may open everything, so the test gives up root's rights for a moment.
  const bool root = ::geteuid() == 0;
  ASSERT_EQ(root ? ::seteuid(65534) : 0, 0);
  const errc writing = code_of([&] { map_file(path, {.access = access::read_write}); });
  const errc creating = code_of([&] { create_file(directory / "new", 1); });
  const errc copying = code_of([&] { map_file(path, {.access = access::copy_on_write}); });
  ASSERT_EQ(root ? ::seteuid(0) : 0, 0);
  EXPECT_EQ(writing, errc::access_denied);
  EXPECT_EQ(creating, root ? errc::access_denied : errc{});
  EXPECT_EQ(copying, errc{});
}

TEST_F(MappedFile, StoresReachTheFile) {
  write_pattern(path, 10'000);
  storage bytes = map_file(path, {.offset = 5000, .access = access::read_write});
  put(bytes, 0, 1);
  put(bytes, 4999, 2);
  bytes.flush();
  const auto file = file_contents(path);
  EXPECT_EQ(file[5000], 1);
  EXPECT_EQ(file[9999], 2);
  EXPECT_EQ(file[4999], pattern(4999));
  EXPECT_EQ(file.size(), 10'000u);
}

TEST_F(MappedFile, TwoMappingsShareStores) {
  write_pattern(path, 10'000);
  storage writer = map_file(path, {.access = access::read_write});
  const storage reader = map_file(path, {.offset = 100});
  put(writer, 100, 77);
  EXPECT_EQ(reader.data()[0], std::byte{77});
  EXPECT_FALSE(reader.shares_owner_with(writer));
}

TEST_F(MappedFile, CopyOnWriteLeavesTheFile) {
  write_pattern(path, 100'000);
  storage bytes = map_file(path, {.access = access::copy_on_write});
  EXPECT_TRUE(bytes.writable());
  std::memset(bytes.data(), 9, bytes.size_bytes());
  bytes.flush();
  EXPECT_EQ(matching_bytes(map_file(path), 0), 100'000u);
  // Evicting private pages must not lose them.
  bytes.evict({0, bytes.size_bytes()}, eviction::system);
  EXPECT_EQ(bytes.data()[99'999], std::byte{9});
  EXPECT_EQ(bytes.data()[0], std::byte{9});
}

// file.1: `check` uses a descriptor that is still open.
TEST_F(MappedFile, MapsAnOpenDescriptorAndLeavesItToItsOwner) {
  write_pattern(path, 1000);
  const int reading = ::open(path.c_str(), O_RDONLY);
  const storage bytes = map_file(reading, {.offset = 10});
  EXPECT_EQ(matching_bytes(bytes, 10), 990u);
  EXPECT_EQ(bytes.path(), path);
  EXPECT_EQ(code_of([&] { map_file(reading, {.access = access::read_write}); }),
            errc::access_denied);
  ::close(reading);
  EXPECT_EQ(matching_bytes(bytes, 10), 990u);
  bytes.check();
  EXPECT_EQ(code_of([&] { map_file(reading); }), errc::invalid_argument);
  const int writing = ::open(path.c_str(), O_WRONLY);
  EXPECT_EQ(code_of([&] { map_file(writing); }), errc::access_denied);
  ::close(writing);
  const int neither = ::open(path.c_str(), O_PATH);
  const std::string refused = text_of([&] { map_file(neither); });
  ::close(neither);
  EXPECT_NE(refused.find("[access_denied]"), std::string::npos) << refused;
  EXPECT_NE(refused.find("O_PATH"), std::string::npos) << refused;
}

// file.1
TEST_F(MappedFile, OfADescriptorIsItsFileAfterTheNameIsTaken) {
  write_pattern(path, 5000);
  const int file = ::open(path.c_str(), O_RDONLY);
  ::unlink(path.c_str());
  create_file(path, 10);
  storage bytes = map_file(file, {.bytes = 100, .reserve_bytes = 5000});
  ::close(file);
  bytes.grow(5000);
  EXPECT_EQ(matching_bytes(bytes, 0), 5000u);
  bytes.check();
}

// file.2, mapped.2
TEST_F(MappedFile, HoldsNoDescriptorOrAddressAfterItself) {
  write_pattern(path, 5 << 20);
  const auto use = [&] {
    storage bytes = map_file(path, {.access = access::read_write, .reserve_bytes = 64 << 20});
    bytes.grow(9 << 20);
    bytes.populate({0, bytes.size_bytes()});
    const storage other = map_file(path, {.offset = 4097});
    ASSERT_EQ(code_of([&] { map_file(path, {.offset = std::size_t{1} << 40}); }),
              errc::invalid_argument);
    ASSERT_EQ(code_of([&] { create_file(path, 10); }), errc::already_exists);
  };
  use();
  const auto descriptors = test::open_descriptors();
  const auto address_bytes = test::address_space_bytes();
  for (int i = 0; i < 10; ++i) use();
  EXPECT_EQ(test::open_descriptors(), descriptors);
  EXPECT_EQ(test::mappings_of(path), 0u);
  EXPECT_EQ(detail::guarded_ranges(), 0u);
  EXPECT_LT(test::address_space_bytes(), address_bytes + (32 << 20));
}

// ---- creation -----------------------------------------------------------------------------------

TEST_F(MappedFile, IsCreatedWithZerosAndItsSpace) {
  storage bytes = create_file(path, 3'000'000);
  EXPECT_EQ(bytes.size_bytes(), 3'000'000u);
  EXPECT_EQ(bytes.access(), access::read_write);
  EXPECT_EQ(std::count(bytes.data(), bytes.data() + 3'000'000, std::byte{0}), 3'000'000);
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_GE(about.st_blocks * 512, 3'000'000);
  put(bytes, 2'999'999, 3);
  bytes.flush();
  EXPECT_EQ(file_contents(path)[2'999'999], 3);
}

// file.3
TEST_F(MappedFile, CreationIsExclusiveUnlessToldOtherwise) {
  write_pattern(path, 100);
  EXPECT_EQ(code_of([&] { create_file(path, 10); }), errc::already_exists);
  EXPECT_EQ(file_size(path), 100u);
  const storage grown = create_file(path, 200, {.existing = existing_file::keep});
  EXPECT_EQ(file_size(path), 200u);
  EXPECT_EQ(matching_bytes(grown.slice(0, 100), 0), 100u);
  EXPECT_EQ(grown.data()[100], std::byte{0});
  const storage shorter = create_file(path, 50, {.existing = existing_file::keep});
  EXPECT_EQ(file_size(path), 200u);
  EXPECT_EQ(shorter.size_bytes(), 50u);
}

TEST_F(MappedFile, ReplacingLeavesOldMappingsTheirBytes) {
  write_pattern(path, 5000);
  const storage old = map_file(path);
  storage fresh = create_file(path, 20, {.existing = existing_file::replace});
  EXPECT_EQ(matching_bytes(old, 0), 5000u);
  old.check();
  EXPECT_EQ(fresh.data()[0], std::byte{0});
  EXPECT_EQ(file_size(path), 20u);
  put(fresh, 0, 5);
  EXPECT_EQ(file_contents(path)[0], 5);
  EXPECT_EQ(fresh.path(), path);
}

TEST_F(MappedFile, ReplacingFollowsSymbolicLinks) {
  write_pattern(path, 10);
  const std::string link = directory / "link";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  create_file(link, 30, {.existing = existing_file::replace});
  EXPECT_EQ(file_size(path), 30u);
  struct stat about {};
  ASSERT_EQ(::lstat(link.c_str(), &about), 0);
  EXPECT_TRUE(S_ISLNK(about.st_mode));
}

TEST_F(MappedFile, ReplacesFilesOfTheLongestName) {
  const std::string longest = directory / std::string(255, 'a');
  create_file(longest, 10);
  create_file(longest, 30, {.existing = existing_file::replace});
  EXPECT_EQ(file_size(longest), 30u);
  EXPECT_EQ(directory.names(), std::vector<std::string>{std::string(255, 'a')});
}

// `open(2)` with O_CREAT does the same: the link stays, and the file to which it leads is made.
TEST_F(MappedFile, CreationFollowsSymbolicLinksToMissingFiles) {
  const std::string first = directory / "first";
  const std::string second = directory / "second";
  ASSERT_EQ(::symlink("second", first.c_str()), 0);
  ASSERT_EQ(::symlink(path.c_str(), second.c_str()), 0);
  for (const existing_file existing : {existing_file::keep, existing_file::replace}) {
    create_file(first, 30, {.existing = existing});
    for (const auto& link : {first, second}) {
      struct stat about {};
      ASSERT_EQ(::lstat(link.c_str(), &about), 0);
      EXPECT_TRUE(S_ISLNK(about.st_mode)) << link << ", existing " << static_cast<int>(existing);
    }
    EXPECT_EQ(file_contents(path), std::vector<unsigned char>(30)) << static_cast<int>(existing);
    ASSERT_EQ(::unlink(path.c_str()), 0);
    EXPECT_EQ(code_of([&] { create_file(first, 30); }), errc::already_exists);
  }
  ASSERT_EQ(::symlink("first", path.c_str()), 0);
  for (const existing_file existing : {existing_file::keep, existing_file::replace})
    EXPECT_NE(code_of([&] { create_file(first, 30, {.existing = existing}); }), errc{});
}

TEST_F(MappedFile, CreationObeysModeAndMask) {
  const mode_t before = ::umask(027);
  create_file(path, 1, {.mode = 0666});
  ::umask(before);
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0640u);
}

// A file that only its owner may read is replaced with the default mode, 0644.
TEST_F(MappedFile, ReplacingOpensAFileToNobodyElse) {
  for (const unsigned old : {0600u, 0640u, 0604u, 0644u, 0666u, 0400u}) {
    SCOPED_TRACE(old);
    write_pattern(path, 10);
    ASSERT_EQ(::chmod(path.c_str(), old), 0);
    create_file(path, 20, {.existing = existing_file::replace});
    struct stat about {};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u | (0644u & old));
  }
}

// What the old group may do differs from what all others may.
TEST_F(MappedFile, ReplacingAFileOfAnotherGroupOpensItToNobodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const gid_t another = ::getegid() + 1;
  for (const auto& [old, wanted] :
       {std::pair{0640u, 0600u}, std::pair{0604u, 0600u}, std::pair{0644u, 0644u}}) {
    SCOPED_TRACE(old);
    write_pattern(path, 10);
    const int given = ::chown(path.c_str(), static_cast<uid_t>(-1), another);
    if (given != 0 && errno == EINVAL) GTEST_SKIP() << "this user namespace has no other group";
    ASSERT_EQ(given, 0);
    ASSERT_EQ(::chmod(path.c_str(), old), 0);
    create_file(path, 20, {.existing = existing_file::replace});
    struct stat about {};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_gid, ::getegid());
    EXPECT_EQ(about.st_mode & 0777, wanted);
  }
}

TEST_F(MappedFile, CreationInANonexistentDirectoryIsNotFound) {
  EXPECT_EQ(code_of([&] { create_file(directory / "no/where", 1); }), errc::not_found);
  EXPECT_EQ(code_of([&] {
              create_file(directory / "no/where", 1, {.existing = existing_file::replace});
            }),
            errc::not_found);
}

// Limits the size of files to `bytes` while it lives.
class file_size_limit {
 public:
  explicit file_size_limit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~file_size_limit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

// file.2, file.3
TEST_F(MappedFile, FileSizeLimitIsAnErrorAndNoSignal) {
  storage bytes = create_file(path, 100'000, {.reserve_bytes = 10 << 20});
  {
    const file_size_limit limit(1 << 20);
    EXPECT_EQ(code_of([&] { create_file(directory / "new", 2 << 20); }), errc::out_of_space);
    EXPECT_EQ(code_of([&] { create_file(path, 2 << 20, {.existing = existing_file::replace}); }),
              errc::out_of_space);
    EXPECT_EQ(code_of([&] { bytes.grow(2 << 20); }), errc::out_of_space);
  }
  EXPECT_NE(::access((directory / "new").c_str(), F_OK), 0);
  EXPECT_EQ(file_size(path), 100'000u);
  EXPECT_EQ(bytes.size_bytes(), 100'000u);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
  bytes.grow(2 << 20);
  EXPECT_EQ(file_size(path), 2u << 20);
}

// A file system that is mounted while this object lives. Needs root.
class mounted {
 public:
  mounted(const char* type, std::string folder, const std::string& options)
      : folder_(std::move(folder)),
        mounted_(::mount(type, folder_.c_str(), type, 0, options.c_str()) == 0) {}
  ~mounted() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  mounted(const mounted&) = delete;
  mounted& operator=(const mounted&) = delete;
  explicit operator bool() const { return mounted_; }

 private:
  const std::string folder_;
  const bool mounted_;
};

// A small file system that really becomes full.
TEST_F(MappedFile, FullDiskIsAnErrorThatLeavesNothingBehind) {
  const std::string disk = directory / "disk";
  ::mkdir(disk.c_str(), 0700);
  const mounted small("tmpfs", disk, "size=4m");
  if (!small) GTEST_SKIP() << "only root may mount";
  {
    EXPECT_EQ(code_of([&] { create_file(disk + "/big", 5 << 20); }), errc::out_of_space);
    EXPECT_NE(::access((disk + "/big").c_str(), F_OK), 0);
    storage bytes = create_file(disk + "/file", 1 << 20, {.reserve_bytes = 64 << 20});
    std::memset(bytes.data(), 1, 1 << 20);
    EXPECT_EQ(code_of([&] { bytes.grow(5 << 20); }), errc::out_of_space);
    EXPECT_EQ(file_size(disk + "/file"), 1u << 20);
    bytes.grow(3 << 20);
    std::memset(bytes.data(), 2, 3 << 20);
    // A sparse file has no reserved space: populating for stores reports this before any store.
    const int sparse = ::open((disk + "/sparse").c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(::ftruncate(sparse, 8 << 20), 0);
    storage holes = map_file(sparse, {.access = access::read_write});
    ::close(sparse);
    EXPECT_EQ(code_of([&] {
                holes.populate({0, 8 << 20}, populate_for::store);
              }),
              errc::out_of_space);
    EXPECT_FALSE(holes.failed());
  }
  // Nothing in the file system is in use any more.
  EXPECT_EQ(test::mappings_of(disk), 0u);
}

TEST_F(MappedFile, ExhaustedAddressSpaceIsAnError) {
  write_pattern(path, 100);
  EXPECT_EQ(code_of([&] { map_file(path, {.reserve_bytes = std::size_t{1} << 50}); }),
            errc::out_of_memory);
}

TEST_F(MappedFile, RunsOutOfDescriptorsCleanly) {
  write_pattern(path, 100);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const errc code = code_of([&] { map_file(path); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(code, errc::io);
  EXPECT_EQ(map_file(path).size_bytes(), 100u);
}

// ---- growth -------------------------------------------------------------------------------------

// storage.1
TEST_F(MappedFile, GrowsInPlaceKeepingEveryByte) {
  storage bytes = create_file(path, 1000, {.reserve_bytes = 20 << 20});
  const std::byte* const address = bytes.data();
  std::size_t size = 1000;
  for (std::size_t i = 0; i < 1000; ++i) put(bytes, i, pattern(i));
  for (const std::size_t next :
       {1001u, 4095u, 4096u, 4097u, 50'000u, 2u << 20, (2u << 20) + 5, 20u << 20}) {
    bytes.grow(next);
    ASSERT_EQ(bytes.data(), address);
    ASSERT_EQ(bytes.size_bytes(), next);
    ASSERT_EQ(file_size(path), next);
    ASSERT_EQ(matching_bytes(bytes, 0) >= size, true) << next;
    for (std::size_t i = size; i < next; ++i) {
      ASSERT_EQ(bytes.data()[i], std::byte{0}) << i;
      put(bytes, i, pattern(i));
    }
    size = next;
  }
  bytes.flush();
  bytes = {};
  EXPECT_EQ(matching_bytes(map_file(path), 0), size);
}

TEST_F(MappedFile, GrowsFromNothingAndFromInsideAPage) {
  write_pattern(path, 5000);
  storage none =
      map_file(path, {.offset = 5000, .access = access::read_write, .reserve_bytes = 100'000});
  EXPECT_TRUE(none.empty());
  none.grow(100'000);
  put(none, 0, 7);
  put(none, 99'999, 8);
  EXPECT_EQ(none.file_offset(), 5000u);
  none.flush();
  const auto file = file_contents(path);
  EXPECT_EQ(file.size(), 105'000u);
  EXPECT_EQ(file[4999], pattern(4999));
  EXPECT_EQ(file[5000], 7);
  EXPECT_EQ(file[104'999], 8);
}

// file.3
TEST_F(MappedFile, ReadOnlyGrowthFollowsTheFile) {
  write_pattern(path, 10'000);
  storage bytes = map_file(path, {.bytes = 100, .reserve_bytes = 20'000});
  bytes.grow(10'000);
  EXPECT_EQ(matching_bytes(bytes, 0), 10'000u);
  EXPECT_EQ(code_of([&] { bytes.grow(10'001); }), errc::invalid_argument);
  EXPECT_EQ(file_size(path), 10'000u);
  write_pattern(path, 20'000);
  bytes.grow(20'000);
  EXPECT_EQ(matching_bytes(bytes, 0), 20'000u);
}

// A store made the last page private, so it does not show what others append.
TEST_F(MappedFile, CopyOnWriteGrowthShowsWhatOthersAppended) {
  const std::size_t page = test::system_page_bytes();
  for (const std::size_t offset : {std::size_t{0}, std::size_t{50}}) {
    write_pattern(path, 100);
    storage bytes = map_file(
        path, {.offset = offset, .access = access::copy_on_write, .reserve_bytes = 3 * page});
    bytes.data()[0] = std::byte{77};
    // The file is not cut off meanwhile: that would drop private pages, too.
    std::ofstream more(path, std::ios::app | std::ios::binary);
    for (std::size_t i = 100; i < 2 * page; ++i) more.put(static_cast<char>(pattern(i)));
    more.close();
    bytes.grow(page);
    EXPECT_EQ(bytes.data()[0], std::byte{77});
    for (std::size_t i = 1; i < page; ++i)
      ASSERT_EQ(bytes.data()[i], std::byte{pattern(offset + i)}) << i;
  }
}

// Such a descriptor reads whole blocks only, but the last page is to be read from its middle on.
TEST_F(MappedFile, CopyOnWriteGrowthReadsThroughADescriptorWithoutTheCache) {
  const std::size_t page = test::system_page_bytes();
  write_pattern(path, 100);
  const int direct = ::open(path.c_str(), O_RDWR | O_DIRECT);
  if (direct < 0) GTEST_SKIP() << "this file system has no O_DIRECT";
  storage bytes = map_file(direct, {.access = access::copy_on_write, .reserve_bytes = 2 * page});
  ::close(direct);
  bytes.data()[0] = std::byte{77};
  std::ofstream more(path, std::ios::app | std::ios::binary);
  for (std::size_t i = 100; i < page + 10; ++i) more.put(static_cast<char>(pattern(i)));
  more.close();
  for (const std::size_t size : {std::size_t{200}, page + 10}) {
    bytes.grow(size);
    EXPECT_EQ(bytes.data()[0], std::byte{77});
    for (std::size_t i = 1; i < size; ++i) ASSERT_EQ(bytes.data()[i], std::byte{pattern(i)}) << i;
  }
}

TEST_F(MappedFile, GrowthStaysInTheReservation) {
  storage bytes = create_file(path, 10, {.reserve_bytes = 100});
  EXPECT_EQ(bytes.capacity_bytes(), 100u);
  EXPECT_EQ(code_of([&] { bytes.grow(101); }), errc::invalid_argument);
  EXPECT_EQ(file_size(path), 10u);
  bytes.grow(100);
}

// ---- memory -------------------------------------------------------------------------------------

TEST_F(MappedFile, CanBePopulatedEvictedAndPrefetched) {
  constexpr std::size_t size = 8 << 20;
  write_pattern(path, size);
  const int file = ::open(path.c_str(), O_RDONLY);
  ASSERT_EQ(::fsync(file), 0);  // only clean pages can be dropped
  ::close(file);
  const storage bytes = map_file(path);
  bytes.evict({0, size}, eviction::system);
  if (bytes.resident_bytes() == size) GTEST_SKIP() << "this file system keeps pages in memory";
  EXPECT_EQ(bytes.resident_bytes(), 0u);
  bytes.populate({1 << 20, 1 << 20});
  EXPECT_EQ(bytes.resident_bytes({1 << 20, 1 << 20}), 1u << 20);
  bytes.populate({0, size});
  EXPECT_EQ(bytes.resident_bytes(), size);
  EXPECT_EQ(bytes.resident_bytes({100, 5000}), 5000u);
  EXPECT_EQ(bytes.resident_bytes({size - 10, 5000}), 10u);
  // Only the given range is evicted.
  bytes.evict({2 << 20, 2 << 20}, eviction::system);
  EXPECT_EQ(bytes.resident_bytes({2 << 20, 2 << 20}), 0u);
  EXPECT_EQ(bytes.resident_bytes(), size - (2 << 20));
  // The whole prefetched range becomes resident, although the kernel reads only a little per
  // request.
  bytes.evict({0, size}, eviction::system);
  bytes.prefetch({0, size});
  for (int i = 0; i < 1000 && bytes.resident_bytes() < size; ++i) ::usleep(10'000);
  EXPECT_EQ(bytes.resident_bytes(), size);
  EXPECT_EQ(matching_bytes(bytes, 0), size);
}

TEST_F(MappedFile, EvictionOutOfTheProcessKeepsThePageCache) {
  write_pattern(path, 1 << 20);
  const storage bytes = map_file(path, {.populate = true});
  bytes.evict({0, 1 << 20});
  EXPECT_EQ(bytes.resident_bytes(), 1u << 20);
  EXPECT_EQ(matching_bytes(bytes, 0), 1u << 20);
}

TEST_F(MappedFile, EvictionLosesNoStore) {
  storage bytes = create_file(path, 1 << 20);
  for (std::size_t i = 0; i < bytes.size_bytes(); ++i) put(bytes, i, pattern(i));
  bytes.evict({0, 1 << 20}, eviction::system);
  EXPECT_EQ(matching_bytes(bytes, 0), 1u << 20);
}

TEST_F(MappedFile, WritebackCanBeStartedAndAwaited) {
  storage bytes = create_file(path, 4 << 20);
  for (std::size_t i = 0; i < bytes.size_bytes(); ++i) put(bytes, i, pattern(i));
  bytes.start_writeback({0, 2 << 20});
  bytes.flush({2 << 20, 2 << 20}, flush_mode::async);
  bytes.finish_writeback({0, 4 << 20});
  // The pages are clean now and can be dropped.
  bytes.evict({0, 4 << 20}, eviction::system);
  const auto left = bytes.resident_bytes();
  EXPECT_TRUE(left == 0 || left == 4u << 20) << left;  // file systems in memory keep all
  EXPECT_EQ(matching_bytes(bytes, 0), 4u << 20);
}

TEST_F(MappedFile, PopulatingForLoadsDirtiesNothing) {
  constexpr std::size_t size = 1 << 20;
  storage bytes = create_file(path, size);
  std::memset(bytes.data(), 1, size);
  bytes.flush();
  bytes.evict({0, size});
  bytes.populate({0, size});
  bytes.evict({0, size});
  bytes.evict({0, size}, eviction::system);
  const auto left = bytes.resident_bytes();
  EXPECT_TRUE(left == 0 || left == size) << left;
}

TEST_F(MappedFile, AdviceChangesNoByte) {
  write_pattern(path, 100'000);
  const storage bytes = map_file(path);
  for (const auto mode :
       {access_pattern::random, access_pattern::sequential, access_pattern::normal}) {
    bytes.advise(mode, {10, 1 << 30});
    EXPECT_EQ(matching_bytes(bytes, 0), 100'000u);
  }
}

// ---- file systems that are not mapped -----------------------------------------------------------

TEST(FileSystemKind, IsKnownByItsNumber) {
  using detail::classify_file_system;
  using detail::file_system_kind;
  EXPECT_EQ(classify_file_system(0xEF53), file_system_kind::local);                // ext4
  EXPECT_EQ(classify_file_system(0x01021994), file_system_kind::local);            // tmpfs
  EXPECT_EQ(classify_file_system(0x6969), file_system_kind::network);              // NFS
  EXPECT_EQ(classify_file_system(0xFF534D42), file_system_kind::network);          // CIFS
  EXPECT_EQ(classify_file_system(0xFFFFFFFFFF534D42), file_system_kind::network);  // sign-extended
  EXPECT_EQ(classify_file_system(0x794C7630), file_system_kind::overlay);
  EXPECT_EQ(classify_file_system(0x9FA0), file_system_kind::virtual_);
}

TEST(FileSystemKind, SaysWhereChangedBytesGo) {
  EXPECT_FALSE(detail::copies_on_write(0xEF53));             // ext4
  EXPECT_FALSE(detail::copies_on_write(0x58465342));         // XFS
  EXPECT_TRUE(detail::copies_on_write(0x9123683E));          // btrfs
  EXPECT_TRUE(detail::copies_on_write(0xFFFFFFFF9123683E));  // sign-extended
}

TEST(MappingSupport, FollowsTheTableOfTheDocuments) {
  using detail::file_system_kind;
  struct row {
    file_system_kind file_system;
    mapping_support load, store, change_privately;
  };
  constexpr auto mapped = mapping_support::mapped;
  constexpr auto copied = mapping_support::copied;
  constexpr auto refused = mapping_support::refused;
  for (const row& tested : {row{file_system_kind::local, mapped, mapped, mapped},
                            row{file_system_kind::overlay, copied, mapped, copied},
                            row{file_system_kind::network, copied, refused, copied},
                            row{file_system_kind::virtual_, refused, refused, refused}}) {
    EXPECT_EQ(detail::support_for(tested.file_system, O_RDONLY, access::read_only), tested.load);
    EXPECT_EQ(detail::support_for(tested.file_system, O_RDWR, access::read_write), tested.store);
    EXPECT_EQ(detail::support_for(tested.file_system, O_RDONLY, access::copy_on_write),
              tested.change_privately);
  }
  // The caller's descriptor may allow writing although the mapping does not need it.
  EXPECT_EQ(detail::support_for(file_system_kind::overlay, O_RDWR, access::read_only), mapped);
}

TEST_F(MappedFile, SaysBeforehandHowItWouldBeServed) {
  const std::string file = directory / "x";
  write_pattern(file, 10'000);
  for (const access wanted : {access::read_only, access::read_write, access::copy_on_write}) {
    const bool is_mapped = map_file(file, {.access = wanted}).kind() == storage_kind::file;
    EXPECT_EQ(mapping_support_at(file, wanted) == mapping_support::mapped, is_mapped);
    EXPECT_EQ(mapping_support_at(directory / ".", wanted), mapping_support_at(file, wanted));
    EXPECT_EQ(mapping_support_at("/proc/self/status", wanted), mapping_support::refused);
  }
  EXPECT_EQ(code_of([&] { mapping_support_at(directory / "nosuch"); }), errc::not_found);
}

TEST_F(MappedFile, OnOverlaysIsReadUnlessItsDescriptorWrites) {
  for (const char* name : {"lower", "upper", "work", "merged"})
    ::mkdir((directory / name).c_str(), 0700);
  write_pattern(directory / "lower/old", 10'000);
  const std::string options = "lowerdir=" + (directory / "lower") +
                              ",upperdir=" + (directory / "upper") +
                              ",workdir=" + (directory / "work");
  const std::string merged = directory / "merged";
  const mounted overlay("overlay", merged, options);
  if (!overlay) GTEST_SKIP() << "no overlay can be mounted here";
  EXPECT_EQ(mapping_support_at(merged), mapping_support::copied);
  EXPECT_EQ(mapping_support_at(merged, access::read_write), mapping_support::mapped);
  {
    const storage copy = map_file(merged + "/old", {.offset = 10, .bytes = 9000});
    EXPECT_EQ(copy.kind(), storage_kind::heap);
    EXPECT_FALSE(copy.writable());
    EXPECT_EQ(matching_bytes(copy, 10), 9000u);
    storage own = map_file(merged + "/old", {.access = access::copy_on_write});
    put(own, 0, 99);
    storage shared = map_file(merged + "/old", {.access = access::read_write});
    EXPECT_EQ(shared.kind(), storage_kind::file);
    put(shared, 0, 42);
    shared.flush();
    EXPECT_EQ(map_file(merged + "/old").data()[0], std::byte{42});
    EXPECT_EQ(file_contents(merged + "/old")[0], 42);
    EXPECT_EQ(file_contents(directory / "lower/old")[0], pattern(0));
    storage fresh = create_file(merged + "/new", 100);
    put(fresh, 99, 3);
    EXPECT_EQ(map_file(merged + "/new").data()[99], std::byte{3});
  }
  EXPECT_EQ(test::mappings_of(merged), 0u);
}

}  // namespace
}  // namespace shale
