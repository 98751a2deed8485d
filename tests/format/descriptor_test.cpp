// Descriptors that no writer of ours has made.
#include "format/descriptor.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "shale/error.hpp"
#include "support/failures.hpp"

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
T number_at(const std::vector<std::byte>& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Every place from which an offset leads to `target`.
std::vector<std::size_t> references_to(const std::vector<std::byte>& bytes, std::size_t target) {
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at + 4 <= target; at += 4)
    if (number_at<std::uint32_t>(bytes, at) == target - at) places.push_back(at);
  return places;
}

TEST(Descriptor, IsReadAsItWasWritten) {
  const array_record record = chunked_record({1, 2});
  const array_record read = decode_descriptor(encode_descriptor(record), end_of_file);
  EXPECT_EQ(read.name, record.name);
  EXPECT_EQ(read.shape, record.shape);
}

// Found by fuzzing: the elements of a vector may lie anywhere, as far as FlatBuffers cares.
TEST(Descriptor, WhoseLengthsAreMisalignedIsCorrupt) {
  std::vector<std::byte> bytes = encode_descriptor(chunked_record({1, 2}));
  // The shape: two lengths. Four bytes later stands a vector of one length, out of step.
  std::size_t shape = 0;
  for (std::size_t at = 4; at + 20 <= bytes.size() && shape == 0; at += 4)
    if (number_at<std::uint32_t>(bytes, at) == 2 && number_at<std::uint64_t>(bytes, at + 4) == 1 &&
        number_at<std::uint64_t>(bytes, at + 12) == 2)
      shape = at;
  ASSERT_NE(shape, 0u);
  const auto places = references_to(bytes, shape);
  ASSERT_EQ(places.size(), 1u);
  const std::uint32_t behind = number_at<std::uint32_t>(bytes, places[0]) + 4;
  std::memcpy(bytes.data() + places[0], &behind, sizeof behind);
  const auto decode = [&] { static_cast<void>(decode_descriptor(bytes, end_of_file)); };
  EXPECT_EQ(test::code_of(decode), errc::corrupt);
  EXPECT_NE(test::text_of(decode).find("the shape is misaligned"), std::string::npos);
}

// Found by fuzzing: no element, but strides that no tensor can have.
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
