// Tests indexing of expressions by arrays of integers and by masks, over random layouts, dtypes and
// entries. The oracle finds each element by its coordinates, with NumPy's rules written again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/masks.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::as_list;
using test::code_of;
using test::coordinates_of;
using test::count_of;
using test::elements_of;
using test::index_list;
using test::number_of;
using test::random_choices;
using test::text_of;

/// An array of positions along one axis of the operand, in row-major order.
struct oracle_array {
  index_list shape;
  index_list positions;
  std::optional<std::size_t> axis;  // none: a mask of rank 0
};

/// What the oracle knows of the entries: one list of source positions for each axis that is kept,
/// the arrays, and how the axes of the result follow each other.
struct oracle_entries {
  struct kept_axis {
    std::optional<std::size_t> axis;  // of the operand; none: a new axis
    index_list positions;
  };
  std::vector<kept_axis> kept;
  std::vector<oracle_array> arrays;
  std::vector<bool> is_array;        // by entry; integers are arrays
  std::vector<std::size_t> kept_at;  // by entry: the number of kept axes before it
};

/// The number of kept axes in front of the axes of the arrays.
std::size_t place_of(const oracle_entries& entries) {
  const auto begin = entries.is_array.begin(), end = entries.is_array.end();
  const auto first = std::find(begin, end, true);
  const auto after = std::find(first, end, false);
  if (std::find(after, end, true) != end) return 0;
  return entries.kept_at[static_cast<std::size_t>(first - begin)];
}

index_list broadcast(index_list a, index_list b) {
  if (a.size() < b.size()) std::swap(a, b);
  for (std::size_t k = 0; k < b.size(); ++k) {
    index_t& extent = a[a.size() - b.size() + k];
    if (extent == 1) extent = b[k];
  }
  return a;
}

struct oracle_result {
  index_list shape;
  index_list sources;  // the number of the operand's element, for each of the result
};

index_t position_at(const oracle_array& array, const index_list& at) {
  index_list own(at.end() - static_cast<long>(array.shape.size()), at.end());
  for (std::size_t k = 0; k < own.size(); ++k)
    if (array.shape[k] == 1) own[k] = 0;
  return array.positions[number_of(own, array.shape)];
}

oracle_result indexed(const index_list& operand, const oracle_entries& entries) {
  index_list common;
  for (const oracle_array& array : entries.arrays) common = broadcast(common, array.shape);
  const auto place = static_cast<long>(place_of(entries));
  oracle_result result;
  for (const auto& kept : entries.kept)
    result.shape.push_back(static_cast<index_t>(kept.positions.size()));
  result.shape.insert(result.shape.begin() + place, common.begin(), common.end());
  for (index_t k = 0; k < count_of(result.shape); ++k) {
    index_list at = coordinates_of(k, result.shape);
    const index_list shared(at.begin() + place,
                            at.begin() + place + static_cast<long>(common.size()));
    at.erase(at.begin() + place, at.begin() + place + static_cast<long>(common.size()));
    index_list source(operand.size(), 0);
    for (std::size_t axis = 0; axis < entries.kept.size(); ++axis)
      if (const auto& kept = entries.kept[axis]; kept.axis)
        source[*kept.axis] = kept.positions[static_cast<std::size_t>(at[axis])];
    for (const oracle_array& array : entries.arrays)
      if (array.axis) source[*array.axis] = position_at(array, shared);
    result.sources.push_back(static_cast<index_t>(number_of(source, operand)));
  }
  return result;
}

/// Random entries, as the library takes them and as the oracle does.
class random_entries {
 public:
  random_entries(random_choices& choose, const index_list& shape) : choose_(choose), shape_(shape) {
    common_ = as_list(test::random_shape(choose, {.axes_max = 3, .longest = 4}));
    const std::size_t ellipsis_at = choose_(0, 2) == 0 ? pick(shape.size() + 1) : shape.size() + 1;
    while (true) {
      if (choose_(0, 7) == 0) add_new_axis();
      if (axis_ == ellipsis_at && !has_ellipsis_) add_ellipsis();
      if (axis_ >= shape_.size()) break;
      if (choose_(0, 9) == 0) break;  // the remaining axes are kept
      add_any();
    }
    if (choose_(0, 20) == 0) add_mask_of_rank_0();
    while (axis_ < shape_.size()) keep_axis();
  }

  std::vector<expr_index_entry> entries;
  oracle_entries wanted;

