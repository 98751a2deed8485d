// Reads dense arrays that were damaged on their device, by calls that compare checksums and by
// calls that do not.
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "array/test_support.hpp"
#include "shale/apply.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/for_each.hpp"
#include "shale/linalg.hpp"
#include "shale/ops.hpp"
#include "shale/reduce.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;

constexpr index_t rows = 768;
constexpr index_t columns = 1024;  // 256 rows a segment of 1 MiB
constexpr index_t damaged_row = 300;

class MappedChecksums : public test::fresh_container {
 protected:
  MappedChecksums() {
    write_new("dem", {.dtype = dtype::float32, .shape = {rows, columns}},
              expr(test::seeded({rows, columns}, 3)));
  }

  void damage() {
    at_byte_ = *at("dem").map().storage().file_offset() +
               static_cast<std::uint64_t>(damaged_row * columns * 4 + 3);
    test::flip_byte(path_, at_byte_);
  }

  void require_told(const std::string& text, const std::string& way) const {
    EXPECT_NE(text.find("[corrupt]"), std::string::npos) << way << ": " << text;
    EXPECT_NE(text.find("segment 1 of 'dem' in " + path_), std::string::npos)
        << way << ": " << text;
    const std::uint64_t segment_byte = at_byte_ - 3 - (damaged_row - 256) * columns * 4;
    EXPECT_NE(text.find("byte " + std::to_string(segment_byte)), std::string::npos)
        << way << ": " << text;
  }

  // All ways in which the engine reads a mapped array.
  std::map<std::string, std::function<void()>> ways() const {
    const array stored = at("dem");
    const tensor mapped = stored.map();
    return {
        {"elementwise", [=] { eval(expr(stored) + 1.0); }},
        {"transposed", [=] { eval(expr(mapped.swapaxes(0, 1)) + 1.0); }},
        {"steps", [=] { eval(expr(mapped.sliced(0, {.step = 4}))); }},
        {"a column", [=] { eval(expr(mapped.narrow(1, 5, 1))); }},
        {"backwards", [=] { eval(expr(mapped.flip({0}))); }},
        {"an operand of two",
         [=] {
           eval(expr(tensor::zeros({rows, columns}, dtype::float32)) + expr(mapped));
         }},
        {"joined",
         [=] {
           eval(concat(std::vector<expr>{mapped.narrow(0, 0, 2), mapped.narrow(0, 290, 20)}, 0));
         }},
        {"repeated",
         [=] {
           eval(tile(expr(mapped), {2, 1}));
         }},
        {"sum", [=] { eval(sum(expr(stored))); }},
        {"mean of columns", [=] { eval(mean(expr(stored), dims{0})); }},
        {"matmul",
         [=] {
           matmul(tensor::zeros({2, rows}, dtype::float32), mapped);
         }},
        {"dot", [=] { dot(mapped.view({-1}), tensor::zeros({rows * columns}, dtype::float32)); }},
        {"apply", [=] { apply([](float) {}, mapped); }},
        {"in order", [=] { apply_in_order([](float) {}, mapped); }},
        {"segments", [=] { for_each_segment<const float>([](std::span<const float>) {}, mapped); }},
        {"rows",
         [=] {
           for_each_lane<const float>(
               1, [](lane<const float>) {}, mapped);
         }},
        {"columns",
         [=] {
           for_each_lane<const float>(
               0, [](lane<const float>) {}, mapped);
         }},
        {"a folded run",
         [=] {
           for_each_lane<const float>(
               0, [](lane<const float>) {}, mapped.view({-1}));
         }},
        {"read", [=] { stored.read(); }},
        {"read of a box",
         [=] {
           stored.read({{290, 7}, {20, 9}});
         }},
        {"read of some rows",
         [=] {
           stored.read({{290, 0}, {20, columns}});
         }},
    };
  }

  std::uint64_t at_byte_ = 0;
};

// stream.6
TEST_F(MappedChecksums, CallsThatCompareThemFindDamageInEveryWayOfReading) {
  damage();
  for (const std::size_t memory : {std::size_t{64} << 20, std::size_t{1} << 20})
    for (const int threads : {1, 3}) {
      executor on({.threads = threads, .memory_bytes = memory});
      const executor::scope within(on.with_checksums(checksum_use::compared));
      for (const auto& [way, read] : ways())
        require_told(text_of([&, &read = read] { read(); }), way);
    }
}

