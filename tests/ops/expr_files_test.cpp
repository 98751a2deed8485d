// Expressions over mapped files beyond the memory budget whose operands disagree on the fastest
// axis, compared with loops over indices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "shale/evaluate.hpp"
#include "shale/expr.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/instrumented.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

class ExprFiles : public testing::Test {
 protected:
  static constexpr index_t rows = 700;
  static constexpr index_t columns = 1100;

  // `shape` numbers that are their own positions, in a file of their own.
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

  void expect(const tensor& matrix, const std::function<index_t(index_t, index_t)>& value) {
    const auto* const elements = reinterpret_cast<const std::int32_t*>(matrix.storage().data());
    index_t wrong = 0;
    for (index_t i = 0; i < matrix.shape()[0]; ++i)
      for (index_t j = 0; j < matrix.shape()[1]; ++j) {
        const index_t at = matrix.offset() + i * matrix.strides()[0] + j * matrix.strides()[1];
        wrong += elements[at] != value(i, j);
      }
    EXPECT_EQ(wrong, 0);
  }

  // Whether the call was cut into tiles of the files.
  bool tiled() {
    const executor_statistics now = on_.statistics();
    EXPECT_EQ(now.tiles_decoded, 0u);
    return std::exchange(tiles_, now.mapped_tiles) != now.mapped_tiles;
  }

  executor on_{{.threads = 2, .memory_bytes = 2 << 20}};

 private:
  test::scratch_directory directory_;
  int files_ = 0;
  std::uint64_t tiles_ = 0;
};

TEST_F(ExprFiles, CopyTransposes) {
  const tensor from = counting({columns, rows});
  const tensor to = counting({rows, columns});
  copy(to, expr(from.transpose(0, 1)), &on_);
  EXPECT_TRUE(tiled());
  expect(to, [](index_t i, index_t j) { return j * rows + i; });
  expect(from, [](index_t i, index_t j) { return i * rows + j; });
}

TEST_F(ExprFiles, WriteViewsOfFiles) {
  const tensor from = counting({rows, columns});
  const tensor whole = counting({columns + 7, rows + 5});
  const tensor to = whole.narrow(0, 3, columns).narrow(1, 2, rows);
  copy(to.transpose(0, 1), expr(from.flip({0})) + 1, &on_);
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
  eval_into(in_memory, full({rows, columns}, 3), &on_);
  const tensor to = counting({rows, columns});
  eval_into(to, expr(across.transpose(0, 1)) - expr(along) + expr(row) * expr(in_memory), &on_);
  EXPECT_TRUE(tiled());
  expect(to, [](index_t i, index_t j) { return j * rows + i - (i * columns + j) + 3 * j; });
  // In place, element on element.
  eval_into(to, expr(to) + expr(across.transpose(0, 1)), &on_);
  EXPECT_TRUE(tiled());
  expect(to, [](index_t i, index_t j) { return 2 * (j * rows + i) - (i * columns + j) + 3 * j; });
}

TEST_F(ExprFiles, ResultsInMemory) {
  const tensor a = counting({rows, columns});
  const tensor b = counting({columns, rows});
  const std::vector<expr> both{expr(a) - expr(b.transpose(0, 1)), expr(b.transpose(0, 1)) * 2};
  const std::vector<tensor> results = eval_all(both, &on_);
  EXPECT_TRUE(tiled());
  expect(results[0], [](index_t i, index_t j) { return i * columns + j - (j * rows + i); });
  expect(results[1], [](index_t i, index_t j) { return 2 * (j * rows + i); });
}

TEST_F(ExprFiles, WhatOverlapsIsCopiedFirst) {
  const tensor square = counting({rows, rows});
  eval_into(square, expr(square.transpose(0, 1)), &on_);
  EXPECT_FALSE(tiled());
  expect(square, [](index_t i, index_t j) { return j * rows + i; });
}

TEST_F(ExprFiles, PrivateChangesAreSeen) {
  const tensor from = counting({columns, rows}, access::copy_on_write);
  eval_into(from, expr(from) * 2, &on_);
  const tensor to = counting({rows, columns});
  copy(to, expr(from.transpose(0, 1)), &on_);
  expect(to, [](index_t i, index_t j) { return 2 * (j * rows + i); });
}

// A tile source of numbers that are their own positions.
class positions final : public tile_source {
 public:
  positions(const dims& shape, const dims& tile_shape) : shape_(shape), tile_shape_(tile_shape) {}
  shale::dtype dtype() const noexcept override { return dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  void load(const dims& tile, const tensor& into) const override {
    ++loads;
    const region where = tile_region(shape_, tile_shape_, tile);
    auto* element = reinterpret_cast<std::int32_t*>(const_cast<std::byte*>(into.data()));
    for (index_t i = 0; i < where.shape[0]; ++i)
      for (index_t j = 0; j < where.shape[1]; ++j)
        *element++ =
            static_cast<std::int32_t>((where.start[0] + i) * shape_[1] + where.start[1] + j);
  }
  mutable std::atomic<index_t> loads = 0;

 private:
  dims shape_;
  dims tile_shape_;
};

TEST_F(ExprFiles, TilesOfSourcesAreLoadedOnceForAFileAcrossThem) {
  const auto source = std::make_shared<positions>(dims{columns, rows}, dims{48, 32});
  const tensor to = counting({rows, columns});
  eval_into(to, expr(source).transpose(0, 1) + expr(to), &on_);
  expect(to, [](index_t i, index_t j) { return j * rows + i + i * columns + j; });
  EXPECT_EQ(source->loads, ceil_div(columns, index_t{48}) * ceil_div(rows, index_t{32}));
  EXPECT_EQ(on_.statistics().windows, 0u);
}

// Files of sixteen times the budget, or of four where loops are slow.
TEST_F(ExprFiles, TransposesStayInsideTheBudget) {
  constexpr index_t side = test::instrumented ? 4096 : 8192;
  constexpr long budget_mib = 16;
  const tensor from = counting({side, side});
  const tensor to = counting({side, side});
  const std::string command = fmt::format("{} {} {} {} {}", SHALE_TRANSPOSE_PEER, side, budget_mib,
                                          to.storage().path(), from.storage().path());
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
