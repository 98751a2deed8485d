// Bytes that are no .t7 file, or only nearly one.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "interop/t7_bytes.hpp"
#include "interop/test_support.hpp"
#include "shale/memory_pool.hpp"
#include "shale/t7.hpp"

namespace shale {
namespace {

using test::code_of;
using test::scratch_directory;
using test::t7_bytes;
using test::text_of;

class HostileT7 : public testing::TestWithParam<bool> {
 protected:
  t7_bytes begin() const { return t7_bytes(GetParam()); }
  std::string write(const std::string& bytes) const {
    test::write_file(files_ / "a.t7", bytes);
    return files_ / "a.t7";
  }

  // The file is corrupt, and the message names it and the byte, and says `why`.
  void expect_corrupt(const t7_bytes& made, const std::string& why) const {
    const std::string path = write(made.bytes());
    EXPECT_EQ(code_of([&] { t7_file::open(path); }), errc::corrupt) << why;
    const std::string text = text_of([&] { t7_file::open(path); });
    EXPECT_NE(text.find(why), std::string::npos) << text;
    EXPECT_NE(text.find("file " + path + ", byte "), std::string::npos) << text;
  }

  // Reads all that there is. Errors are those of hostile bytes.
  static void read_all(const std::string& path, const std::string& trace) {
    const auto expected = [](errc code) {
      return code == errc::corrupt || code == errc::unsupported;
    };
    try {
      const t7_file file = t7_file::open(path);
      for (const std::string& name : file.names()) {
        try {
          file.read(name);
        } catch (const error& failure) {
          EXPECT_TRUE(expected(failure.code())) << trace << ": " << failure.what();
        }
      }
    } catch (const error& failure) {
      EXPECT_TRUE(expected(failure.code())) << trace << ": " << failure.what();
    }
  }

  // A file with everything that there is.
  t7_bytes everything() const {
    t7_bytes made = begin();
    made.table(1, 6);
    made.string("x").tensor(2, "Float", {2, 2}, {2, 1}, 2);
    made.storage<float>(3, "Float", {1, 2, 3, 4, 5});
    made.number(1).again(4, 2);
    made.string("y").tensor(4, "Float", {3}, {-1}, 3).again(4, 3);
    made.boolean(true).i(8).i(5).text("code").table(6, 1).number(1).nil();
    made.string("net").object(7, "nn.Module").table(8, 1).string("up").again(3, 1);
    made.string("bytes").storage<std::uint8_t>(9, "Byte", {7, 8});
    return made;
  }

  scratch_directory files_;
};

TEST_P(HostileT7, CutAnywhereIsCorrupt) {
  const std::string whole = everything().bytes();
  // The last line feed of an ASCII file separates nothing.
  const std::size_t needed = whole.size() - (GetParam() ? 1 : 0);
  EXPECT_EQ(code_of([&] { t7_file::open(write(whole.substr(0, needed))); }), errc{});
  for (std::size_t bytes = 0; bytes < needed; ++bytes)
    EXPECT_EQ(code_of([&] { t7_file::open(write(whole.substr(0, bytes))); }), errc::corrupt)
        << bytes;
}

TEST_P(HostileT7, FlippedBitsAreRefusedOrRead) {
  const std::string whole = everything().bytes();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    read_all(write(changed), "bit " + std::to_string(bit));
  }
}

TEST_P(HostileT7, BytesOfEveryValueAreRefusedOrRead) {
  const std::string whole = everything().bytes();
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char byte : {'\0', '\x7f', '\x80', '\xff', '0', '9', '-', ' ', '\n'}) {
      std::string changed = whole;
      changed[at] = byte;
      read_all(write(changed), "byte " + std::to_string(at));
    }
}

TEST_P(HostileT7, MoreBytesThanTheObjectAreCorrupt) {
  t7_bytes made = everything();
  made.nil();
  expect_corrupt(made, "bytes after the object");
}

TEST_P(HostileT7, NegativeAndUnknownNumbersAreCorrupt) {
  expect_corrupt(begin().i(9), "got 9, wanted 0 to 8");
  expect_corrupt(begin().i(2).i(-1), "negative length");
  expect_corrupt(begin().table(1, -1), "negative length");
  expect_corrupt(begin().i(8).i(1).i(-5), "negative length");
  expect_corrupt(begin().i(5).i(2), "neither 0 nor 1");
  expect_corrupt(begin().i(4).i(1).i(5000).raw(std::string(5000, 'x')), "too long");
  expect_corrupt(begin().i(4).i(1).i(129).raw(std::string(129, 'x')), "too long");
  expect_corrupt(begin().object(1, "torch.IntStorage").l(-1), "negative size");
  expect_corrupt(begin().object(1, "torch.IntTensor").i(-1), "negative number of axes");
  expect_corrupt(begin().table(1, 1).nil().nil(), "no keys of a table");
  expect_corrupt(begin().table(1, 1).number(std::numeric_limits<double>::quiet_NaN()).nil(),
                 "no keys of a table");
}

