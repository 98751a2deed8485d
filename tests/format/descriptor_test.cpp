// Tests array descriptors that no writer of Shale makes.
#include "format/catalog/descriptor.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "format/bytes/file_layout.hpp"
#include "format/catalog/array_name.hpp"
#include "format/catalog/attributes.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"
#include "support/little_memory.hpp"

namespace shale::format {
namespace {

constexpr std::uint64_t end_of_file = std::uint64_t{1} << 30;

array_record chunked_record(const dims& shape) {
  array_record record;
  record.name = "a";
  record.dtype = dtype::complex64;
  record.shape = shape;
  record.fill_value.assign(item_bytes(record.dtype), std::byte{});
  chunked_layout layout;
  layout.chunk_shape = dims::filled(shape.size(), 2);
  layout.grid_capacity = dims::filled(shape.size(), 1);
  record.layout = layout;
  return record;
}

template <class T>
T number_at(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Every position that holds an offset to `target`.
std::vector<std::size_t> references_to(const std::vector<std::byte>& bytes, std::size_t target) {
  std::vector<std::size_t> places;
  for (std::size_t offset = 0; offset + 4 <= target; offset += 4)
    if (number_at<std::uint32_t>(bytes, offset) == target - offset) places.push_back(offset);
  return places;
}

TEST(Descriptor, IsReadAsItWasWritten) {
  const array_record record = chunked_record({1, 2});
  const array_record read = decode_descriptor(encode_descriptor(record), end_of_file);
  EXPECT_EQ(read.name, record.name);
  EXPECT_EQ(read.shape, record.shape);
}

// A reader refuses the same records as a writer, for the same reasons.
TEST(Descriptor, ThatContradictsItselfIsRefusedByWritersAndReaders) {
  const auto dense = [](const dims& shape, std::vector<extent> extents, extent checksums = {}) {
    array_record record = chunked_record(shape);
    record.layout = dense_layout{std::move(extents), checksums, {}};
    return record;
  };
  const auto chunked = [](auto&& change) {
    array_record record = chunked_record({4, 6});
    record.chunked().grid_capacity = {2, 3};
    change(record);
    return record;
  };
  const std::pair<array_record, const char*> wrong[] = {
      {dense({2}, {{65536, 0}}), "extent 0 is empty"},
      {dense({2}, {{65536, 4096}, {69632, 16}}), "extent 1 holds no element"},
      {dense({1000}, {{65536, 100}, {69632, 7900}}), "not a multiple of its alignment"},
      {dense({1 << 22}, {{(2u << 20) + 4096, 32u << 20}}),
       "extent 0 of 33554432 bytes starts at byte 2101248, not at a multiple of 2097152"},
      {dense({3}, {{65536, 16}}), "its extents hold 16 bytes, its shape needs 24"},
      {dense({2}, {{65536, 16}}, {69632, 16}), "its checksums have 16 bytes, its shape needs 8"},
      {chunked([](array_record& record) { record.chunked().chunk_shape = {2}; }), "differ in rank"},
      {chunked([](array_record& record) {
         record.chunked().chunk_shape = {2, 0};
       }),
       "chunk length 0 along axis 1"},
      {chunked([](array_record& record) {
         record.chunked().grid_capacity = {2, 2};
       }),
       "grid capacity 2 along axis 1, its shape needs 3"},
      {chunked([](array_record& record) {
         record.chunked().chunk_shape = {index_t{1} << 20, index_t{1} << 20};
         record.chunked().grid_capacity = {1, 1};
       }),
       "have more than"},
      {chunked([](array_record& record) {
         record.chunked().grid_capacity = {index_t{1} << 40, index_t{1} << 40};
       }),
       "is too large"},
      {chunked([](array_record& record) {
         record.chunked().stages = {{stage_kind::zstd, 99}};
       }),
       "zstd"},
      {chunked([](array_record& record) { record.name = "a\nb"; }), "byte 1 is one"},
      {chunked([](array_record& record) { record.fill_value.resize(3); }),
       "its fill value has 3 bytes"},
      {chunked([](array_record& record) {  // found by fuzzing
         record.dtype = dtype::boolean;
         record.fill_value = {std::byte{32}};
       }),
       "its fill value is 32, a bool is 0 or 1"},
      {chunked([](array_record& record) {
         record.attributes = {{"b", ""}, {"a", ""}};
       }),
       "attribute 1 is out of order"},
  };
  for (const auto& [record, why] : wrong) {
    SCOPED_TRACE(why);
    const auto write = [&, &bad = record] { require_valid(bad); };
    const auto read = [&, &bad = record] {
      static_cast<void>(decode_descriptor(encode_descriptor(bad), end_of_file));
    };
    EXPECT_EQ(test::code_of(write), errc::invalid_argument);
    EXPECT_NE(test::text_of(write).find(why), std::string::npos) << test::text_of(write);
    EXPECT_EQ(test::code_of(read), errc::corrupt) << test::text_of(read);
    EXPECT_NE(test::text_of(read).find(why), std::string::npos) << test::text_of(read);
  }
}

// A list of extents may name one page many times, but no more bytes than the file has.
TEST(Descriptor, WhoseExtentsExceedTheFileIsCorrupt) {
  array_record record = chunked_record({18 * 512});  // of 8 bytes each: 18 pages
  record.layout =
      dense_layout{std::vector<extent>(18, extent{16 * page_bytes, page_bytes}), {}, {}};
  const std::vector<std::byte> bytes = encode_descriptor(record);
  EXPECT_EQ(decode_descriptor(bytes, 18 * page_bytes).dense().extents.size(), 18u);
  const auto read = [&] { static_cast<void>(decode_descriptor(bytes, 18 * page_bytes - 1)); };
  EXPECT_EQ(test::code_of(read), errc::corrupt);
  EXPECT_NE(test::text_of(read).find("longer than the file"), std::string::npos);
}

// Found by fuzzing: FlatBuffers does not verify the alignment of a vector's elements.
TEST(Descriptor, WhoseLengthsAreMisalignedIsCorrupt) {
  std::vector<std::byte> bytes = encode_descriptor(chunked_record({1, 2}));
  // The shape has two lengths. Four bytes later there is a vector of one length, which is
  // misaligned.
  std::size_t shape = 0;
  for (std::size_t offset = 4; offset + 20 <= bytes.size() && shape == 0; offset += 4)
    if (number_at<std::uint32_t>(bytes, offset) == 2 &&
        number_at<std::uint64_t>(bytes, offset + 4) == 1 &&
        number_at<std::uint64_t>(bytes, offset + 12) == 2)
      shape = offset;
  ASSERT_NE(shape, 0u);
  const auto places = references_to(bytes, shape);
  ASSERT_EQ(places.size(), 1u);
  const std::uint32_t behind = number_at<std::uint32_t>(bytes, places[0]) + 4;
  std::memcpy(bytes.data() + places[0], &behind, sizeof behind);
  const auto decode = [&] { static_cast<void>(decode_descriptor(bytes, end_of_file)); };
  EXPECT_EQ(test::code_of(decode), errc::corrupt);
  EXPECT_NE(test::text_of(decode).find("the shape is misaligned"), std::string::npos);
}

// FlatBuffers lets a vector refer to one table many times. So a descriptor of 300 KiB can claim 400
// MiB.
TEST(Descriptor, WhoseAttributesAreOneManyTimesIsCorruptAndTakesNoMemory) {
  constexpr std::uint32_t count = 4000;
  array_record record = chunked_record({1, 2});
  const std::string large(100'000, 'x');
  set_attribute(record, "0000", large);
  for (std::uint32_t i = 1; i < count; ++i) set_attribute(record, fmt::format("{:04}", i), "");
  std::vector<std::byte> bytes = encode_descriptor(record);
  ASSERT_EQ(decode_descriptor(bytes, end_of_file).attributes.at(0).second, large);
  std::size_t list = 0;
  for (std::size_t offset = 4; offset + 4 + 4 * count <= bytes.size() && list == 0; offset += 4)
    if (number_at<std::uint32_t>(bytes, offset) == count &&
        references_to(bytes, offset).size() == 1)
      list = offset;
  ASSERT_NE(list, 0u);
  const std::size_t first = list + 4;
  const auto named = static_cast<std::uint32_t>(first + number_at<std::uint32_t>(bytes, first));
  for (std::size_t entry = first; entry < first + 4 * count; entry += 4) {
    const auto offset = named - static_cast<std::uint32_t>(entry);
    std::memcpy(bytes.data() + entry, &offset, sizeof offset);
  }
  const test::little_memory limit;
  const auto decode = [&] { static_cast<void>(decode_descriptor(bytes, end_of_file)); };
  EXPECT_EQ(test::code_of(decode), errc::corrupt);
  EXPECT_NE(test::text_of(decode).find("longer than it is"), std::string::npos);
}

// Found by fuzzing: an empty array whose strides no tensor can have.
TEST(Descriptor, WhoseEmptyShapeIsTooLargeIsCorrupt) {
  const array_record record = chunked_record({0, std::numeric_limits<index_t>::max() / 2});
  EXPECT_EQ(test::code_of([&] { require_valid(record); }), errc::invalid_argument);
  const auto decode = [&] {
    static_cast<void>(decode_descriptor(encode_descriptor(record), end_of_file));
  };
  EXPECT_EQ(test::code_of(decode), errc::corrupt);
  EXPECT_NE(test::text_of(decode).find("too large"), std::string::npos) << test::text_of(decode);
}

}  // namespace
}  // namespace shale::format
