#include "shale/t7.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "interop/t7/shared_storages.hpp"
#include "interop/t7_bytes.hpp"
#include "interop/test_support.hpp"
#include "shale/executor.hpp"
#include "shale/memory_pool.hpp"

namespace shale {
namespace {

using test::code_of;
using test::pattern;
using test::scratch_directory;
using test::t7_bytes;
using test::text_of;
using named_tensors = std::vector<std::pair<std::string, tensor>>;

class T7 : public testing::TestWithParam<bool> {
 protected:
  t7_bytes begin() const { return t7_bytes(GetParam()); }
  t7_file open(const t7_bytes& made) const {
    test::write_file(path_, made.bytes());
    return t7_file::open(path_);
  }

  scratch_directory files_;
  std::string path_ = files_ / "a.t7";
};

std::map<std::string, t7_value> by_key(const t7_file& file, const t7_value& table) {
  std::map<std::string, t7_value> found;
  for (const t7_pair& pair : file.pairs(table)) found.emplace(pair.key.text, pair.value);
  return found;
}

TEST_P(T7, HoldsATreeOfValues) {
  t7_bytes made = begin();
  made.table(1, 7);
  made.string("name").string("a\nb");
  made.string("empty").string("");
  made.string("rate").number(0.1);
  made.string("on").boolean(true);
  made.string("off").boolean(false);
  made.string("none").nil();
  made.string("list").table(2, 3);
  made.number(1).number(-2e300).number(2.5).string("x").boolean(true).number(7);
  const t7_file file = open(made);
  EXPECT_EQ(file.encoding(), GetParam() ? t7_encoding::ascii : t7_encoding::binary);
  EXPECT_EQ(file.root().kind, t7_kind::table);
  const auto values = by_key(file, file.root());
  EXPECT_EQ(values.at("name").text, "a\nb");
  EXPECT_EQ(values.at("empty").kind, t7_kind::string);
  EXPECT_EQ(values.at("empty").text, "");
  EXPECT_EQ(values.at("rate").number, 0.1);
  EXPECT_EQ(values.at("on").number, 1);
  EXPECT_EQ(values.at("off").kind, t7_kind::boolean);
  EXPECT_EQ(values.at("off").number, 0);
  EXPECT_EQ(values.at("none").kind, t7_kind::nil);
  const std::vector<t7_pair> list = file.pairs(values.at("list"));
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].key.number, 1);
  EXPECT_EQ(list[0].value.number, -2e300);
  EXPECT_EQ(list[1].key.number, 2.5);
  EXPECT_EQ(list[2].key.kind, t7_kind::boolean);
  EXPECT_TRUE(file.names().empty());
  EXPECT_EQ(file.other_values().numbers, 3u);
  EXPECT_EQ(file.other_values().booleans, 2u);
  EXPECT_EQ(file.other_values().strings, 3u);
}

TEST_P(T7, ArraysHaveThePathsOfTheirKeys) {
  t7_bytes made = begin();
  made.table(1, 3);
  made.string("weights").table(2, 2);
  made.number(1).tensor(3, "Float", {2, 3}, {1, 2}, 2);
  made.storage<float>(4, "Float", {9, 0, 1, 2, 3, 4, 5});
  made.number(-2.5).again(4, 3);
  made.string("size").storage<std::int64_t>(5, "Long", {3, -4});
  made.string("").tensor(6, "Double", {}, {}).nil();
  const t7_file file = open(made);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"weights/1", "weights/-2.5", "size", ""}));
  const t7_array weights = file.inspect("weights/1");
  EXPECT_EQ(weights.kind, t7_kind::tensor);
  EXPECT_EQ(weights.dtype, dtype::float32);
  EXPECT_EQ(weights.layout, layout({2, 3}, {1, 2}, 1));
  EXPECT_EQ(weights.storage_bytes, 28u);
  const tensor read = file.read("weights/1");
  EXPECT_FALSE(read.writable());
  EXPECT_TRUE(equal_bits(read, tensor::of<float>({{0, 2, 4}, {1, 3, 5}})));
  EXPECT_EQ(read.strides(), (dims{1, 2}));
  EXPECT_TRUE(equal_bits(file.read("weights/-2.5"), read));
  EXPECT_EQ(file.inspect("size").kind, t7_kind::storage);
  EXPECT_TRUE(equal_bits(file.read("size"), tensor::of<std::int64_t>({3, -4})));
  EXPECT_EQ(file.read("").shape(), dims{0});
  EXPECT_EQ(file.read("").dtype(), dtype::float64);
  EXPECT_TRUE(file.contains("size"));
  EXPECT_FALSE(file.contains("weights"));
  EXPECT_EQ(code_of([&] { file.read("weights/2"); }), errc::not_found);
  EXPECT_NE(text_of([&] { file.read("weights/2"); }).find("weights/-2.5"), std::string::npos);
}