TEST_F(MappedChecksums, CallsThatDoNotCompareReadTheStoredBytes) {
  damage();
  executor on({.threads = 2});
  const executor::scope within(on);
  EXPECT_EQ(on.checksums(), checksum_use::trusted);
  // Segments that are copied out as a whole are always compared.
  for (const auto& [way, read] : ways())
    EXPECT_EQ(code_of([&, &read = read] { read(); }), way == "read" ? errc::corrupt : errc{})
        << way;
}

TEST_F(MappedChecksums, UndamagedSegmentsAreReadWithoutErrors) {
  damage();
  executor on({.threads = 2, .checksums = checksum_use::compared});
  const executor::scope within(on);
  const tensor mapped = at("dem").map();
  const tensor wanted = test::seeded({rows, columns}, 3);
  for (const index_t start : {index_t{0}, index_t{512}})
    EXPECT_TRUE(equal_bits(eval(expr(mapped.narrow(0, start, 256))), wanted.narrow(0, start, 256)));
}

TEST_F(MappedChecksums, AreComparedOnceInAProcess) {
  executor on({.threads = 2, .checksums = checksum_use::compared});
  const executor::scope within(on);
  eval(sum(expr(at("dem"))));
  damage();
  EXPECT_EQ(code_of([&] { eval(sum(expr(at("dem")))); }), errc{});
  // The array is written anew, at the same place, so its segments must be compared again.
  write_new("other", {.dtype = dtype::float32, .shape = {4}}, expr(1.0));
  transaction change = file_.begin();
  change.remove("dem");
  change.commit();
  write_new("third", {.dtype = dtype::float32, .shape = {4}}, expr(1.0));
  write_new("dem", {.dtype = dtype::float32, .shape = {rows, columns}},
            expr(test::seeded({rows, columns}, 4)));
  damage();
  require_told(text_of([&] { eval(sum(expr(at("dem")))); }), "sum");
}

// A copy of the file is damaged and then put in the place of the file, in two ways: over its bytes,
// or as a new file, which may get the inode number of the removed one.
TEST_F(MappedChecksums, AreComparedAgainAfterTheFileWasClosed) {
  const std::string copy = path_ + ".copy";
  std::filesystem::copy_file(path_, copy);
  at_byte_ = *at("dem").map().storage().file_offset() +
             static_cast<std::uint64_t>(damaged_row * columns * 4 + 3);
  test::flip_byte(copy, at_byte_);
  const executor on({.threads = 2, .checksums = checksum_use::compared});
  const executor::scope within(on);
  const std::string whole = path_ + ".whole";
  for (const bool is_removed : {false, true}) {
    {
      std::filesystem::copy_file(path_, whole);
      const container opened = container::open(whole);
      eval(sum(expr(opened.latest().at("dem"))));
    }
    if (is_removed) std::filesystem::remove(whole);
    std::filesystem::copy_file(copy, whole, std::filesystem::copy_options::overwrite_existing);
    const container opened = container::open(whole);
    const std::string text = text_of([&] { eval(sum(expr(opened.latest().at("dem")))); });
    EXPECT_NE(text.find("segment 1 of 'dem' in " + whole), std::string::npos) << text;
    std::filesystem::remove(whole);
  }
}

TEST_F(MappedChecksums, CanBeComparedForViewsOutsideTheEngine) {
  damage();
  const tensor mapped = at("dem").map();
  EXPECT_TRUE(mapped.storage().has_checksums());
  EXPECT_FALSE(tensor::zeros({4}, dtype::float32).storage().has_checksums());
  mapped.storage().compare_checksums({0, 1 << 20});
  require_told(text_of([&] { mapped.storage().compare_checksums(); }), "compare_checksums");
  EXPECT_EQ(code_of([&] { mapped.narrow(0, 512, 256).clone(); }), errc{});
}

TEST_F(MappedChecksums, OfChangedArraysAreTakenWhenTheyAreCommitted) {
  executor on({.threads = 2, .checksums = checksum_use::compared});
  const executor::scope within(on);
  eval(sum(expr(at("dem"))));
  transaction change = file_.begin();
  const writable_array dem = change.update("dem");
  dem.write({{0, 0}, {1, columns}}, test::seeded({1, columns}, 8));
  // An array that a transaction changes has no checksums yet.
  EXPECT_FALSE(change.find("dem")->map().storage().has_checksums());
  eval(sum(expr(*change.find("dem"))));
  change.commit();
  EXPECT_EQ(code_of([&] { eval(sum(expr(at("dem")))); }), errc{});
}

}  // namespace
}  // namespace shale
