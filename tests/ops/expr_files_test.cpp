// Tests expressions over mapped files that exceed the memory budget and disagree on the fastest
// axis. The oracles are loops over indices.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shale/evaluate.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

class ExprFiles : public testing::Test {
 protected:
  static constexpr index_t rows = 700;
  static constexpr index_t columns = 1100;

  // Makes a file of numbers, each of which is its own position.
  tensor counting(const dims& shape, access allowed = access::read_write) {
    const std::string path = directory_ / std::to_string(files_++);
    const index_t count = element_count(shape);
    {
      storage made = create_file(path, static_cast<std::size_t>(count) * 4);
      auto* const elements = reinterpret_cast<std::int32_t*>(made.data());
      for (index_t i = 0; i < count; ++i) elements[i] = static_cast<std::int32_t>(i);
    }
    return tensor(map_file(path, {.access = allowed}), dtype::int32, layout(shape));
  }

  // The same, of a file that has lost all but its first page since.
  tensor cut(const dims& shape) {
    const tensor made = counting(shape, access::read_only);
    EXPECT_EQ(::truncate((directory_ / std::to_string(files_ - 1)).c_str(), 4096), 0);
    return made;
  }

  void expect(const tensor& matrix, const std::function<index_t(index_t, index_t)>& value) {
    const auto* const elements = reinterpret_cast<const std::int32_t*>(matrix.storage().data());
    index_t wrong = 0;
    for (index_t i = 0; i < matrix.shape()[0]; ++i)
      for (index_t j = 0; j < matrix.shape()[1]; ++j) {
        const index_t position =
            matrix.offset() + i * matrix.strides()[0] + j * matrix.strides()[1];
        wrong += elements[position] != value(i, j);
      }
    EXPECT_EQ(wrong, 0);
  }

  // Whether the call copied tiles of the files into memory.
  bool tiled() {
    const executor_statistics now = on_.statistics();
    EXPECT_EQ(now.tiles_decoded, 0u);
    return std::exchange(tiles_, now.mapped_tiles) != now.mapped_tiles;
  }

  executor on_{{.threads = 2, .memory_bytes = 2 << 20}};
  executor::scope within_{on_};

 private:
  test::scratch_directory directory_;
  int files_ = 0;
  std::uint64_t tiles_ = 0;
};

// The budget's half is 1 MiB. A file counts with the bytes that its view spans, each once.
TEST_F(ExprFiles, PlansSayWhetherTheRunStreams) {
  const tensor large = counting({rows, columns});
  const tensor row = counting({columns});
  const std::pair<tensor, bool> views[] = {
      {large, true},
      {large.narrow(0, 100, 200), false},
      {large.sliced(0, {.step = 4}), true},        // 0.7 MiB of elements over 2.9 MiB
      {row.broadcast_to({1000, columns}), false},  // 4.2 MiB if repetitions counted
  };
  for (const auto& [view, streams] : views) {
    const expr value = sum(expr(view) * 2);
    EXPECT_EQ(explain(value).streams, streams) << to_string(view.strides());
    const std::uint64_t before = on_.statistics().windows;
    eval(value);
    EXPECT_EQ(on_.statistics().windows > before, streams) << to_string(view.strides());
  }
}

TEST_F(ExprFiles, CopyTransposes) {
  const tensor source = counting({columns, rows});
  const tensor to = counting({rows, columns});
  copy(to, expr(source.swapaxes(0, 1)));
  EXPECT_TRUE(tiled());
  expect(to, [](index_t i, index_t j) { return j * rows + i; });
  expect(source, [](index_t i, index_t j) { return i * rows + j; });
}

TEST_F(ExprFiles, WriteViewsOfFiles) {
  const tensor source = counting({rows, columns});
  const tensor whole = counting({columns + 7, rows + 5});
  const tensor to = whole.narrow(0, 3, columns).narrow(1, 2, rows);
  copy(to.swapaxes(0, 1), expr(source.flip({0})) + 1);
  EXPECT_TRUE(tiled());
  expect(whole, [](index_t i, index_t j) {
    const bool inside = i >= 3 && i < columns + 3 && j >= 2 && j < rows + 2;
    return inside ? (rows - 1 - (j - 2)) * columns + (i - 3) + 1 : i * (rows + 5) + j;
  });
}

