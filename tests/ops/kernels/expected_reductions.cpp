#include "ops/kernels/expected_reductions.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace shale::test {
namespace {

const ops::reducer& find(ops::isa isa, ops::reduction op, dtype type) {
  return ops::kernels_for(isa).reducers[static_cast<int>(op)][static_cast<int>(type)];
}

/// The axes that are folded.
struct folding {
  bool inner;
  bool outer;
};
constexpr folding foldings[] = {{true, true}, {true, false}, {false, true}, {false, false}};

/// The results of one `accumulate` over a block, row-major over the kept axes. With `scattered`,
/// the states lie apart and in reverse order, as the engine may place them.
std::vector<std::byte> reduce(const ops::reducer& how, block& values, folding folded,
                              double parameter, bool scattered) {
  const index_t columns = folded.inner ? 1 : values.inner();
  const index_t rows = folded.outer ? 1 : values.outer();
  const auto bytes = static_cast<index_t>(how.state_bytes);
  const index_t spacing = scattered ? 2 : 1;
  std::vector<std::uint64_t> memory(static_cast<std::size_t>(columns * rows * spacing * bytes) / 8 +
                                    8);
  auto* states = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  how.start(states, columns * rows * spacing);
  index_t inner_stride = folded.inner ? 0 : bytes * spacing;
  index_t outer_stride = folded.outer ? 0 : bytes * spacing * columns;
  std::byte* first = states;
  if (scattered && !folded.inner) {
    first += inner_stride * (columns - 1);
    inner_stride = -inner_stride;
  }
  std::byte* data[] = {first, values.first()};
  const index_t strides[] = {inner_stride, values.layout().inner_stride, outer_stride,
                             values.layout().outer_stride};
  how.accumulate(data, strides, values.inner(), values.outer());

  const std::size_t item = item_bytes(how.result);
  std::vector<std::byte> results(static_cast<std::size_t>(columns * rows) * item);
  for (index_t row = 0; row < rows; ++row)
    for (index_t column = 0; column < columns; ++column)
      how.finish(first + row * outer_stride + column * inner_stride,
                 results.data() + static_cast<std::size_t>(row * columns + column) * item, 1,
                 parameter);
  return results;
}

std::vector<extents> reduced_extents() {
  return {{1, 1}, {1, 600}, {2, 900}, {3, 40}, {5, 5}, {700, 3}, {1030, 2}, {40, 130}, {5000, 1}};
}

/// The values that are folded into the result (row, column), one after the other.
std::vector<std::byte> gathered(const block& values, std::size_t item, folding folded, index_t row,
                                index_t column) {
  std::vector<std::byte> result;
  for (index_t i = 0; i < (folded.outer ? values.outer() : 1); ++i) {
    for (index_t j = 0; j < (folded.inner ? values.inner() : 1); ++j) {
      const std::byte* value = values.element(folded.inner ? j : column, folded.outer ? i : row);
      result.insert(result.end(), value, value + item);
    }
  }
  return result;
}

}  // namespace

void expect_reduction(const expected_reduction& tested) {
  const auto item = static_cast<index_t>(item_bytes(tested.in));
  const std::size_t out = item_bytes(tested.out);
  generator random(static_cast<unsigned>(tested.op) * 64 + static_cast<unsigned>(tested.in));
  for (const extents& size : reduced_extents()) {
    block dense(item_bytes(tested.in), {item, item * size.inner}, size.inner, size.outer);
    block spread(item_bytes(tested.in), distinct_layout(item_bytes(tested.in), size, random),
                 size.inner, size.outer);
    for (index_t row = 0; row < size.outer; ++row) {
      for (index_t column = 0; column < size.inner; ++column) {
        tested.draw(dense.element(column, row), random);
        std::memcpy(spread.element(column, row), dense.element(column, row), item_bytes(tested.in));
      }
    }
    for (const folding folded : foldings) {
      std::vector<std::byte> first;
      for (const ops::isa isa : usable_isas()) {
        const ops::reducer& how = find(isa, tested.op, tested.in);
        ASSERT_NE(how.accumulate, nullptr);
        ASSERT_EQ(how.result, tested.out);
        ASSERT_EQ(how.state_bytes % 8, 0u);
        const auto results = reduce(how, dense, folded, tested.parameter, false);
        if (first.empty()) first = results;
        ASSERT_EQ(results, first) << static_cast<int>(tested.op) << ' ' << name(tested.in) << ' '
                                  << name(isa) << " differs from the baseline";
        ASSERT_EQ(reduce(how, spread, folded, tested.parameter, true), first)
            << static_cast<int>(tested.op) << ' ' << name(tested.in) << " depends on the layout";
      }
      const index_t columns = folded.inner ? 1 : size.inner;
      for (std::size_t i = 0; i < first.size() / out; ++i) {
        const auto number = static_cast<index_t>(i);
        const auto values =
            gathered(dense, item_bytes(tested.in), folded, number / columns, number % columns);
        ASSERT_TRUE(tested.agrees(first.data() + i * out, values.data(),
                                  static_cast<index_t>(values.size()) / item))
            << "reduction " << static_cast<int>(tested.op) << ' ' << name(tested.in) << " of "
            << size.outer << " x " << size.inner << ", inner " << (folded.inner ? "folded" : "kept")
            << ", outer " << (folded.outer ? "folded" : "kept");
      }
    }
  }
}

}  // namespace shale::test