// torch.3
TEST_P(HostileT7, ReferencesToOtherKindsAreCorrupt) {
  expect_corrupt(begin().table(1, 1).number(1).again(4, 1), "another kind");
  expect_corrupt(begin().table(1, 1).number(1).again(8, 1), "another kind");
  t7_bytes made = begin();
  made.table(1, 2).number(1).storage<std::uint8_t>(2, "Byte", {1}).number(2).again(3, 2);
  expect_corrupt(made, "another kind");
  // The place of a tensor's storage.
  expect_corrupt(begin().tensor(1, "Byte", {1}, {1}).again(4, 1), "storage of another type");
  expect_corrupt(begin().tensor(1, "Byte", {1}, {1}).table(2, 0), "without its storage");
  expect_corrupt(begin().tensor(1, "Byte", {1}, {1}).tensor(2, "Byte", {1}, {1}).nil(),
                 "without its storage");
  expect_corrupt(begin().tensor(1, "Byte", {1}, {1}).storage<std::int16_t>(2, "Short", {1}),
                 "storage of another type");
  expect_corrupt(begin().tensor(1, "Byte", {1}, {1}).nil(), "outside its storage");
}

// torch.3
TEST_P(HostileT7, TensorsOutsideTheirStorageAreCorrupt) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  struct view {
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset;
  };
  const auto with = [&](const view& as) {
    t7_bytes made = begin();
    made.tensor(1, "Int", as.sizes, as.strides, as.offset);
    made.storage<std::int32_t>(2, "Int", {1, 2, 3, 4});
    return made;
  };
  for (const view& as : {view{{4}, {1}, 2},
                         {{5}, {1}, 1},
                         {{2, 3}, {2, 1}, 2},
                         {{2}, {-1}, 1},
                         {{2}, {4}, 1},
                         {{1}, {1}, 5},
                         {{1}, {1}, most},
                         {{2, 2}, {-2, 1}, 2}})
    expect_corrupt(with(as), "outside its storage");
  for (const view& as : {view{{-1}, {1}, 1},
                         {{most}, {1}, 1},
                         {{most, most}, {0, 0}, 1},
                         {{3}, {most}, 1},
                         {{3}, {least}, 1},
                         {{2, 2}, {most, most}, 1},
                         {{0, most, most}, {1, 1, 1}, 1}})
    expect_corrupt(with(as), "sizes or strides");
  for (const std::int64_t offset : {std::int64_t{0}, std::int64_t{-1}, least})
    expect_corrupt(with({{1}, {1}, offset}), "begins before its storage");
  // What is sound: no elements, one element with any stride, elements that repeat.
  for (const view& as : {view{{0}, {1}, 1},
                         {{0}, {least}, 900},
                         {{1}, {least}, 4},
                         {{1}, {most}, 1},
                         {{1000, 4}, {0, 1}, 1},
                         {{4}, {-1}, 4},
                         {{2, 2}, {-2, 1}, 3}}) {
    const std::string path = write(with(as).bytes());
    EXPECT_EQ(code_of([&] { t7_file::open(path).read(""); }), errc{})
        << text_of([&] { t7_file::open(path).read(""); });
  }
}

TEST_P(HostileT7, TooManyAxesAreUnsupported) {
  t7_bytes made = begin();
  const std::vector<std::int64_t> ones(33, 1);
  made.tensor(1, "Byte", ones, ones).storage<std::uint8_t>(2, "Byte", {1});
  EXPECT_EQ(code_of([&] { t7_file::open(write(made.bytes())); }), errc::unsupported);
}

// torch.1
TEST_P(HostileT7, DeclaredSizesAllocateNothing) {
  memory_pool& pool = memory_pool::default_pool();
  pool.reset_peak();
  const std::size_t before = pool.statistics().peak_live_bytes;
  constexpr std::int64_t many = std::int64_t{1} << 60;
  for (const char* type : {"Byte", "Int", "Double"}) {
    t7_bytes made = begin();
    made.object(1, std::string("torch.") + type + "Storage").l(many);
    expect_corrupt(made, "the file ends");
  }
  expect_corrupt(begin().i(2).i(2147483647), "the file ends");
  expect_corrupt(begin().table(1, 2147483647), "");
  expect_corrupt(begin().i(8).i(1).i(2147483647), "the file ends");
  EXPECT_LT(pool.statistics().peak_live_bytes, before + (4u << 20));
}

