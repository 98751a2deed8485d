// Tests which storages are bytes of the same file, and at which offset.
#include "storage/blocks/backing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "shale/mapped_file.hpp"
#include "shale/shared_memory.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/mapped/mapped_extents.hpp"
#include "storage/test_support.hpp"
#include "support/system_page.hpp"

namespace shale::detail {
namespace {

using test::scratch_directory;
using test::write_pattern;

const std::size_t page = test::system_page_bytes();

class Backing : public testing::Test {
 protected:
  void SetUp() override { write_pattern(path, 16 * page); }

  scratch_directory directory;
  const std::string path = directory / "data";
};

// backing.1
TEST_F(Backing, IsTheFileUnderAnyName) {
  std::filesystem::create_hard_link(path, directory / "second");
  std::filesystem::create_symlink(path, directory / "link");
  std::filesystem::copy_file(path, directory / "copy");
  const storage written = map_file(path, {.access = access::read_write});
  for (const char* const name : {"data", "second", "link"})
    EXPECT_TRUE(stores_show(written, map_file(directory / name, {.access = access::read_write})))
        << name;
  EXPECT_FALSE(stores_show(written, map_file(directory / "copy", {.access = access::read_write})));

  // A new file with the name of a mapped file is another file.
  std::filesystem::remove(path);
  std::filesystem::rename(directory / "copy", path);
  EXPECT_FALSE(stores_show(written, map_file(path, {.access = access::read_write})));
  EXPECT_TRUE(stores_show(written, map_file(directory / "second", {.access = access::read_write})));
}

// backing.1: an inode number can be used for another file only when nobody has the old file open; a
// mapping keeps it open.
TEST_F(Backing, IsNotTakenForAFileThatCameLater) {
  const storage written = map_file(path, {.access = access::read_write});
  std::filesystem::remove(path);
  for (int i = 0; i < 20; ++i) {
    const std::string later = directory / std::to_string(i);
    write_pattern(later, page);
    EXPECT_FALSE(stores_show(written, map_file(later, {.access = access::read_write})));
    std::filesystem::remove(later);
  }
}

TEST_F(Backing, OfASegmentIsTheSegment) {
  const std::string name = "backing-test." + std::to_string(::getpid());
  const storage made = create_shared(name, page);
  const storage other = create_shared(name + ".other", page);
  const storage opened = open_shared(name);
  EXPECT_TRUE(stores_show(made, opened));
  EXPECT_TRUE(stores_show(opened, made));
  EXPECT_TRUE(stores_show(made, open_shared(name, {.access = access::read_only}).slice(5, 10)));
  EXPECT_FALSE(stores_show(made, other));
  EXPECT_EQ(extent_at(made, 0).offset, extent_at(opened, 0).offset);
}

TEST_F(Backing, ShowsWhatReachesTheFileOnly) {
  const auto map = [&](access allowed) { return map_file(path, {.access = allowed}); };
  for (const access allowed : {access::read_only, access::read_write, access::copy_on_write}) {
    if (mapping_support_at(path, allowed) != mapping_support::mapped) continue;  // a copy in memory
    EXPECT_TRUE(stores_show(map(access::read_write), map(allowed)));
    EXPECT_FALSE(stores_show(map(access::copy_on_write), map(allowed)));
    EXPECT_FALSE(stores_show(map(access::read_only), map(allowed)));
  }
}

TEST_F(Backing, IsAskedBetweenOwners) {
  const storage mapped = map_file(path, {.access = access::read_write});
  EXPECT_FALSE(stores_show(mapped, mapped.slice(page, page)));
  EXPECT_FALSE(stores_show(mapped, storage()));
  EXPECT_FALSE(stores_show(storage(), mapped));
  const storage heap = storage::allocate(page);
  EXPECT_FALSE(stores_show(mapped, heap));
  EXPECT_FALSE(stores_show(heap, mapped));
}

TEST_F(Backing, NamesThePlaceOfEveryByte) {
  const storage tail = map_file(path, {.offset = 5000}).slice(100, 20'000);
  EXPECT_EQ(extent_at(tail, 0).offset, 5100u);
  EXPECT_EQ(extent_at(tail, 19'999).offset, 25'099u);
  EXPECT_EQ(extent_at(tail, 19'999).bytes, 16 * page - 25'099);

  const file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  const std::vector<file_extent> extents{{8 * page, page}, {9 * page, page}, {2 * page, page}};
  const storage pieces =
      map_extents(file.get(), extents, {.access = access::read_write, .path = path});
  EXPECT_EQ(extent_at(pieces, 10).offset, 8 * page + 10);
  EXPECT_EQ(extent_at(pieces, 10).bytes, 2 * page - 10);  // continues in the file: one extent
  EXPECT_EQ(extent_at(pieces, 2 * page - 1).offset, 10 * page - 1);
  EXPECT_EQ(extent_at(pieces, 2 * page).offset, 2 * page);
  EXPECT_EQ(extent_at(pieces, 2 * page).bytes, page);
}

}  // namespace
}  // namespace shale::detail