 private:
  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>(choose_(0, static_cast<index_t>(count) - 1));
  }
  void note(bool is_array) {
    wanted.is_array.push_back(is_array);
    wanted.kept_at.push_back(wanted.kept.size());
  }
  void keep_axis() {
    index_list all;
    for (index_t k = 0; k < shape_[axis_]; ++k) all.push_back(k);
    wanted.kept.push_back({axis_++, std::move(all)});
  }

  void add_any() {
    switch (choose_(0, 5)) {
      case 0:
        return shape_[axis_] == 0 ? add_slice() : add_integer();
      case 1:
      case 2:
        return add_slice();
      case 3:
        return add_mask();
      default:
        return add_array();
    }
  }
  void add_new_axis() {
    note(false);
    wanted.kept.push_back({std::nullopt, {0}});
    entries.emplace_back(newaxis);
  }
  void add_ellipsis() {
    note(false);
    entries.emplace_back(ellipsis);
    has_ellipsis_ = true;
    for (std::size_t count = pick(3); count > 0 && axis_ < shape_.size(); --count) keep_axis();
    // The entries behind an ellipsis must name all axes that remain.
    while (axis_ < shape_.size()) add_any();
  }
  void add_integer() {
    note(true);
    const index_t extent = shape_[axis_], index = choose_(-extent, extent - 1);
    wanted.arrays.push_back({{}, {index < 0 ? index + extent : index}, axis_++});
    entries.emplace_back(index);
  }
  void add_slice() {
    note(false);
    const index_t extent = shape_[axis_], step = choose_(1, 3);
    index_list positions;
    if (choose_(0, 1) == 0) {
      const index_t start = choose_(0, extent);
      for (index_t k = start; k < extent; k += step) positions.push_back(k);
      entries.emplace_back(slice{.start = start, .step = step});
    } else {
      for (index_t k = extent - 1; k >= 0; k -= step) positions.push_back(k);
      entries.emplace_back(slice{.step = -step});
    }
    wanted.kept.push_back({axis_++, std::move(positions)});
  }
  // An array whose shape is broadcast to the common one.
  void add_array() {
    const index_t extent = shape_[axis_];
    index_list own(common_.end() - static_cast<long>(pick(common_.size() + 1)), common_.end());
    for (index_t& length : own)
      if (choose_(0, 4) == 0) length = 1;
    if (extent == 0 && count_of(own) > 0) return add_slice();
    note(true);
    dims shape;
    for (const index_t length : own) shape.push_back(length);
    const tensor array = test::random_tensor<std::int64_t>(choose_, shape);
    index_list positions;
    for (const index_t at : test::positions_of(array)) {
      auto* const element = reinterpret_cast<std::int64_t*>(array.storage().data()) + at;
      *element = choose_(-extent, extent - 1);
    }
    for (const std::int64_t index : elements_of<std::int64_t>(array))
      positions.push_back(index < 0 ? index + extent : index);
    wanted.arrays.push_back({own, std::move(positions), axis_++});
    if (choose_(0, 1) == 0) entries.emplace_back(array);
    else entries.emplace_back(astype(array, choose_(0, 1) == 0 ? dtype::int16 : dtype::int32));
  }
  // A mask of one or two axes, with as many true elements as the last axis of the common shape.
  void add_mask() {
    const index_t wanted_count = common_.empty() ? 1 : common_.back();
    const std::size_t rank = std::min<std::size_t>(1 + pick(2), shape_.size() - axis_);
    dims shape;
    for (std::size_t k = 0; k < rank; ++k) shape.push_back(shape_[axis_ + k]);
    const index_list extents = as_list(shape);
    const index_t count = count_of(extents);
    if (count < wanted_count) return add_slice();
    note(true);
    const tensor mask = tensor::zeros(shape, dtype::boolean);
    index_list chosen;
    for (index_t k = 0; k < count; ++k) chosen.push_back(k);
    while (static_cast<index_t>(chosen.size()) > wanted_count)
      chosen.erase(chosen.begin() + static_cast<long>(pick(chosen.size())));
    std::vector<index_list> columns(rank);
    for (const index_t element : chosen) {
      mask.storage().data()[element] = std::byte{1};
      const index_list at = coordinates_of(element, extents);
      for (std::size_t k = 0; k < rank; ++k) columns[k].push_back(at[k]);
    }
    for (std::size_t k = 0; k < rank; ++k)
      wanted.arrays.push_back({{wanted_count}, columns[k], axis_ + k});
    axis_ += rank;
    if (choose_(0, 1) == 0) entries.emplace_back(mask);
    else entries.emplace_back(expr(mask) == true);
  }
  // A true one stands for one element, which is broadcast.
  void add_mask_of_rank_0() {
    note(true);
    entries.emplace_back(expr(true));
    wanted.arrays.push_back({{1}, {0}, std::nullopt});
  }

  random_choices& choose_;
  const index_list shape_;
  index_list common_;
  std::size_t axis_ = 0;
  bool has_ellipsis_ = false;
};

