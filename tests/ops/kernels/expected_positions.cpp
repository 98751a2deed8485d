#include "ops/kernels/expected_positions.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace shale::test {
namespace {

/// A block, and how it is folded.
struct arrangement {
  extents size;
  bool inner_folded;
  bool outer_folded;
  bool rows_first;  // whether positions count along rows first, or along columns

  index_t inner_step() const {
    return !inner_folded ? 0 : rows_first || !outer_folded ? 1 : size.outer;
  }
  index_t outer_step() const {
    return !outer_folded ? 0 : rows_first && inner_folded ? size.inner : 1;
  }
  index_t columns() const { return inner_folded ? 1 : size.inner; }
  index_t rows() const { return outer_folded ? 1 : size.outer; }
};

/// The position of the best value for the result (column, row); `first` is that of the first value.
std::int64_t wanted(const element_type& element, const block& values, const arrangement& how,
                    index_t column, index_t row, bool largest, index_t first) {
  const std::byte* best = nullptr;
  std::int64_t position = 0;
  const index_t count_inner = how.inner_folded ? how.size.inner : 1;
  const index_t count_outer = how.outer_folded ? how.size.outer : 1;
  for (index_t k = 0; k < count_inner * count_outer; ++k) {
    const index_t i = how.rows_first ? k % count_inner : k / count_outer;
    const index_t j = how.rows_first ? k / count_inner : k % count_outer;
    const std::byte* const value =
        values.element(how.inner_folded ? i : column, how.outer_folded ? j : row);
    if (best != nullptr && !element.wins(value, best, largest)) continue;
    best = value;
    position = first + k;
  }
  return position;
}

/// Folds the rows from `begin` to `end` of a block. `states` are those of the block's first row.
void accumulate(const ops::reducer& fold, std::byte* states, block& values, const arrangement& how,
                index_t begin, index_t end, index_t first) {
  const auto bytes = static_cast<index_t>(fold.state_bytes);
  const index_t outer_stride = how.outer_folded ? 0 : bytes * how.columns();
  index_t position = first + begin * how.outer_step();
  std::byte* data[] = {states + begin * outer_stride, values.element(0, begin),
                       reinterpret_cast<std::byte*>(&position)};
  const index_t strides[] = {how.inner_folded ? 0 : bytes,
                             values.layout().inner_stride,
                             how.inner_step(),
                             outer_stride,
                             values.layout().outer_stride,
                             how.outer_step()};
  fold.accumulate(data, strides, values.inner(), end - begin);
}

/// Folds a block in two parts, the second one first if `backwards`, and merges them.
std::vector<std::int64_t> results(const ops::reducer& fold, block& values, const arrangement& how,
                                  index_t first, bool backwards) {
  const index_t count = how.columns() * how.rows();
  const auto bytes = static_cast<std::size_t>(count) * fold.state_bytes;
  std::vector<std::uint64_t> memory(2 * bytes / 8);
  auto* const one = reinterpret_cast<std::byte*>(memory.data());
  std::byte* const two = one + bytes;
  fold.start(one, 2 * count);
  const index_t middle = how.size.outer / 2;
  if (middle > 0) accumulate(fold, backwards ? two : one, values, how, 0, middle, first);
  accumulate(fold, backwards ? one : two, values, how, middle, how.size.outer, first);
  fold.merge(one, two, count);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  fold.finish(one, reinterpret_cast<std::byte*>(positions.data()), count, 0);
  return positions;
}

void expect_positions(const element_type& element, block& values, const arrangement& how,
                      const char* kind) {
  for (const bool largest : {false, true}) {
    const auto op =
        static_cast<int>(largest ? ops::reduction::arg_maximum : ops::reduction::arg_minimum);
    for (const ops::isa isa : usable_isas()) {
      const ops::reducer& fold = ops::kernels_for(isa).reducers[op][static_cast<int>(element.type)];
      ASSERT_NE(fold.accumulate, nullptr);
      ASSERT_TRUE(fold.reads_positions);
      ASSERT_EQ(fold.result, dtype::int64);
      for (const bool backwards : {false, true}) {
        const index_t first = 1000;
        const auto got = results(fold, values, how, first, backwards);
        for (index_t row = 0; row < how.rows(); ++row)
          for (index_t column = 0; column < how.columns(); ++column)
            ASSERT_EQ(got[static_cast<std::size_t>(row * how.columns() + column)],
                      wanted(element, values, how, column, row, largest, first))
                << name(element.type) << ' ' << name(isa) << ' ' << kind
                << (largest ? " max" : " min") << " of " << how.size.outer << " x "
                << how.size.inner << " at " << row << ", " << column
                << (how.inner_folded ? ", inner folded" : "")
                << (how.outer_folded ? ", outer folded" : "")
                << (how.rows_first ? ", rows first" : "") << (backwards ? ", backwards" : "");
      }
    }
  }
}

}  // namespace

void expect_first_of_the_best(const element_type& element) {
  generator random(static_cast<unsigned>(element.type));
  const double infinity = std::numeric_limits<double>::infinity();
  const auto any = [&](std::byte* to) { element.some(to, random); };
  const auto always = [&](double number) {
    return [&element, number](std::byte* to) { element.from(to, number); };
  };
  // Any values; a few values, so that many are equal; one value; the value that every other one
  // beats.
  const std::pair<const char*, std::function<void(std::byte*)>> kinds[] = {
      {"any", any},
      {"few", [&](std::byte* to) { element.from(to, static_cast<double>(random() % 3)); }},
      {"one", always(1)},
      {"rare NaN", [&](std::byte* to) { random() % 400 == 0 ? any(to) : element.from(to, -0.0); }},
      {"lowest", always(-infinity)},
      {"highest", always(infinity)},
  };
  const std::vector<extents> sizes{{1, 1},   {1, 600},  {2, 900},  {3, 40},  {5, 5},
                                   {700, 3}, {1030, 2}, {40, 130}, {5000, 1}};
  const std::size_t bytes = item_bytes(element.type);
  for (const auto& [kind, draw] : kinds) {
    for (const extents& size : sizes) {
      block values(bytes, distinct_layout(bytes, size, random), size.inner, size.outer);
      for (index_t row = 0; row < size.outer; ++row)
        for (index_t column = 0; column < size.inner; ++column) draw(values.element(column, row));
      for (const bool inner_folded : {true, false})
        for (const bool outer_folded : {true, false})
          for (const bool rows_first : {true, false})
            expect_positions(element, values, {size, inner_folded, outer_folded, rows_first}, kind);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace shale::test