// torch.2
TEST_P(HostileT7, DeepTreesCostNoDepthOfCalls) {
  constexpr std::int32_t depth = 300'000;
  t7_bytes made = begin();
  for (std::int32_t level = 1; level <= depth; ++level) made.table(level, 1).number(1);
  t7_bytes open_end = made;
  made.nil();
  const std::string path = write(made.bytes());
  EXPECT_TRUE(t7_file::open(path).names().empty());
  expect_corrupt(open_end, "");
  t7_bytes objects = begin();
  for (std::int32_t level = 1; level <= depth; ++level)
    objects.object(2 * level - 1, "nn.A").table(2 * level, 1).number(1);
  objects.storage<std::uint8_t>(2 * depth + 1, "Byte", {1});
  const t7_file file = t7_file::open(write(objects.bytes()));
  ASSERT_EQ(file.names().size(), 1u);
  EXPECT_EQ(file.names()[0].size(), std::size_t{2} * depth - 1);
}

// torch.4: a table that holds the next one twice has 2^60 paths.
TEST_P(HostileT7, SharedTablesAreNotMultiplied) {
  t7_bytes made = begin();
  constexpr std::int32_t levels = 60;
  for (std::int32_t level = 1; level <= levels; ++level) made.table(level, 2).string("a");
  made.storage<std::uint8_t>(levels + 1, "Byte", {1});
  made.string("b").again(4, levels + 1);
  for (std::int32_t level = levels; level > 1; --level) made.string("b").again(3, level);
  const t7_file file = t7_file::open(write(made.bytes()));
  ASSERT_EQ(file.names().size(), 2u);
  EXPECT_EQ(file.names()[0].size(), std::size_t{2} * levels - 1);
}

// torch.4
TEST_P(HostileT7, PathsThatAreLongerThanTheFileAreRefused) {
  t7_bytes made = begin();
  constexpr std::int32_t arrays = 100;
  made.table(1, 1).string(std::string(100'000, 'k')).table(2, arrays);
  for (std::int32_t i = 0; i < arrays; ++i)
    made.number(i).storage<std::uint8_t>(i + 3, "Byte", {1});
  const std::string path = write(made.bytes());
  EXPECT_EQ(code_of([&] { t7_file::open(path); }), errc::unsupported);
  EXPECT_NE(text_of([&] { t7_file::open(path); }).find("longer than the file"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Encodings, HostileT7, testing::Bool(), [](const auto& made) {
  return made.param ? std::string("ascii") : std::string("binary");
});

TEST(HostileT7Text, WordsThatAreNoNumbersAreCorrupt) {
  const scratch_directory files;
  const auto code = [&](const std::string& text) {
    test::write_file(files / "a.t7", text);
    return code_of([&] {
      const t7_file file = t7_file::open(files / "a.t7");
      for (const std::string& name : file.names()) file.read(name);
    });
  };
  EXPECT_EQ(code("1\n2.5\n"), errc{});
  EXPECT_EQ(code("1 2.5"), errc{});
  for (const char* text : {"1\n2.5x\n", "1\n\n", "1\n--1\n", "3\n1\n1.5\n", "5\n0x1\n",
                           "99999999999\n", "1\n1e999\n", "1 2 3", "1x"})
    EXPECT_EQ(code(text), errc::corrupt) << text;
  EXPECT_EQ(code("1\n" + std::string(1000, '1') + "\n"), errc::corrupt);
  t7_bytes made(true);
  made.object(1, "torch.ShortStorage").l(2);
  EXPECT_EQ(code(made.bytes() + "1 32767\n"), errc{});
  for (const char* elements : {"1 32768\n", "1 2.5\n", "1 two\n", "1\n", "1 2 3\n"})
    EXPECT_EQ(code(made.bytes() + elements), errc::corrupt) << elements;
}

TEST(HostileT7Bytes, OfOtherFilesAreRefused) {
  const scratch_directory files;
  const auto code = [&](const std::string& bytes) {
    test::write_file(files / "a.t7", bytes);
    return code_of([&] { t7_file::open(files / "a.t7"); });
  };
  EXPECT_EQ(code(""), errc::corrupt);
  EXPECT_EQ(code("\x93NUMPY"), errc::corrupt);
  EXPECT_EQ(code("PK\x03\x04 and more"), errc::corrupt);
  EXPECT_EQ(code(std::string("\0\0\0\3\0\0\0\1\0\0\0\0", 12)), errc::unsupported);  // big-endian
  EXPECT_EQ(code(std::string(4, '\0')), errc{});                                    // nil
}

}  // namespace
}  // namespace shale