TEST_F(ExprFiles, MixOperandsOfEveryKind) {
  const tensor across = counting({columns, rows}, access::read_only);
  const tensor along = counting({rows, columns});
  const tensor row = counting({columns});
  tensor in_memory = tensor::empty({rows, columns}, dtype::int32);
  eval_into(in_memory, full({rows, columns}, 3));
  const tensor to = counting({rows, columns});
  eval_into(to, expr(across.swapaxes(0, 1)) - expr(along) + expr(row) * expr(in_memory));
  EXPECT_TRUE(tiled());
  expect(to, [](index_t i, index_t j) { return j * rows + i - (i * columns + j) + 3 * j; });
  // The output is an input, element by element.
  eval_into(to, expr(to) + expr(across.swapaxes(0, 1)));
  EXPECT_TRUE(tiled());
  expect(to, [](index_t i, index_t j) { return 2 * (j * rows + i) - (i * columns + j) + 3 * j; });
}

TEST_F(ExprFiles, ResultsInMemory) {
  const tensor a = counting({rows, columns});
  const tensor b = counting({columns, rows});
  const std::vector<expr> both{expr(a) - expr(b.swapaxes(0, 1)), expr(b.swapaxes(0, 1)) * 2};
  const std::vector<tensor> results = eval_all(both);
  EXPECT_TRUE(tiled());
  expect(results[0], [](index_t i, index_t j) { return i * columns + j - (j * rows + i); });
  expect(results[1], [](index_t i, index_t j) { return 2 * (j * rows + i); });
}

TEST_F(ExprFiles, OverlappingInputsAreCopiedFirst) {
  const tensor square = counting({rows, rows});
  eval_into(square, expr(square.swapaxes(0, 1)));
  EXPECT_FALSE(tiled());
  expect(square, [](index_t i, index_t j) { return j * rows + i; });
}

TEST_F(ExprFiles, InputsThatOverlapThroughAnotherMappingAreCopiedFirst) {
  const tensor square = counting({rows, rows});
  const tensor again(map_file(std::string(square.storage().path()), {.access = access::read_write}),
                     dtype::int32, square.layout());
  eval_into(square, expr(again.swapaxes(0, 1)));
  EXPECT_FALSE(tiled());
  expect(square, [](index_t i, index_t j) { return j * rows + i; });
}

TEST_F(ExprFiles, EqualElementsThroughAnotherMappingAreReadInPlace) {
  const tensor across = counting({columns, rows}, access::read_only);
  const tensor to = counting({rows, columns});
  const tensor again(map_file(std::string(to.storage().path()), {.access = access::read_write}),
                     dtype::int32, to.layout());
  eval_into(to, expr(again) + expr(across.swapaxes(0, 1)));
  EXPECT_TRUE(tiled());
  expect(to, [](index_t i, index_t j) { return i * columns + j + j * rows + i; });
}

TEST_F(ExprFiles, PrivateChangesAreSeen) {
  const tensor source = counting({columns, rows}, access::copy_on_write);
  eval_into(source, expr(source) * 2);
  const tensor to = counting({rows, columns});
  copy(to, expr(source.swapaxes(0, 1)));
  expect(to, [](index_t i, index_t j) { return 2 * (j * rows + i); });
}

// Generators read the parts of joins by themselves.
TEST_F(ExprFiles, JoinsNoticeLostBytes) {
  const auto expect_told = [&](const char* way, const std::function<expr(const expr&)>& join) {
    const tensor made = cut({rows, columns});
    EXPECT_EQ(test::code_of([&] { eval(sum(join(made))); }), errc::io) << way;
    EXPECT_EQ(test::code_of([&] { eval(join(made)); }), errc::io) << way;
  };
  expect_told("concat", [](const expr& x) { return concat(std::vector<expr>{x, x}, 0); });
  expect_told("stack", [](const expr& x) { return stack(std::vector<expr>{x, x}, 0); });
  expect_told("tile", [](const expr& x) { return tile(x, {2, 1}); });
  expect_told("repeat", [](const expr& x) { return repeat(x, 2, 0); });
}