template <class T>
class Indexing : public testing::Test {};
using element_list = testing::Types<std::int8_t, std::int16_t, float, double, std::complex<double>>;
TYPED_TEST_SUITE(Indexing, element_list);

TYPED_TEST(Indexing, HasNumPysRules) {
  using T = TypeParam;
  int with_arrays = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 5, .longest = 5});
    const tensor values = test::random_tensor<T>(choose, shape);
    const random_entries entries(choose, as_list(shape));
    if (entries.wanted.arrays.empty()) continue;
    ++with_arrays;
    const auto elements = elements_of<T>(values);
    const oracle_result found = indexed(as_list(shape), entries.wanted);
    std::vector<T> wanted;
    for (const index_t source : found.sources)
      wanted.push_back(elements[static_cast<std::size_t>(source)]);

    const expr picked = expr(values).index(entries.entries);
    ASSERT_EQ(as_list(picked.shape()), found.shape);
    ASSERT_EQ(picked.dtype(), values.dtype());
    ASSERT_EQ(elements_of<T>(eval(picked)), wanted);
    // As a part of a larger expression, through a view, and of a computed operand.
    ASSERT_EQ(elements_of<T>(eval((picked + picked).flip() - picked.flip())),
              elements_of<T>(eval(expr(eval(picked)).flip())));
    const expr twice = (expr(values) + expr(values)).index(entries.entries);
    ASSERT_EQ(elements_of<T>(eval(twice - picked)), wanted);
  }
  EXPECT_GT(with_arrays, 200);
}

TEST(IndexingByArrays, PutsTheAxesWhereNumPyPutsThem) {
  const expr x = zeros({5, 6, 7, 8});
  const tensor two = tensor::of<std::int64_t>({0, 1}), three = tensor::of<std::int64_t>({2, 1, 0});
  const expr column = expr(three).expand_dims(1);
  EXPECT_EQ(x.index({two}).shape(), dims({2, 6, 7, 8}));
  EXPECT_EQ(x.index({slice{}, two}).shape(), dims({5, 2, 7, 8}));
  EXPECT_EQ(x.index({ellipsis, two}).shape(), dims({5, 6, 7, 2}));
  EXPECT_EQ(x.index({slice{}, column, two}).shape(), dims({5, 3, 2, 8}));
  EXPECT_EQ(x.index({slice{}, 0, two}).shape(), dims({5, 2, 8}));
  EXPECT_EQ(x.index({0, slice{}, two}).shape(), dims({2, 6, 8}));
  EXPECT_EQ(x.index({slice{}, column, slice{}, two}).shape(), dims({3, 2, 5, 7}));
  EXPECT_EQ(x.index({slice{}, two, newaxis, two}).shape(), dims({2, 5, 1, 8}));
  EXPECT_EQ(x.index({slice{}, two, two, newaxis}).shape(), dims({5, 2, 1, 8}));
  // An ellipsis of no axes separates, too.
  EXPECT_EQ(zeros({5, 3, 4}).index({slice{}, two, ellipsis, two}).shape(), dims({2, 5}));
  EXPECT_EQ(x.index({slice{}, expr(scalar(std::int64_t{1})), slice{}, two}).shape(),
            dims({2, 5, 7}));
  EXPECT_EQ(x.index({slice{}, expr(false), 0}).shape(), dims({5, 0, 7, 8}));
  EXPECT_EQ((x[{expr(true), slice{}, two}].shape()), dims({2, 5, 7, 8}));
}

TEST(IndexingByMasks, SelectsAtOnce) {
  const tensor x = eval(arange(12).reshape({3, 4}));
  const expr some = expr(x).index({expr(x) % 3 == 0});
  fill(x, 0);
  EXPECT_EQ(elements_of<std::int64_t>(eval(some)), (std::vector<std::int64_t>{0, 3, 6, 9}));
  const tensor y = eval(arange(12).reshape({3, 4}));
  const tensor mask = tensor::of<bool>({true, false, true});
  EXPECT_EQ(elements_of<std::int64_t>(eval(expr(y).index({mask, slice{.step = -3}}))),
            (std::vector<std::int64_t>{3, 0, 11, 8}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(expr(y).index({1, expr(y).select(0, 1) > 5}))),
            (std::vector<std::int64_t>{6, 7}));
  EXPECT_EQ(eval(expr(scalar(5)).index({expr(true)})).shape(), dims({1}));
  EXPECT_EQ(expr(y).index({tensor::zeros({3, 4}, dtype::boolean)}).shape(), dims({0}));
}