TEST_P(T7, ElementsOfEveryTypeAreRead) {
  const auto expect = [&](const char* type, const auto& elements, dtype as) {
    t7_bytes made = begin();
    made.storage(1, type, elements);
    const tensor read = open(made).read("");
    ASSERT_EQ(read.dtype(), as) << type;
    ASSERT_EQ(read.size(), static_cast<index_t>(elements.size()));
    EXPECT_EQ(std::memcmp(read.data(), elements.data(), read.size_bytes()), 0) << type;
  };
  expect("Byte", std::vector<std::uint8_t>{0, 10, 255, 32, 13}, dtype::uint8);
  expect("Char", std::vector<std::int8_t>{-128, 10, 127}, dtype::int8);
  expect("Short", std::vector<std::int16_t>{-32768, 5, 32767}, dtype::int16);
  expect("Int", std::vector<std::int32_t>{-2147483647 - 1, 0, 2147483647}, dtype::int32);
  expect("Long",
         std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), 1,
                                   std::numeric_limits<std::int64_t>::max()},
         dtype::int64);
  constexpr float infinite = std::numeric_limits<float>::infinity();
  expect("Float", std::vector<float>{0.1F, -0.0F, 3.4e38F, 1.4e-45F, infinite, -infinite},
         dtype::float32);
  expect("Double", std::vector<double>{0.1, -0.0, 5e-324, 1.7976931348623157e308}, dtype::float64);
  t7_bytes made = begin();
  made.object(1, "torch.DoubleStorage").l(2);
  made.group<double>({std::nan(""), 1});
  const tensor read = open(made).read("");
  EXPECT_TRUE(std::isnan(read.at({0}).to<double>()));
}

TEST(T7Half, IsReadInBothEncodings) {
  const scratch_directory files;
  t7_bytes binary;
  binary.object(1, "torch.HalfStorage").l(2).group<std::uint16_t>({0x3c00, 0xc100});
  test::write_file(files / "a.t7", binary.bytes());
  t7_bytes text(true);
  text.object(1, "torch.HalfStorage").l(2).group<float>({1, -2.5F});
  test::write_file(files / "b.t7", text.bytes());
  for (const char* name : {"a.t7", "b.t7"}) {
    const tensor read = t7_file::open(files / name).read("");
    EXPECT_EQ(read.dtype(), dtype::float16);
    EXPECT_EQ(read.at({0}).to<double>(), 1);
    EXPECT_EQ(read.at({1}).to<double>(), -2.5);
  }
}

TEST_P(T7, TensorsOfOneStorageShareIt) {
  t7_bytes made = begin();
  made.table(1, 3);
  made.number(1).tensor(2, "Int", {2}, {1});
  made.storage<std::int32_t>(3, "Int", {5, 6, 7});
  made.number(2).tensor(4, "Int", {3}, {-1}, 3).again(4, 3);
  made.number(3).again(4, 3);
  const t7_file file = open(made);
  const tensor first = file.read("1");
  const tensor second = file.read("2");
  EXPECT_TRUE(first.storage().shares_owner_with(second.storage()));
  EXPECT_TRUE(first.storage().shares_owner_with(file.read("3").storage()));
  EXPECT_TRUE(equal_bits(second, tensor::of<std::int32_t>({7, 6, 5})));
  EXPECT_TRUE(equal_bits(file.read("3"), tensor::of<std::int32_t>({5, 6, 7})));
}