// A tile source of numbers, each of which is its own position.
class positions final : public tile_source {
 public:
  positions(const dims& shape, const dims& tile_shape) : shape_(shape), tile_shape_(tile_shape) {}
  shale::dtype dtype() const noexcept override { return dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  void load(const dims& tile, const tensor& into) const override {
    ++loads;
    const region part = tile_region(shape_, tile_shape_, tile);
    auto* element = reinterpret_cast<std::int32_t*>(const_cast<std::byte*>(into.data()));
    for (index_t i = 0; i < part.shape[0]; ++i)
      for (index_t j = 0; j < part.shape[1]; ++j)
        *element++ = static_cast<std::int32_t>((part.start[0] + i) * shape_[1] + part.start[1] + j);
  }
  mutable std::atomic<index_t> loads = 0;

 private:
  dims shape_;
  dims tile_shape_;
};

// Tiles of a tensor in memory.
class tensor_tiles final : public tile_source {
 public:
  tensor_tiles(const tensor& values, const dims& tile_shape)
      : values_(values), tile_shape_(tile_shape) {}
  shale::dtype dtype() const noexcept override { return values_.dtype(); }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  bool writable() const noexcept override { return true; }
  void load(const dims&, const tensor&) const override {}
  void store(const dims& tile, const tensor& source) override {
    const region part = tile_region(shape(), tile_shape_, tile);
    ASSERT_EQ(source.shape(), part.shape);
    for (index_t i = 0; i < part.shape[0]; ++i)
      for (index_t j = 0; j < part.shape[1]; ++j)
        values_.set({part.start[0] + i, part.start[1] + j}, source.at({i, j}));
  }

