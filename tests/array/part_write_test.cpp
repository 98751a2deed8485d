// Tests expressions that are written into a part of an array, and parts that are read with steps.
#include "array/elements/part_write.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "shale/tile_source.hpp"
#include "support/instrumented.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::findings_of;

class PartWrite : public test::fresh_container {
 protected:
  static array_spec spec(array_kind kind, const dims& shape, const dims& chunk) {
    array_spec made{.dtype = dtype::int32, .shape = shape, .kind = kind};
    if (kind == array_kind::chunked) made.chunk_shape = chunk;
    return made;
  }

  static tensor numbers(const dims& shape, int first) {
    const tensor made = tensor::empty(shape, dtype::int32);
    for (int& value : made.elements<int>()) value = first++;
    return made;
  }
};

// The positions that one entry takes from an axis.
struct taken {
  index_entry entry;
  std::vector<index_t> positions;
  bool keeps_axis;
};

taken random_entry(std::mt19937& random, index_t extent) {
  const auto below = [&](index_t n) { return static_cast<index_t>(random()) % n; };
  if (below(5) == 0) {
    const index_t at = below(extent);
    return {index_entry(below(2) == 0 ? at : at - extent), {at}, false};
  }
  const index_t step = below(3) == 0 ? below(2 * extent) + 1 : below(3) + 1;
  const bool backwards = below(3) == 0;
  taken result{slice{}, {}, true};
  const index_t first = below(extent);
  const index_t wanted = below(extent) + (below(8) == 0 ? 0 : 1);
  for (index_t i = 0; i < wanted; ++i) {
    const index_t at = backwards ? first - i * step : first + i * step;
    if (at < 0 || at >= extent) break;
    result.positions.push_back(at);
  }
  const auto count = static_cast<index_t>(result.positions.size());
  const index_t stop = backwards ? first - count * step : first + count * step;
  slice range{.start = first, .step = backwards ? -step : step};
  if (stop >= 0) range.stop = stop;
  if (count == 0) range.stop = first;
  result.entry = range;
  return result;
}

