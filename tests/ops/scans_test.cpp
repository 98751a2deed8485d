// Tests scans of expressions and differences: over random layouts, dtypes and axes, in every way of
// the engine. The oracle goes through the elements one by one.
#include "shale/scans.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/failures.hpp"
#include "support/general_way.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"
#include "support/tensor_tiles.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;
using test::sharing;
using test::tensor_tiles;

/// Goes along an axis of row-major values: `step(so far, value)` gives the next result.
template <class Out, class T, class Step>
std::vector<Out> went_along(const std::vector<T>& values, const dims& shape, index_t axis,
                            Step step) {
  index_t before = 1, along = 1, after = 1;
  for (index_t k = 0; k < shape.size(); ++k)
    (k == axis ? along : k < axis ? before : after) *= shape[k];
  std::vector<Out> results(values.size());
  for (index_t i = 0; i < before; ++i)
    for (index_t j = 0; j < after; ++j) {
      std::optional<Out> so_far;
      for (index_t k = 0; k < along; ++k) {
        const auto at = static_cast<std::size_t>((i * along + k) * after + j);
        so_far =
            so_far ? step(*so_far, static_cast<Out>(values[at])) : static_cast<Out>(values[at]);
        results[at] = *so_far;
      }
    }
  return results;
}

std::vector<std::int64_t> sums_of(const tensor& values, index_t axis) {
  return went_along<std::int64_t>(elements_of<std::int32_t>(values), values.shape(), axis,
                                  [](std::int64_t a, std::int64_t b) { return a + b; });
}

class Scans : public testing::Test {
 protected:
  // The same elements and layout in a file of its own.
  tensor in_file(const tensor& from) {
    const std::string path = directory_ / std::to_string(files_++);
    storage bytes = create_file(path, from.storage().size_bytes());
    std::memcpy(bytes.data(), from.storage().data(), bytes.size_bytes());
    return tensor(bytes, from.dtype(), from.layout());
  }

  static tensor whole_numbers(random_choices& choose, const dims& shape) {
    return test::random_tensor<std::int32_t>(choose, {layout(shape), element_count(shape)});
  }

  test::silent_sink sink_;
  executor one_{{.threads = 1}};
  executor two_{{.threads = 2, .progress = &sink_}};
  executor four_{{.threads = 4}};

 private:
  test::scratch_directory directory_;
  int files_ = 0;
};

TEST_F(Scans, AreThoseOfAnIndexByIndexLoop) {
  for (std::uint64_t seed = 0; seed < test::cases(150); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const index_t longest = choose(0, 4) == 0 ? 70 : 7;
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = longest, .may_be_empty = false});
    if (shape.empty()) continue;
    const index_t axis = choose(0, shape.size() - 1);
    const tensor values = test::random_tensor<std::int32_t>(choose, shape);
    const auto numbers = elements_of<std::int32_t>(values);
    const auto lowest = went_along<std::int32_t>(numbers, shape, axis,
                                                 [](auto a, auto b) { return std::min(a, b); });
    const auto highest = went_along<std::int32_t>(numbers, shape, axis,
                                                  [](auto a, auto b) { return std::max(a, b); });
    const auto products =
        went_along<std::uint64_t>(numbers, shape, axis, [](auto a, auto b) { return a * b; });
    for (executor* on : {&one_, &two_, &four_}) {
      const executor::scope within(*on);
      const index_t given = choose(0, 1) == 0 ? axis : axis - shape.size();
      ASSERT_EQ(elements_of<std::int64_t>(eval(cumulative_sum(values, given))),
                sums_of(values, axis));
      ASSERT_EQ(
          elements_of<std::uint64_t>(eval(astype(cumulative_prod(values, given), dtype::uint64))),
          products);
      ASSERT_EQ(elements_of<std::int32_t>(eval(cummin(values, given))), lowest);
      ASSERT_EQ(elements_of<std::int32_t>(eval(cummax(values, given))), highest);
      // Into any layout, and as a part of a larger expression.
      const tensor out = test::random_tensor<std::int64_t>(choose, shape, sharing::distinct);
      eval_into(out, cumulative_sum(values, given));
      ASSERT_EQ(elements_of<std::int64_t>(out), sums_of(values, axis));
      const tensor more = eval(cumulative_sum(expr(values) * 2, given).flip({axis}) + 1);
      auto wanted = sums_of(values, axis);
      for (auto& number : wanted) number = 2 * number + 1;
      ASSERT_EQ(elements_of<std::int64_t>(eval(expr(more).flip({axis}))), wanted);
    }
  }
}

