#include "shale/raw.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "interop/test_support.hpp"

namespace shale {
namespace {

using test::code_of;
using test::pattern;
using test::scratch_directory;

std::vector<dtype> every_dtype() {
  std::vector<dtype> types = test::numpy_dtypes();
  types.insert(types.end(), {dtype::bfloat16, dtype::float8_e4m3fn, dtype::float8_e5m2});
  return types;
}

std::string pattern_bytes(const tensor& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Reverses the bytes of each number, one by one.
std::string reversed(const std::string& bytes, dtype type) {
  const std::size_t number =
      kind(type) == dtype_kind::complex ? item_bytes(type) / 2 : item_bytes(type);
  std::string result = bytes;
  for (std::size_t offset = 0; offset < bytes.size(); offset += number)
    std::reverse(result.begin() + static_cast<std::ptrdiff_t>(offset),
                 result.begin() + static_cast<std::ptrdiff_t>(offset + number));
  return result;
}

TEST(Raw, IsTheElementsAndNothingElse) {
  const scratch_directory files;
  for (const dtype type : every_dtype()) {
    SCOPED_TRACE(name(type));
    const tensor values = pattern({3, 5}, type, 1);
    write_raw(files / "a.raw", values);
    EXPECT_EQ(test::read_file(files / "a.raw"), pattern_bytes(values));
    const tensor read = read_raw(files / "a.raw", type, {.shape = dims{3, 5}});
    EXPECT_EQ(read.storage().kind(), storage_kind::file);
    EXPECT_TRUE(equal_bits(read, values));
    EXPECT_TRUE(equal_bits(read_raw(files / "a.raw", type), values.view({15})));

    write_raw(files / "b.raw", values.swapaxes(0, 1), {.byte_order = std::endian::big});
    EXPECT_EQ(test::read_file(files / "b.raw"),
              reversed(test::row_major_bytes(values.swapaxes(0, 1)), type));
    write_raw(files / "b.raw", values, {.byte_order = std::endian::big});
    EXPECT_EQ(test::read_file(files / "b.raw"), reversed(pattern_bytes(values), type));
    EXPECT_TRUE(equal_bits(
        read_raw(files / "b.raw", type, {.shape = dims{3, 5}, .byte_order = std::endian::big}),
        values));
  }
}

TEST(Raw, OfManyPiecesIsSwappedWhole) {
  const scratch_directory files;
  const tensor values = pattern({1100, 1001}, dtype::complex128, 3);
  write_raw(files / "a.raw", values, {.byte_order = std::endian::big});
  EXPECT_EQ(test::read_file(files / "a.raw"), reversed(pattern_bytes(values), dtype::complex128));
  EXPECT_TRUE(equal_bits(read_raw(files / "a.raw", dtype::complex128,
                                  {.shape = dims{1100, 1001}, .byte_order = std::endian::big}),
                         values));
}

TEST(Raw, IsReadFromAnyByte) {
  const scratch_directory files;
  const tensor values = pattern({40}, dtype::int32, 2);
  for (std::uint64_t offset = 0; offset < 9; ++offset) {
    test::write_file(files / "a.raw", std::string(offset, 'x') + pattern_bytes(values) + "yz");
    const tensor read =
        read_raw(files / "a.raw", dtype::int32, {.shape = dims{40}, .offset = offset});
    EXPECT_TRUE(equal_bits(read, values)) << offset;
    EXPECT_EQ(read.storage().kind(), offset % 4 == 0 ? storage_kind::file : storage_kind::heap);
    EXPECT_EQ(code_of([&] { read_raw(files / "a.raw", dtype::int32, {.offset = offset}); }),
              errc::invalid_argument);
  }
  EXPECT_EQ(code_of([&] {
              read_raw(files / "a.raw", dtype::int32,
                       {.shape = dims{40}, .offset = 3, .access = access::read_write});
            }),
            errc::unsupported);
}

TEST(Raw, ThatDoesNotFitTheFileIsRefused) {
  const scratch_directory files;
  test::write_file(files / "a.raw", std::string(12, 'a'));
  const auto refused = [&](const raw_read_options& options) {
    return code_of([&] { read_raw(files / "a.raw", dtype::float32, options); });
  };
  EXPECT_EQ(refused({.shape = dims{4}}), errc::invalid_argument);
  EXPECT_EQ(refused({.shape = dims{3}, .offset = 1}), errc::invalid_argument);
  EXPECT_EQ(refused({.offset = 13}), errc::invalid_argument);
  EXPECT_EQ(refused({.shape = dims{-1}}), errc::invalid_argument);
  EXPECT_EQ(refused({.shape = dims{index_t{1} << 62}}), errc::invalid_argument);
  EXPECT_EQ(refused({.shape = dims{index_t{1} << 62, 4}}), errc::invalid_argument);
  EXPECT_EQ(read_raw(files / "a.raw", dtype::float32, {.offset = 12}).size(), 0);
  EXPECT_EQ(read_raw(files / "a.raw", dtype::float32, {.shape = dims{0, 7}}).shape(), (dims{0, 7}));
  EXPECT_EQ(code_of([&] { read_raw(files / "a.raw", dtype::boolean); }), errc::corrupt);
}

TEST(Raw, ReadWriteStoresReachTheFile) {
  const scratch_directory files;
  test::write_file(files / "a.raw", std::string(8, '\0'));
  tensor read =
      read_raw(files / "a.raw", dtype::uint8, {.offset = 2, .access = access::read_write});
  read.set({1}, 65);
  read.storage().flush();
  EXPECT_EQ(test::read_file(files / "a.raw"), std::string("\0\0\0A\0\0\0\0", 8));
}

// The system reports 0 or a page as their size.
TEST(Raw, FilesThatTheKernelGeneratesAreRefused) {
  for (const char* path : {"/proc/self/status", "/proc/cpuinfo"})
    EXPECT_EQ(code_of([&] { read_raw(path, dtype::uint8); }), errc::invalid_argument) << path;
}

}  // namespace
}  // namespace shale