 private:
  tensor values_;
  dims tile_shape_;
};

TEST_F(ExprFiles, TilesOfSourcesAreLoadedOnceForAFileAcrossThem) {
  const auto source = std::make_shared<positions>(dims{columns, rows}, dims{48, 32});
  const tensor to = counting({rows, columns});
  eval_into(to, expr(source).swapaxes(0, 1) + expr(to));
  expect(to, [](index_t i, index_t j) { return j * rows + i + i * columns + j; });
  EXPECT_EQ(source->loads, ceil_div(columns, index_t{48}) * ceil_div(rows, index_t{32}));
  EXPECT_EQ(on_.statistics().windows, 0u);
}

// A pass that copies has no windows. What the run counts says which way it went.
TEST_F(ExprFiles, PlansSayWhetherTheRunCopies) {
  const tensor along = counting({rows, columns}), across = counting({columns, rows});
  const tensor small = counting({columns});
  const tensor own = counting({columns, rows}, access::copy_on_write);
  const expr turned = expr(across).swapaxes(0, 1);
  const auto source = std::make_shared<positions>(dims{rows, columns}, dims{48, 32});
  const std::vector<std::pair<expr, bool>> cases{
      {expr(along) + small, false},
      {turned - expr(along), true},
      {turned * 2, true},
      {sum(expr(along) - turned, dims{0}), true},
      {sum(turned), false},
      {cumulative_sum(expr(along) + 1, 1), false},
      {expr(source) + along, true},
      {expr(small) * 2, false},
      {expr(own).swapaxes(0, 1) - along, true},  // in windows, too
  };
  for (std::size_t k = 0; k < cases.size(); ++k) {
    SCOPED_TRACE(k);
    const auto& [value, copies] = cases[k];
    const evaluation_plan planned = explain(value);
    EXPECT_EQ(planned.copies, copies) << planned.text;
    EXPECT_EQ(planned.text.find("copied part by part") != std::string::npos, copies);
    const executor_statistics before = on_.statistics();
    eval(value);
    EXPECT_EQ(planned.copies, on_.statistics().mapped_tiles > before.mapped_tiles);
    EXPECT_EQ(planned.streams, on_.statistics().windows > before.windows) << planned.text;
  }
}

TEST_F(ExprFiles, FoldsReadFilesAgainstTheirOrder) {
  const tensor a = counting({rows, columns});
  const tensor b = counting({columns, rows});
  const tensor got = eval(sum(expr(a) - expr(b.swapaxes(0, 1)), dims{0}));
  EXPECT_TRUE(tiled());
  for (index_t j = 0; j < columns; ++j) {
    index_t expected = 0;
    for (index_t i = 0; i < rows; ++i) expected += i * columns + j - (j * rows + i);
    ASSERT_EQ(got.at({j}), scalar(std::int64_t{expected}));
  }
}

// The copies of a load begin anywhere, but positions count from the first element.
TEST_F(ExprFiles, PositionsAreThoseOfTheWholeArray) {
  const tensor a = counting({rows, columns});
  const tensor turned = counting({columns, rows}).swapaxes(0, 1);
  // At (i, j): the first file has i * columns + j, the other one j * rows + i.
  const expr both = expr(a) - expr(turned);
  const auto value = [](index_t i, index_t j) { return i * columns + j - (j * rows + i); };
  const tensor along_0 = eval(argmin(both, 0));
  const tensor along_1 = eval(argmax(both, 1));
  const tensor of_all = eval(argmax(both));
  EXPECT_TRUE(tiled());
  const auto best = [](index_t count, const std::function<index_t(index_t)>& at) {
    index_t found = 0;
    for (index_t k = 1; k < count; ++k)
      if (at(k) > at(found)) found = k;
    return scalar(std::int64_t{found});
  };
  for (index_t j = 0; j < columns; ++j)
    ASSERT_EQ(along_0.at({j}), best(rows, [&](index_t i) { return -value(i, j); }));
  for (index_t i = 0; i < rows; ++i)
    ASSERT_EQ(along_1.at({i}), best(columns, [&](index_t j) { return value(i, j); }));
  EXPECT_EQ(of_all.item(),
            best(rows * columns, [&](index_t k) { return value(k / columns, k % columns); }));
}

// way.1, units.1
TEST_F(ExprFiles, FoldsHaveTheSameBitsForAnyBudget) {
  const tensor a = counting({rows, columns});
  const tensor b = counting({columns, rows});
  const tensor c = counting({columns, 1, rows}).squeeze(1);
  const tensor row = eval(astype(arange(rows), dtype::float32).reshape({1, rows}));
  const auto part = [](const tensor& values) { return sin(astype(expr(values), dtype::float32)); };
  const auto source = std::make_shared<positions>(dims{columns, rows}, dims{48, 32});
  const expr tiles = astype(expr(source).swapaxes(0, 1), dtype::float32);
  const std::vector<expr> wanted{
      sum(part(a) * part(b.swapaxes(0, 1))),
      var(part(a) / part(b.swapaxes(0, 1)), dims{0}),
      mean(part(a) + part(b.swapaxes(0, 1)) * part(c.swapaxes(0, 1)), dims{1}),
      sum(part(a).swapaxes(0, 1) * tile(expr(row), {columns, 1}), dims{0}),
      sum(tiles * part(a), dims{0}),
      mean(sqrt(tiles) * part(a) - part(b.swapaxes(0, 1)), dims{1})};
  executor all({.threads = 1, .memory_bytes = std::size_t{1} << 30});
  for (const expr& root : wanted) {
    const tensor expected = test::run_on(all, [&] { return eval(root); });
    bool copied = false;
    for (const std::size_t budget : {300u << 10, 1u << 20, 3u << 20}) {
      executor some({.threads = 3, .memory_bytes = budget});
      const tensor got = test::run_on(some, [&] { return eval(root); });
      EXPECT_TRUE(equal_bits(got, expected)) << budget;
      copied = copied || some.statistics().mapped_tiles > 0;
    }
    EXPECT_TRUE(copied);
  }
  EXPECT_EQ(all.statistics().mapped_tiles, 0u);
}

TEST_F(ExprFiles, SinksTakeFilesAgainstTheirTiles) {
  const tensor source = counting({columns, rows});
  const tensor into = tensor::empty({rows, columns}, dtype::int32);
  tensor_tiles sink(into, {24, 40});
  eval_into(sink, expr(source.swapaxes(0, 1)) * 2);
  EXPECT_TRUE(tiled());
  expect(into, [](index_t i, index_t j) { return 2 * (j * rows + i); });
}

// The files have 16 times the budget, or 4 times in builds with slow loops.
TEST_F(ExprFiles, TransposesStayInsideTheBudget) {
  constexpr index_t side = test::instrumented ? 4096 : 8192;
  constexpr long budget_mib = 16;
  const tensor source = counting({side, side});
  const tensor to = counting({side, side});
  const std::string command = fmt::format("{} {} {} {} {}", SHALE_TRANSPOSE_PEER, side, budget_mib,
                                          to.storage().path(), source.storage().path());
  std::FILE* const output = ::popen(command.c_str(), "r");
  long peak_resident_kib = 0;
  EXPECT_EQ(std::fscanf(output, "%ld", &peak_resident_kib), 1);
  EXPECT_EQ(::pclose(output), 0);
  if (!test::instrumented) {
    EXPECT_LE(peak_resident_kib, (budget_mib + 16) << 10);
  }
  expect(to, [](index_t i, index_t j) { return j * side + i; });
}

}  // namespace
}  // namespace shale