// torch.4
TEST_P(T7, CyclesAndSharedTablesAreEnteredOnce) {
  t7_bytes made = begin();
  made.table(1, 3);
  made.string("self").again(3, 1);
  made.string("a").table(2, 2);
  made.string("up").again(3, 1);
  made.string("x").storage<std::uint8_t>(3, "Byte", {1});
  made.string("b").again(3, 2);
  const t7_file file = open(made);
  EXPECT_EQ(file.names(), std::vector<std::string>{"a/x"});
  const auto root = by_key(file, file.root());
  EXPECT_EQ(root.at("self").object, file.root().object);
  EXPECT_EQ(root.at("a").object, root.at("b").object);
  EXPECT_EQ(file.inspect(by_key(file, root.at("b")).at("x")).dtype, dtype::uint8);
}

TEST_P(T7, ObjectsOfLuaAreTheTablesThatTheyHold) {
  t7_bytes made = begin();
  made.object(1, "nn.Linear").table(2, 2);
  made.string("weight").storage<std::uint8_t>(3, "Byte", {1, 2});
  made.string("again").again(4, 1);
  const t7_file file = open(made);
  EXPECT_EQ(file.root().kind, t7_kind::object);
  EXPECT_EQ(file.root().text, "nn.Linear");
  EXPECT_EQ(file.names(), std::vector<std::string>{"weight"});
  const auto held = by_key(file, file.root());
  EXPECT_EQ(held.at("weight").text, "torch.ByteStorage");
  EXPECT_EQ(held.at("again").object, file.root().object);
  EXPECT_TRUE(equal_bits(file.read(held.at("weight")), tensor::of<std::uint8_t>({1, 2})));
}

TEST_P(T7, FunctionsAreSkippedButCountAmongTheObjects) {
  t7_bytes made = begin();
  made.table(1, 4);
  made.string("old").i(6).text("code").nil();
  made.string("older").i(7).i(2).text("code").table(3, 0);
  made.string("new").i(8).i(4).text(std::string("\x1bLua\n\0", 6)).table(5, 1);
  made.number(1).storage<std::uint8_t>(6, "Byte", {1});
  made.string("x").again(4, 6);
  const t7_file file = open(made);
  EXPECT_EQ(file.names(), std::vector<std::string>{"x"});
  EXPECT_EQ(file.other_values().functions, 3u);
  EXPECT_EQ(file.read("x").size(), 1);
  EXPECT_EQ(by_key(file, file.root()).at("new").kind, t7_kind::function);
}

TEST_P(T7, ObjectsOfFilesBeforeVersionsAreRead) {
  t7_bytes made = begin();
  made.i(4).i(1).text("torch.ByteTensor").i(1).l(2).l(1).l(1);
  made.i(4).i(2).text("torch.ByteStorage").l(2).raw("ab");
  EXPECT_TRUE(equal_bits(open(made).read(""), tensor::of<std::uint8_t>({'a', 'b'})));
}

TEST_P(T7, WhatCannotBeReadIsNamed) {
  for (const char* of_class : {"torch.CudaTensor", "torch.CudaDoubleStorage", "torch.ClTensor"}) {
    t7_bytes made = begin();
    made.table(1, 1).number(1).object(2, of_class).i(0).l(1).nil();
    EXPECT_EQ(code_of([&] { open(made); }), errc::unsupported);
    const std::string text = text_of([&] { open(made); });
    EXPECT_NE(text.find(of_class), std::string::npos) << text;
    EXPECT_NE(text.find("graphics card"), std::string::npos) << text;
    EXPECT_NE(text.find(path_), std::string::npos) << text;
  }
  t7_bytes made = begin();
  made.object(1, "tds.Hash").l(5).nil().nil();
  EXPECT_EQ(code_of([&] { open(made); }), errc::unsupported);
  EXPECT_NE(text_of([&] { open(made); }).find("tds.Hash"), std::string::npos);
}

TEST_P(T7, PathsThatLookAlikeAreToldApartByValuesOnly) {
  t7_bytes made = begin();
  made.table(1, 4);
  made.number(1).storage<std::uint8_t>(2, "Byte", {1});
  made.string("1").storage<std::uint8_t>(3, "Byte", {2});
  made.string("a/b").storage<std::uint8_t>(4, "Byte", {3});
  made.string("c").storage<std::uint8_t>(5, "Byte", {4});
  const t7_file file = open(made);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"1", "a/b", "c"}));
  EXPECT_EQ(code_of([&] { file.read("1"); }), errc::unsupported);
  EXPECT_EQ(code_of([&] { file.inspect("1"); }), errc::unsupported);
  EXPECT_EQ(file.read("c").at({0}), scalar(4));
  const std::vector<t7_pair> pairs = file.pairs(file.root());
  EXPECT_EQ(file.read(pairs[0].value).at({0}), scalar(1));
  EXPECT_EQ(file.read(pairs[1].value).at({0}), scalar(2));
}