// Units along the scanned axis begin with what lies before them.
TEST_F(Scans, OfManyTilesGoOnFromTileToTile) {
  random_choices choose(1);
  const tensor line = whole_numbers(choose, {700'001});
  const tensor square = whole_numbers(choose, {900, 800});
  const tensor volume = whole_numbers(choose, {40, 90, 200});
  const tensor operands[] = {line,
                             square.swapaxes(0, 1),
                             volume.permute_dims({2, 0, 1}),
                             line.flip(),
                             line.sliced(0, {.step = 3}),
                             square,
                             square.flip({0}),
                             volume,
                             whole_numbers(choose, {90'000, 5}),
                             whole_numbers(choose, {5, 90'000}),
                             whole_numbers(choose, {2, 300'000})};
  for (const tensor& values : std::span(operands).first(test::cases(std::size(operands)))) {
    for (index_t axis = 0; axis < values.rank(); ++axis) {
      const auto wanted = sums_of(values, axis);
      for (executor* on : {&one_, &two_, &four_}) {
        const executor::scope within(*on);
        const tensor got = eval(cumulative_sum(values, axis));
        // One comparison of all bytes: sanitizers would count each element.
        ASSERT_EQ(got.storage().size_bytes(), wanted.size() * sizeof wanted[0]);
        ASSERT_EQ(std::memcmp(got.data(), wanted.data(), got.storage().size_bytes()), 0)
            << to_string(values.shape()) << ' ' << to_string(values.strides()) << " axis " << axis;
      }
    }
  }
}

TEST_F(Scans, HaveTheSameBitsForAnyThreadsAndBudget) {
  random_choices choose(2);
  const tensor numbers = whole_numbers(choose, {600, 900});
  const tensor values = in_file(eval(sin(astype(expr(numbers), dtype::float32))));
  executor tiny({.threads = 3, .memory_bytes = 1 << 20});
  for (const tensor& view : {values, values.swapaxes(0, 1)}) {
    for (const index_t axis : {0, 1}) {
      for (const expr& value : {cumulative_sum(view, axis), cumulative_prod(expr(view) + 1, axis),
                                cumulative_sum(astype(view, dtype::float64), axis)}) {
        const tensor wanted = test::run_on(one_, [&] { return eval(value); });
        for (executor* on : {&two_, &four_, &tiny})
          EXPECT_TRUE(equal_bits(test::run_on(*on, [&] { return eval(value); }), wanted));
      }
    }
  }
  EXPECT_GT(tiny.statistics().mapped_tiles, 0u);
}

TEST_F(Scans, WithoutAnAxisGoThroughRowMajorOrder) {
  random_choices choose(3);
  const tensor values = whole_numbers(choose, {30, 40});
  const tensor got = eval(cumulative_sum(expr(values.swapaxes(0, 1))));
  EXPECT_EQ(got.shape(), dims{1200});
  EXPECT_EQ(elements_of<std::int64_t>(got), sums_of(eval(expr(values.swapaxes(0, 1)).ravel()), 0));
  EXPECT_EQ(eval(cummax(tensor::full({}, 3, dtype::int32))).at({0}).to<std::int64_t>(), 3);
}

TEST_F(Scans, MayReplaceTheirOperand) {
  random_choices choose(4);
  for (const dims& shape : {dims{300'000}, dims{500, 600}}) {
    const tensor values = eval(astype(expr(whole_numbers(choose, shape)), dtype::int64));
    const tensor wanted = eval(cumulative_sum(values, 0));
    const tensor shifted = values.clone();
    eval_into(values, cumulative_sum(values, 0));
    EXPECT_TRUE(equal_bits(values, wanted));
    // Here the input is not the very elements of the output, and is copied first.
    eval_into(shifted, cumulative_sum(expr(shifted).flip({0}), 0));
    EXPECT_EQ(
        eval(all(expr(shifted).select(0, shape[0] - 1) == expr(wanted).select(0, shape[0] - 1)))
            .item(),
        scalar(true));
  }
}

// One pass reads the operand and writes the output; nothing is held as a whole.
TEST_F(Scans, WriteTheirOutputThemselves) {
  random_choices choose(5);
  const tensor values = whole_numbers(choose, {1000, 1000});
  const auto alone = explain(cumulative_sum(expr(values) + 1, 0));
  EXPECT_EQ(alone.passes, 1);
  EXPECT_EQ(alone.staged_bytes_max, 0u);
  EXPECT_EQ(alone.bytes_read, 4'000'000u);
  EXPECT_EQ(alone.bytes_written, 8'000'000u);
  EXPECT_EQ(explain(cumulative_sum(values, 0) * 2).staged_bytes_max, 8'000'000u);
}

TEST_F(Scans, GoFromTilesToTiles) {
  executor tiny({.threads = 3, .memory_bytes = 1 << 16});
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape{choose(1, 60), choose(1, 60)};
    const tensor values = whole_numbers(choose, shape);
    const index_t axis = choose(0, 1);
    const auto source = std::make_shared<tensor_tiles>(values, dims{choose(1, 20), choose(1, 20)});
    const tensor out = tensor::zeros(shape, dtype::int64);
    tensor_tiles sink(out, dims{choose(1, 20), choose(1, 20)});
    const executor::scope within(tiny);
    const expr read{std::shared_ptr<const tile_source>(source)};
    ASSERT_EQ(elements_of<std::int64_t>(eval(cumulative_sum(read, axis))), sums_of(values, axis));
    eval_into(sink, cumulative_sum(read, axis));
    ASSERT_EQ(elements_of<std::int64_t>(out), sums_of(values, axis));
    eval_into(sink, cumulative_sum(values.flip({axis}), axis));
    ASSERT_EQ(elements_of<std::int64_t>(out), sums_of(values.flip({axis}), axis));
  }
}

// The tiles that a scan reads are not replaced before all of them are read.
TEST_F(Scans, MayReplaceTheTilesThatTheyRead) {
  random_choices choose(9);
  const executor::scope within(four_);
  for (const bool flipped : {false, true}) {
    const tensor values = eval(astype(expr(whole_numbers(choose, {300, 40})), dtype::int64));
    const auto tiles = std::make_shared<tensor_tiles>(values, dims{7, 40});
    const expr read{std::shared_ptr<const tile_source>(tiles)};
    const expr sums = cumulative_sum(flipped ? read.flip({0}) : read, 0);
    const tensor wanted = eval(sums);
    eval_into(*tiles, sums);
    EXPECT_TRUE(equal_bits(values, wanted)) << flipped;
  }
}

// chain.3: units that wait for one that failed do not wait for ever.
TEST_F(Scans, EndWithTheFirstError) {
  random_choices choose(6);
  const tensor values = whole_numbers(choose, {400, 50});
  for (const index_t bad : {0, 3, 20, 39}) {
    const auto source = std::make_shared<tensor_tiles>(values, dims{10, 50}, dims{bad, 0});
    const expr read{std::shared_ptr<const tile_source>(source)};
    tensor_tiles sink(tensor::zeros({400, 50}, dtype::int64), {10, 50}, dims{bad, 0});
    for (executor* on : {&one_, &two_, &four_}) {
      const executor::scope within(*on);
      EXPECT_EQ(code_of([&] { eval(cumulative_sum(read, 0)); }), errc::corrupt);
      EXPECT_EQ(code_of([&] { eval_into(sink, cumulative_sum(values, 0)); }), errc::out_of_space);
    }
  }
}

TEST_F(Scans, CanBeCancelled) {
  class canceller final : public progress_sink {
   public:
    void advance(std::uint64_t, std::uint64_t) override {
      if (on != nullptr) on->cancel();
    }
    executor* on = nullptr;
  } sink;
  executor on({.threads = 4, .progress = &sink});
  sink.on = &on;
  random_choices choose(7);
  const tensor values = whole_numbers(choose, {3'000'000});
  const executor::scope within(on);
  EXPECT_EQ(code_of([&] { eval(cumulative_sum(values, 0)); }), errc::cancelled);
}

TEST_F(Scans, DifferencesUndoSums) {
  random_choices choose(8);
  const tensor values = whole_numbers(choose, {50, 60});
  for (const index_t axis : {0, 1, -1}) {
    const tensor back = eval(diff(cumulative_sum(values, axis), 1, axis));
    const index_t along = axis < 0 ? axis + 2 : axis;
    EXPECT_EQ(
        eval(all(expr(back) == expr(values).narrow(along, 1, values.shape(along) - 1))).item(),
        scalar(true));
  }
  const tensor cubes = eval(pow(arange(0, 8), 3));
  EXPECT_TRUE(equal_bits(eval(diff(cubes, 3)), tensor::full({5}, 6, dtype::int64)));
  EXPECT_EQ(diff(cubes, 8).shape(), dims{0});
  EXPECT_EQ(diff(cubes, 1000).shape(), dims{0});
  EXPECT_EQ(diff(cubes, 0).shape(), dims{8});
  const tensor flags = tensor::of({true, true, false});
  EXPECT_TRUE(equal_bits(eval(diff(flags)), tensor::of({false, true})));
}

TEST_F(Scans, RefuseWhatTheyDoNotDefine) {
  const tensor values = tensor::zeros({3, 4}, dtype::float32);
  EXPECT_EQ(code_of([&] { cumulative_sum(values, 2); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { cummin(tensor::zeros({3}, dtype::complex64), 0); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { cumulative_prod(tensor::zeros({3}, dtype::float8_e5m2), 0); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { diff(values, -1); }), errc::invalid_argument);
  EXPECT_EQ(diff(tensor::zeros({5000}, dtype::int32), index_t{1} << 62).shape(), dims{0});
  EXPECT_EQ(code_of([&] { diff(tensor::zeros({5000}, dtype::int32), 1001); }), errc::unsupported);
  EXPECT_EQ(code_of([&] { diff(values, 1, 2); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { diff(tensor::full({}, 1, dtype::int32)); }), errc::invalid_argument);
  EXPECT_EQ(eval(cumulative_sum(tensor::zeros({0, 4}, dtype::int8), 0)).shape(), (dims{0, 4}));
}

}  // namespace
}  // namespace shale