// An oracle writes the same values index by index.
TEST_F(PartWrite, AnyStepsAgreeWithAnArrayInMemory) {
  std::mt19937 random(11);
  const auto below = [&](index_t n) { return static_cast<index_t>(random()) % n; };
  executor on({.threads = 2, .memory_bytes = 1 << 16});
  const executor::scope within(on);
  for (std::uint64_t round = 0; round < test::cases(150); ++round) {
    const dims shape{below(19) + 1, below(23) + 1};
    const auto kind = round % 3 == 0 ? array_kind::dense : array_kind::chunked;
    const std::string name = std::to_string(round);
    std::vector<int> oracle(static_cast<std::size_t>(shape[0] * shape[1]), 0);
    transaction change = file_.begin();
    const writable_array a = change.create(name, spec(kind, shape, {below(8) + 1, below(9) + 1}));
    for (int write = 0; write < 4; ++write) {
      const taken rows = random_entry(random, shape[0]);
      const taken columns = random_entry(random, shape[1]);
      std::vector<index_entry> entries{rows.entry, columns.entry};
      dims extent;
      if (below(4) == 0) {
        entries.insert(entries.begin(), newaxis);
        extent.push_back(1);
      }
      if (below(4) == 0) entries.push_back(ellipsis);
      if (rows.keeps_axis) extent.push_back(static_cast<index_t>(rows.positions.size()));
      if (columns.keeps_axis) extent.push_back(static_cast<index_t>(columns.positions.size()));
      const tensor values = numbers(extent, write * 1000 + 1);
      a.write_at(entries, expr(values) + 1);
      int next = write * 1000 + 2;
      for (const index_t i : rows.positions)
        for (const index_t j : columns.positions)
          oracle[static_cast<std::size_t>(i * shape[1] + j)] = next++;
      const tensor part = change.find(name)->read_at(entries);
      ASSERT_TRUE(equal_bits(part, eval(expr(values) + 1))) << round;
    }
    const tensor now = change.find(name)->read();
    ASSERT_TRUE(std::equal(oracle.begin(), oracle.end(), now.elements<const int>().begin()))
        << "round " << round << ", write into " << to_string(shape);
    change.commit();
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(PartWrite, RegionsTakeExpressions) {
  for (const auto kind : {array_kind::dense, array_kind::chunked}) {
    transaction change = file_.begin();
    const writable_array a = change.create("a", spec(kind, {30, 40}, {7, 9}));
    a.write({{3, 5}, {20, 30}}, expr(numbers({30}, 1)) * 2.0);
    const tensor now = change.find("a")->read();
    for (index_t i = 0; i < 30; ++i)
      for (index_t j = 0; j < 40; ++j) {
        const bool inside = i >= 3 && i < 23 && j >= 5 && j < 35;
        ASSERT_EQ(now.at({i, j}), scalar(inside ? static_cast<int>(j - 4) * 2 : 0))
            << i << ' ' << j;
      }
  }
}

TEST_F(PartWrite, RegionsOfWholeChunksReadNothing) {
  transaction change = file_.begin();
  const writable_array a = change.create("a", spec(array_kind::chunked, {64, 50}, {16, 16}));
  a.write(counting({64, 50}, dtype::int32));
  executor on({.threads = 2});
  const executor::scope within(on);
  a.write({{16, 32}, {32, 18}}, expr(1) + 0);  // up to the edge of the array
  EXPECT_EQ(on.statistics().tiles_decoded, 0u);
  EXPECT_EQ(on.statistics().stored_bytes_read, 0u);
  a.write({{16, 31}, {32, 17}}, expr(2) + 0);  // one column of two more chunks
  EXPECT_EQ(on.statistics().tiles_decoded, 2u);
  a.write_at({slice{.step = 20}, slice{0, 16}}, expr(3));  // rows 0, 20, 40 and 60
  EXPECT_EQ(on.statistics().tiles_decoded, 2u + 4);
}

// A source of ones that counts how often its tiles are loaded.
class counted_source final : public tile_source {
 public:
  explicit counted_source(const dims& shape) : shape_(shape) {}
  shale::dtype dtype() const noexcept override { return dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_; }
  void load(const dims&, const tensor& values) const override {
    ++loads;
    const auto elements = values.as<int, 2>();
    for (index_t i = 0; i < values.shape(0); ++i)
      for (index_t j = 0; j < values.shape(1); ++j) elements(i, j) = 1;
  }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }

  mutable std::atomic<int> loads = 0;

 private:
  dims shape_;
  dims tile_{64, 64};
};

// The budget allows blocks of a few chunks; a sum for each block would load all tiles each time.
TEST_F(PartWrite, ReductionsAreComputedOnce) {
  const dims shape{512, 512};
  const auto source = std::make_shared<counted_source>(shape);
  const expr ones(source);
  executor on({.threads = 2, .memory_bytes = 1 << 20});
  const executor::scope within(on);
  transaction change = file_.begin();
  const writable_array a = change.create("a", spec(array_kind::chunked, {600, 600}, {64, 64}));
  a.write({{10, 10}, shape}, ones + sum(ones));
  EXPECT_LT(source->loads, 64 * 8);  // 64 for the sum; each of 18 blocks those that it touches
  const tensor now = change.find("a")->read();
  EXPECT_EQ(now.at({300, 521}), scalar(1 + 512 * 512));
  EXPECT_EQ(now.at({300, 522}), scalar(0));
}

TEST_F(PartWrite, ValuesThatReadTheArrayAreThoseFromBefore) {
  executor on({.threads = 2, .memory_bytes = 1 << 14});
  const executor::scope within(on);
  for (const auto kind : {array_kind::dense, array_kind::chunked}) {
    transaction change = file_.begin();
    const writable_array a = change.create("a", spec(kind, {1000}, {16}));
    a.write(numbers({1000}, 0));
    a.write_at({slice{1}}, expr(*change.find("a")).index({slice{std::nullopt, -1}}));
    for (index_t i = 0; i < 1000; ++i)
      ASSERT_EQ(change.find("a")->read().at({i}), scalar(static_cast<int>(i == 0 ? 0 : i - 1)));
    a.write(numbers({1000}, 0));
    a.write_at({slice{.step = -1}}, expr(*change.find("a")));
    ASSERT_TRUE(equal_bits(change.find("a")->read(), numbers({1000}, 0).flip().clone()));
    // The same places, which need no copy of the whole.
    a.write_at({slice{.step = -3}}, expr(*change.find("a")).index({slice{.step = -3}}) * 2);
    const tensor now = change.find("a")->read();
    for (index_t i = 0; i < 1000; ++i)
      ASSERT_EQ(now.at({i}), scalar(static_cast<int>((999 - i) * (i % 3 == 0 ? 2 : 1)))) << i;
  }
}

TEST_F(PartWrite, WhatDoesNotFitIsRefusedAndChangesNothing) {
  for (const auto kind : {array_kind::dense, array_kind::chunked}) {
    transaction change = file_.begin();
    const writable_array a = change.create("a", spec(kind, {8, 8}, {4, 4}));
    a.write(counting({8, 8}, dtype::int32));
    const auto refused = [&](auto call) { return code_of(call) == errc::invalid_argument; };
    EXPECT_TRUE(refused([&] { a.write({{4, 4}, {5, 1}}, expr(0)); }));
    EXPECT_TRUE(refused([&] { a.write({{-1, 0}, {1, 1}}, expr(0)); }));
    EXPECT_TRUE(refused([&] { a.write({{0}, {1}}, expr(0) + 0); }));
    EXPECT_TRUE(refused([&] { a.write({{0, 0}, {2, 2}}, expr(numbers({3}, 0))); }));
    EXPECT_TRUE(refused([&] { a.write_at({slice{.step = 0}}, expr(0)); }));
    EXPECT_TRUE(refused([&] { a.write_at({8}, expr(0)); }));
    EXPECT_TRUE(refused([&] { a.write_at({0, 0, 0}, expr(0)); }));
    EXPECT_TRUE(refused([&] { a.write_at({ellipsis, ellipsis}, expr(0)); }));
    EXPECT_TRUE(refused([&] { a.write_at({slice{0, 3}}, expr(numbers({2, 8}, 0))); }));
    a.write_at({slice{5, 5}}, expr(7));  // no element
    a.write({{8, 0}, {0, 8}}, expr(7));
    EXPECT_TRUE(equal_bits(change.find("a")->read(), counting({8, 8}, dtype::int32)));
    change.abort();
    EXPECT_TRUE(refused([&] { a.write_at({0}, expr(0)); }));
    EXPECT_TRUE(refused([&] { a.write({{0, 0}, {1, 1}}, expr(0)); }));
  }
}

TEST_F(PartWrite, PartsAreReadIntoTensorsOfAnyLayoutAndDtype) {
  const tensor values = counting({20, 30}, dtype::int32);
  for (const auto kind : {array_kind::dense, array_kind::chunked}) {
    const std::string name = kind == array_kind::dense ? "d" : "c";
    write_new(name, spec(kind, {20, 30}, {6, 7}), values);
    const array stored = at(name);
    for (const dtype type : {dtype::int32, dtype::float64}) {
      const tensor all = tensor::zeros({14, 40}, type);
      const tensor out = all.narrow(0, 2, 10).sliced(1, {.step = -2}).narrow(1, 1, 12);
      stored.read_into(out, {{5, 11}, {10, 12}});
      for (index_t i = 0; i < 10; ++i)
        for (index_t j = 0; j < 12; ++j)
          ASSERT_EQ(out.at({i, j}), values.at({i + 5, j + 11})) << name << i << ' ' << j;
      EXPECT_EQ(all.at({1, 3}), scalar(0));
    }
    const tensor whole = tensor::zeros({20, 30}, dtype::int32);
    stored.read_into(whole);
    EXPECT_TRUE(equal_bits(whole, values));
    const auto code = [&](const tensor& out, const region& part) {
      return code_of([&] { stored.read_into(out, part); });
    };
    EXPECT_EQ(code(whole, {{1, 0}, {20, 30}}), errc::invalid_argument);
    EXPECT_EQ(code(whole, {{0, 0}, {1, 30}}), errc::invalid_argument);
    EXPECT_EQ(code(whole.as_read_only(), region::all({20, 30})), errc::access_denied);
    EXPECT_EQ(
        code(tensor::zeros({1, 30}, dtype::int32).broadcast_to({20, 30}), region::all({20, 30})),
        errc::invalid_argument);
  }
}

}  // namespace
}  // namespace shale