TEST_P(T7, ValuesOfNoFileAreRefused) {
  t7_bytes made = begin();
  made.table(1, 1).number(1).storage<std::uint8_t>(2, "Byte", {1});
  const t7_file file = open(made);
  EXPECT_EQ(code_of([&] { file.pairs(t7_value{.kind = t7_kind::table, .object = 2}); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { file.pairs(t7_value{.kind = t7_kind::table, .object = 1}); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { file.pairs(t7_value{}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { file.read(file.root()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { file.inspect(t7_value{.kind = t7_kind::tensor, .object = 1}); }),
            errc::invalid_argument);
}

TEST_P(T7, ReadingIsCancelled) {
  t7_bytes made = begin();
  made.table(1, 1).string("four").storage<std::int16_t>(2, "Short", {1, 2});
  const t7_file file = open(made);
  ASSERT_FALSE(file.inspect("four").is_mappable);  // mapping does no work
  executor on({.threads = 1});
  const executor::scope within(on);
  on.cancel();
  EXPECT_EQ(code_of([&] { file.read("four"); }), errc::cancelled);
  on.resume();
  EXPECT_EQ(file.read("four").at({0}), scalar(1));
}

INSTANTIATE_TEST_SUITE_P(Encodings, T7, testing::Bool(), [](const auto& made) {
  return made.param ? std::string("ascii") : std::string("binary");
});

// The elements of the storage begin at every position modulo 8.
TEST(T7Mapping, NeedsAlignedElements) {
  const scratch_directory files;
  int mapped = 0;
  for (std::size_t shift = 0; shift < 8; ++shift) {
    t7_bytes made;
    made.table(1, 1).string(std::string(8 + shift, 'k')).storage<double>(2, "Double", {1.5, -2});
    test::write_file(files / "a.t7", made.bytes());
    const t7_file file = t7_file::open(files / "a.t7");
    const bool aligned = (made.size() - 16) % 8 == 0;
    EXPECT_EQ(file.inspect(file.names()[0]).is_mappable, aligned);
    const tensor read = file.read(file.names()[0]);
    EXPECT_EQ(read.storage().kind() == storage_kind::file, aligned);
    EXPECT_TRUE(equal_bits(read, tensor::of<double>({1.5, -2})));
    mapped += aligned ? 1 : 0;
  }
  EXPECT_EQ(mapped, 1);
}

TEST(T7Mapping, TensorsOutliveTheirFile) {
  const scratch_directory files;
  const tensor values = pattern({5, 7}, dtype::int32, 1);
  write_t7(files / "a.t7", values);
  const tensor read = t7_file::open(files / "a.t7").read("");
  std::filesystem::remove(files / "a.t7");
  EXPECT_TRUE(equal_bits(read, values));
}

// Counts the reads of storages of which a quarter of a budget holds 1,000 bytes.
class counted_storages {
 public:
  storage get(std::size_t place, std::size_t bytes) {
    return storages_.get(place, 1000, [&] {
      ++reads_;
      return storage::allocate(bytes);
    });
  }
  int reads() const { return reads_; }

 private:
  interop::t7::shared_storages storages_;
  int reads_ = 0;
};

// A net that was flattened has all weights in one storage and all gradients in another, and its
// table has them in turns.
TEST(T7Storages, ThatAreUsedInTurnsAreReadOnce) {
  counted_storages storages;
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(storages.get(1, 900).size_bytes(), 900u);
    EXPECT_EQ(storages.get(2, 800).size_bytes(), 800u);
  }
  EXPECT_EQ(storages.reads(), 2);
}

TEST(T7Storages, ThatWereUsedLastAreKept) {
  counted_storages storages;
  storages.get(1, 400);
  storages.get(2, 400);
  storages.get(1, 400);
  storages.get(3, 400);
  storages.get(1, 400);
  EXPECT_EQ(storages.reads(), 3);
  storages.get(4, 400);  // releases all of 1,200 bytes but 400
  storages.get(1, 400);
  EXPECT_EQ(storages.reads(), 4);
  storages.get(2, 400);
  EXPECT_EQ(storages.reads(), 5);
}

TEST(T7Storages, InUseAreNeverReleased) {
  counted_storages storages;
  const storage used = storages.get(0, 5000);
  for (std::size_t place = 1; place < 100; ++place) storages.get(place, 600);
  EXPECT_TRUE(storages.get(0, 5000).shares_owner_with(used));
  EXPECT_EQ(storages.reads(), 100);
}

// Copied storages are not kept for ever: all of them together may be larger than memory.
TEST(T7Mapping, StoragesThatNobodyUsesAreReleased) {
  const scratch_directory files;
  constexpr std::int32_t count = 16;
  const std::vector<std::int32_t> numbers(50'000, 7);
  t7_bytes made(true);
  made.table(1, count);
  for (std::int32_t i = 0; i < count; ++i) made.number(i).storage(i + 2, "Int", numbers);
  test::write_file(files / "a.t7", made.bytes());
  const t7_file file = t7_file::open(files / "a.t7");
  executor small({.memory_bytes = 4 * numbers.size() * sizeof(std::int32_t)});
  const executor::scope within(small);
  const tensor first = file.read("0");
  const memory_pool& pool = memory_pool::default_pool();
  const std::size_t before = pool.statistics().live_bytes;
  for (std::int32_t i = 1; i < count; ++i) EXPECT_EQ(file.read(std::to_string(i)).size(), 50'000);
  EXPECT_LE(pool.statistics().live_bytes, before + 3 * numbers.size() * sizeof(std::int32_t));
  EXPECT_TRUE(file.read("0").storage().shares_owner_with(first.storage()));
}

// ---- writing ------------------------------------------------------------------------------------

// The file that one tensor makes, spelled out. The version of the storage has zeros in front of its
// 1, so that the elements begin at a multiple of 8.
TEST(T7Writing, OneTensorIsTheseBytes) {
  const scratch_directory files;
  write_t7(files / "a.t7", tensor::of<float>({{1, 2, 3}, {4, 5, 6}}).swapaxes(0, 1));
  t7_bytes wanted;
  wanted.tensor(1, "Float", {3, 2}, {2, 1});
  wanted.i(4).i(2);
  const std::size_t rest = 4 + 3 + 4 + std::string("torch.FloatStorage").size() + 8;
  wanted.text("V " + std::string((8 - (wanted.size() + rest) % 8) % 8, '0') + "1");
  wanted.text("torch.FloatStorage").l(6).group<float>({1, 4, 2, 5, 3, 6});
  EXPECT_EQ(test::read_file(files / "a.t7"), wanted.bytes());
  EXPECT_EQ((wanted.size() - 24) % 8, 0u);
}

TEST(T7Writing, NamedTensorsAreATable) {
  const scratch_directory files;
  const named_tensors members{{"a", pattern({3, 5}, dtype::int16, 1)},
                              {"b/c", pattern({4}, dtype::float64, 2)},
                              {"höhe", pattern({2, 0}, dtype::uint8, 3)}};
  write_t7(files / "a.t7", members);
  const std::string bytes = test::read_file(files / "a.t7");
  t7_bytes start;
  start.table(1, 3).string("a").tensor(2, "Short", {3, 5}, {5, 1});
  EXPECT_EQ(bytes.substr(0, start.size()), start.bytes());
  const t7_file file = t7_file::open(files / "a.t7");
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "b/c", "höhe"}));
  for (const auto& [name, values] : members) {
    EXPECT_TRUE(equal_bits(file.read(name), values)) << name;
    EXPECT_TRUE(file.inspect(name).is_mappable) << name;
  }
}

TEST(T7Writing, EveryDtypeOfTorchComesBack) {
  const scratch_directory files;
  for (const dtype type : {dtype::uint8, dtype::int8, dtype::int16, dtype::int32, dtype::int64,
                           dtype::float16, dtype::float32, dtype::float64}) {
    const tensor values = pattern({4, 3, 2}, type, 5);
    require_t7_dtype(type);
    write_t7(files / "a.t7", values.flip());
    EXPECT_TRUE(equal_bits(t7_file::open(files / "a.t7").read(""), values.flip())) << name(type);
  }
}

TEST(T7Writing, DtypesThatTorchDoesNotHaveAreRefused) {
  const scratch_directory files;
  for (const dtype type :
       {dtype::boolean, dtype::uint16, dtype::uint32, dtype::uint64, dtype::bfloat16,
        dtype::float8_e4m3fn, dtype::float8_e5m2, dtype::complex64, dtype::complex128}) {
    const tensor values = tensor::zeros({2}, type);
    EXPECT_EQ(code_of([&] { require_t7_dtype(type); }), errc::unsupported);
    EXPECT_EQ(code_of([&] { write_t7(files / "a.t7", values); }), errc::unsupported);
    const std::string text = text_of([&] {
      write_t7(files / "a.t7", named_tensors{{"a", values}});
    });
    EXPECT_NE(text.find(std::string(name(type))), std::string::npos) << text;
    EXPECT_NE(text.find("float64"), std::string::npos) << text;
  }
  EXPECT_TRUE(files.names().empty());
}

TEST(T7Writing, ScalarsGetAnAxis) {
  const scratch_directory files;
  write_t7(files / "a.t7", tensor::full({}, 2.5, dtype::float64));
  EXPECT_TRUE(equal_bits(t7_file::open(files / "a.t7").read(""), tensor::of<double>({2.5})));
}

TEST(T7Writing, NamesThatTablesOfOursCannotHaveAreRefused) {
  const scratch_directory files;
  const tensor one = pattern({1}, dtype::int8, 1);
  for (const named_tensors& members :
       {named_tensors{{"", one}}, named_tensors{{"a", one}, {"a", one}},
        named_tensors{{std::string("a\0b", 3), one}}, named_tensors{{"\xff", one}},
        named_tensors{{std::string(70'000, 'a'), one}}})
    EXPECT_EQ(code_of([&] { write_t7(files / "a.t7", members); }), errc::invalid_argument);
  EXPECT_TRUE(files.names().empty());
}

TEST(T7Writer, WritesTheBytesOfWriteT7) {
  const scratch_directory files;
  const named_tensors members{{"a", pattern({3}, dtype::int8, 1)},
                              {"b", pattern({4}, dtype::float64, 2)}};
  write_t7(files / "a.t7", members);
  t7_writer writer(files / "b.t7");
  for (const auto& [name, values] : members) writer.add(name, values);
  EXPECT_FALSE(std::filesystem::exists(files / "b.t7"));
  t7_writer moved = std::move(writer);
  moved.finish();
  EXPECT_EQ(test::read_file(files / "a.t7"), test::read_file(files / "b.t7"));
}

TEST(T7Writer, GoesOnAfterARefusal) {
  const scratch_directory files;
  const tensor one = pattern({1}, dtype::int8, 1);
  t7_writer writer(files / "a.t7");
  writer.add("a", one);
  for (const auto* refused : {"", "a", "\xff"})
    EXPECT_EQ(code_of([&] { writer.add(refused, one); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { writer.add("b", tensor::zeros({1}, dtype::uint16)); }),
            errc::unsupported);
  writer.add("b", one);
  writer.finish();
  EXPECT_EQ(t7_file::open(files / "a.t7").names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(code_of([&] { writer.add("c", one); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { writer.finish(); }), errc::invalid_argument);
}

// What the cancelled call has written of its tensor would be taken for the tensor.
TEST(T7Writer, DoesNotFinishAfterATensorThatFailed) {
  const scratch_directory files;
  const tensor one = pattern({1}, dtype::int8, 1);
  executor on({.threads = 1});
  const executor::scope within(on);
  std::optional<t7_writer> writer(std::in_place, files / "a.t7");
  on.cancel();
  EXPECT_EQ(code_of([&] { writer->add("a", one); }), errc::cancelled);
  on.resume();
  EXPECT_EQ(code_of([&] { writer->add("b", one); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { writer->finish(); }), errc::invalid_argument);
  writer.reset();
  EXPECT_TRUE(files.names().empty());
}

}  // namespace
}  // namespace shale
