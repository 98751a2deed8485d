// Tests the bytes of header, superblock and tree pages, and the strictness of `valid`.

#include <gtest/gtest.h>

#include <algorithm>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "format/pages/header.hpp"
#include "format/pages/page.hpp"
#include "format/pages/superblock.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"

namespace shale::format {
namespace {

uuid some_uuid(std::uint8_t first) {
  uuid id;
  for (std::size_t i = 0; i < 16; ++i) id.bytes[i] = static_cast<std::uint8_t>(first + i);
  return id;
}

const superblock some_superblock{
    .generation = 7, .root = {1u << 20, 4096}, .root_checksum = {3, 4}, .end_of_file = 2u << 20};

// The checksums of the empty input, as the reference implementation of xxHash prints them. The seed
// and the variant are part of the format.
TEST(Checksum, IsXxh3WithSeedZero) {
  EXPECT_EQ(checksum_data({}), 0x2d06800538d394c2u);
  EXPECT_EQ(to_string(checksum_metadata({})), "99aa06d3014798d86001c324468d497f");
}

TEST(Uuid, PrintsInFiveGroups) {
  EXPECT_EQ(to_string(some_uuid(0)), "00010203-0405-0607-0809-0a0b0c0d0e0f");
  const uuid made = uuid::random();
  EXPECT_EQ(to_string(made)[14], '4');
  EXPECT_NE(made, uuid::random());
}

TEST(Header, ComesBack) {
  const header_page page = encode_header({some_uuid(9)});
  EXPECT_EQ(decode_header(page, "file").id, some_uuid(9));
}

TEST(Header, AnyChangedBitIsFound) {
  header_page page = encode_header({some_uuid(9)});
  for (std::size_t bit = 0; bit < 8 * page.size(); ++bit) {
    page[bit / 8] ^= std::byte(1u << bit % 8);
    // This includes the version: no field is used before the checksum is compared.
    EXPECT_EQ(test::code_of([&] { decode_header(page, "file"); }), errc::corrupt) << "bit " << bit;
    page[bit / 8] ^= std::byte(1u << bit % 8);
  }
}

TEST(Header, OfALaterVersionIsUnsupported) {
  header_page page = encode_header({some_uuid(9)});
  store<std::uint32_t>(page.data() + 8, 2);
  store_checksum(page.data() + 4080, checksum_metadata({page.data(), 4080}));
  try {
    decode_header(page, "file");
    FAIL() << "read a later version";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::unsupported);
  }
}

TEST(Superblock, ComesBack) {
  for (const std::uint32_t slot : {0u, 1u})
    EXPECT_EQ(decode_superblock(encode_superblock(some_superblock, some_uuid(1), slot),
                                some_uuid(1), slot),
              some_superblock);
}

TEST(Superblock, IsValidOnlyInItsOwnSlotAndFile) {
  const superblock_sector sector = encode_superblock(some_superblock, some_uuid(1), 0);
  EXPECT_FALSE(decode_superblock(sector, some_uuid(1), 1));
  EXPECT_FALSE(decode_superblock(sector, some_uuid(2), 0));
  EXPECT_FALSE(decode_superblock(superblock_sector{}, some_uuid(1), 0));
}

TEST(Superblock, AnyChangedBitMakesItInvalid) {
  superblock_sector sector = encode_superblock(some_superblock, some_uuid(1), 1);
  for (std::size_t bit = 0; bit < 8 * sector.size(); ++bit) {
    sector[bit / 8] ^= std::byte(1u << bit % 8);
    EXPECT_FALSE(decode_superblock(sector, some_uuid(1), 1)) << "bit " << bit;
    sector[bit / 8] ^= std::byte(1u << bit % 8);
  }
}

TEST(Superblock, StaysValidForAnyVersion) {
  // Otherwise a newer program's generation would be ignored in favour of an older one.
  superblock later = some_superblock;
  later.version = 99;
  later.incompatible = ~0ull;
  EXPECT_EQ(decode_superblock(encode_superblock(later, some_uuid(1), 0), some_uuid(1), 0), later);
}

TEST(Superblock, ChecksumCoversUuidThenSlotThenTheRest) {
  const superblock_sector sector = encode_superblock(some_superblock, some_uuid(1), 1);
  std::vector<std::byte> ordered(sector.begin() + 16, sector.begin() + 32);  // uuid
  ordered.insert(ordered.end(), sector.begin() + 12, sector.begin() + 16);   // slot
  ordered.insert(ordered.end(), sector.begin(), sector.begin() + 12);
  ordered.insert(ordered.end(), sector.begin() + 32, sector.begin() + 496);
  EXPECT_EQ(load_checksum(sector.data() + 496), checksum_metadata(ordered));
}

// ---- tree pages --------------------------------------------------------------------------------

class Page : public testing::Test {
 protected:
  Page() {
    made.insert_value(0, "alpha", {});
    made.insert_value(1, "gamma", std::as_bytes(std::span("value", 5)));
    made.insert_overflow(1, "beta", {{81920, 5000}, {1, 2}});
    made.stamp(3, 65536);
  }
  page made{tree_kind::catalog, page_kind::leaf, 0};
};

TEST_F(Page, HoldsItsEntries) {
  ASSERT_EQ(page::problem(made.bytes()), std::nullopt);
  ASSERT_EQ(made.count(), 3u);
  EXPECT_EQ(made.key(0), "alpha");
  EXPECT_EQ(made.key(1), "beta");
  EXPECT_EQ(made.key(2), "gamma");
  EXPECT_TRUE(made.overflows(1));
  EXPECT_EQ(made.overflow(1).range, (extent{81920, 5000}));
  EXPECT_EQ(made.value(2).size(), 5u);
  EXPECT_EQ(made.lower_bound("beta"), 1u);
  EXPECT_EQ(made.lower_bound("c"), 2u);
  EXPECT_EQ(made.lower_bound("z"), 3u);
}

// page.3
TEST_F(Page, HasOneWayToBeWritten) {
  page other(tree_kind::catalog, page_kind::leaf, 0);
  for (const char* const key : {"x", "gamma", "beta", "alpha"}) {
    const std::size_t i = other.lower_bound(key);
    if (key[0] == 'g') other.insert_value(i, key, std::as_bytes(std::span("value", 5)));
    else if (key[0] == 'b') other.insert_overflow(i, key, {{81920, 5000}, {1, 2}});
    else other.insert_value(i, key, {});
  }
  other.erase(3);
  other.stamp(3, 65536);
  EXPECT_TRUE(std::ranges::equal(other.bytes(), made.bytes()));
}

// page.1
TEST_F(Page, IsRefusedWithKeysOutOfOrderOrTooLong) {
  for (const auto& [first, second] :
       {std::pair<std::string, std::string>{"b", "a"}, {"a", "a"}, {"a", std::string(1025, 'k')}}) {
    page wrong(tree_kind::catalog, page_kind::leaf, 0);
    wrong.insert_value(0, first, {});
    wrong.insert_value(1, second, {});
    wrong.stamp(3, 65536);
    EXPECT_TRUE(page::problem(wrong.bytes())) << first << second;
  }
  for (const char* const first : {"", "a"}) {
    page branch(tree_kind::catalog, page_kind::branch, 1);
    branch.insert_child(0, first, {81920, {1, 2}});
    branch.stamp(3, 65536);
    EXPECT_EQ(page::problem(branch.bytes()).has_value(), first[0] == 'a');
  }
}

TEST_F(Page, IsRefusedWithAnythingOutOfPlace) {
  std::vector<std::byte> bytes(made.bytes().begin(), made.bytes().end());
  int refused = 0;
  for (std::size_t offset = 0; offset < bytes.size(); ++offset) {
    for (const int mask : {1, 0x80, 0xff}) {
      bytes[offset] ^= std::byte(mask);
      // It never crashes, and accepted pages can be read.
      if (page::problem(bytes)) {
        ++refused;
      } else {
        const page changed(bytes);
        for (std::size_t i = 0; i < changed.count(); ++i) {
          EXPECT_LE(changed.key(i).size(), key_bytes_max);
          EXPECT_TRUE(changed.overflows(i) || changed.value(i).size() <= page_bytes);
        }
      }
      bytes[offset] ^= std::byte(mask);
    }
  }
  EXPECT_GT(refused, 3 * 3900);  // the other bytes determine nearly every byte
}

}  // namespace
}  // namespace shale::format