/// The elements of a tensor, by tiles.
class tiles_of final : public tile_source {
 public:
  tiles_of(tensor values, const dims& tile_shape)
      : values_(std::move(values)), tile_shape_(tile_shape) {}
  shale::dtype dtype() const noexcept override { return values_.dtype(); }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    tensor part = values_;
    for (index_t axis = 0; axis < tile.size(); ++axis)
      part = part.narrow(axis, tile[axis] * tile_shape_[axis], into.shape(axis));
    copy(into, part);
  }

 private:
  tensor values_;
  dims tile_shape_;
};

TEST(IndexingByArrays, ReadsFilesAndTileSources) {
  test::scratch_directory directory;
  storage bytes = create_file(directory / "a", 1000 * sizeof(std::int64_t));
  const tensor mapped(bytes, dtype::int64, layout({10, 100}));
  eval_into(mapped, arange(1000).reshape({10, 100}));
  const tensor rows = tensor::of<std::int32_t>({7, -1}), columns = tensor::of<std::uint8_t>({5, 9});
  const std::vector<std::int64_t> wanted{705, 909};
  EXPECT_EQ(elements_of<std::int64_t>(eval(expr(mapped).index({rows, columns}))), wanted);
  const expr tiled(std::make_shared<tiles_of>(eval(arange(1000).reshape({10, 100})), dims{3, 40}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(tiled.index({rows, columns}))), wanted);
  EXPECT_EQ(elements_of<std::int64_t>(eval(tiled.index({tiled > 997}))),
            (std::vector<std::int64_t>{998, 999}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(tiled.index({tiled.select(1, 0) > 700, slice{0, 1}}))),
            (std::vector<std::int64_t>{800, 900}));
  // The result may replace its operand.
  const tensor line = eval(arange(5));
  eval_into(line, expr(line).index({tensor::of<std::int64_t>({4, 3, 2, 1, 0})}));
  EXPECT_EQ(elements_of<std::int64_t>(line), (std::vector<std::int64_t>{4, 3, 2, 1, 0}));
}

// A memory budget that the rows of indices, broadcast over the columns, would exceed.
TEST(IndexingByArrays, HoldsComputedIndicesBeforeTheyAreBroadcast) {
  const tensor values = tensor::ones({100, 10'000}, dtype::int8);
  const tensor rows = tensor::zeros({1000}, dtype::int32);
  const evaluation_plan plan = explain(sum(expr(values).index({rows}), {}));
  EXPECT_LT(plan.staged_bytes_max, 100'000u);
  EXPECT_LT(explain(sum(take(values, rows, 0), {})).staged_bytes_max, 100'000u);
}

TEST(IndexingByArrays, RefusesWhatDoesNotFit) {
  const expr x = arange(24).reshape({2, 3, 4});
  const tensor three = tensor::of<std::int64_t>({0, 3});
  // The error names the axis of the operand, although an integer dropped one before it.
  EXPECT_NE(text_of([&] {
              eval(x.index({0, three}));
            }).find("index 3 along axis 1, which has 3 positions"),
            std::string::npos);
  EXPECT_NE(text_of([&] {
              eval(x.index({newaxis, slice{}, three, 0}));
            }).find("index 3 along axis 1"),
            std::string::npos);
  EXPECT_NE(text_of([&] {
              eval(x.index({ellipsis, tensor::of<std::int8_t>({-5})}));
            }).find("index -5 along axis 2, which has 4 positions"),
            std::string::npos);
  EXPECT_NE(text_of([&] {
              x.index({0, tensor::ones({3, 5}, dtype::boolean)});
            }).find("axis 2 has 4 positions, and the mask has 5 there"),
            std::string::npos);
  const auto refused = [&](std::initializer_list<expr_index_entry> entries) {
    return code_of([&] { x.index(entries); }) == errc::invalid_argument;
  };
  EXPECT_TRUE(refused({tensor::of<double>({0})}));
  EXPECT_TRUE(refused({three, tensor::of<std::int64_t>({0, 1, 2})}));
  EXPECT_TRUE(refused({three, three, three, three}));
  EXPECT_TRUE(refused({tensor::ones({2, 3, 4, 1}, dtype::boolean)}));
  EXPECT_TRUE(refused({ellipsis, three, ellipsis}));
  EXPECT_TRUE(refused({7, three}));
  expr gone = x;
  const expr taken = std::move(gone);
  // NOLINTNEXTLINE(bugprone-use-after-move)
  EXPECT_EQ(code_of([&] { x.index({gone}); }), errc::invalid_argument);
}

}  // namespace
}  // namespace shale
