// Tests passes over mapped files that exceed the memory budget and have different storage orders.
// The oracles are loops over indices.
#include "parallel/pass/pass_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "parallel/ways/way.hpp"
#include "shale/apply.hpp"
#include "shale/mapped_file.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::elements_of;
using test::random_choices;
using test::random_tensor;
using test::sharing;

class PassLoop : public testing::Test {
 protected:
  // The same elements and layout in a file of its own.
  tensor in_file(const tensor& from) {
    const std::string path = directory_ / std::to_string(files_++);
    storage bytes = create_file(path, from.storage().size_bytes());
    std::memcpy(bytes.data(), from.storage().data(), bytes.size_bytes());
    return tensor(bytes, from.dtype(), from.layout());
  }

  // Shapes whose rows are longer than a cache line.
  static dims some_shape(random_choices& choose) {
    dims shape{choose(17, 70), choose(17, 70)};
    for (index_t more = choose(0, 2); more > 0; --more)
      shape.insert(choose(0, shape.size()), choose(1, 5));
    return shape;
  }

  // Makes a row-major tensor in a file of its own.
  template <class T>
  tensor matrix(random_choices& choose, index_t rows, index_t columns) {
    return in_file(random_tensor<T>(choose, {layout({rows, columns}), rows * columns}));
  }

  executor on_{{.threads = 2, .memory_bytes = 8 << 10}};
  executor::scope within_{on_};

 private:
  test::scratch_directory directory_;
  int files_ = 0;
};

// pass.2
TEST_F(PassLoop, ApplyMatchesAnIndexByIndexLoop) {
  for (std::uint64_t seed = 0; seed < test::cases(80); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = some_shape(choose);
    const tensor y = in_file(random_tensor<float>(choose, shape, sharing::distinct));
    const tensor a =
        in_file(random_tensor<float>(choose, test::random_broadcastable(choose, shape)));
    const tensor b = random_tensor<std::int16_t>(choose, test::random_broadcastable(choose, shape));
    const auto left = elements_of<float>(a);
    const auto right = elements_of<std::int16_t>(b);
    const auto left_at = test::broadcast_positions(a.shape(), shape);
    const auto right_at = test::broadcast_positions(b.shape(), shape);
    auto expected = test::bytes_of(y.storage());
    const auto at = test::positions_of(y);
    for (std::size_t i = 0; i < at.size(); ++i) {
      float value = 0;
      std::memcpy(&value, expected.data() + at[i] * 4, 4);
      value += 2 * left[static_cast<std::size_t>(left_at[i])] -
               static_cast<float>(right[static_cast<std::size_t>(right_at[i])]);
      std::memcpy(expected.data() + at[i] * 4, &value, 4);
    }
    apply([](float& to, float x, std::int16_t z) { to += 2 * x - static_cast<float>(z); }, y, a, b);
    ASSERT_EQ(test::bytes_of(y.storage()), expected);
  }
  EXPECT_GT(on_.statistics().mapped_tiles, 0u);
}

TEST_F(PassLoop, ApplyReadsWhatItWritesOnce) {
  random_choices choose(1);
  const tensor y = matrix<float>(choose, 96, 80);
  const tensor x = matrix<float>(choose, 80, 96);
  const auto old = elements_of<float>(y);
  const auto other = elements_of<float>(x.swapaxes(0, 1));
  const auto before = on_.statistics().mapped_tiles;
  // The same elements twice share their copy.
  apply([](const float& same, float& to, float z) { to = 3 * same + z; }, y, y, x.swapaxes(0, 1));
  const auto now = elements_of<float>(y);
  for (std::size_t i = 0; i < now.size(); ++i) ASSERT_EQ(now[i], 3 * old[i] + other[i]);
  EXPECT_GT(on_.statistics().mapped_tiles, before);
}

// pass.1
TEST_F(PassLoop, OverlappingOperandsAreReadAsTheyWere) {
  executor on({.threads = 2, .memory_bytes = 40 << 10});
  const executor::scope within(on);
  random_choices choose(2);
  const tensor y = matrix<std::int32_t>(choose, 90, 90);
  const tensor x = matrix<std::int32_t>(choose, 90, 90);
  const auto old = elements_of<std::int32_t>(y);
  const auto other = elements_of<std::int32_t>(x);
  apply([](std::int32_t& to, std::int32_t turned, std::int32_t z) { to += 2 * turned - z; }, y,
        y.swapaxes(0, 1), x.swapaxes(0, 1));
  const auto now = elements_of<std::int32_t>(y);
  for (std::size_t i = 0; i < 90; ++i)
    for (std::size_t j = 0; j < 90; ++j)
      ASSERT_EQ(now[i * 90 + j], old[i * 90 + j] + 2 * old[j * 90 + i] - other[j * 90 + i]);
  EXPECT_GT(on.statistics().mapped_tiles, 0u);
}

TEST_F(PassLoop, LanesMatchAnIndexByIndexLoop) {
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = some_shape(choose);
    const index_t axis = choose(0, shape.size() - 1);
    const tensor y = in_file(random_tensor<std::int32_t>(choose, shape, sharing::distinct));
    const tensor x =
        in_file(random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, shape)));
    auto expected = elements_of<std::int32_t>(y);
    const auto from = elements_of<std::int32_t>(x.broadcast_to(shape));
    // Each element becomes a sum along its lane: of one operand from the start, of the other from
    // the end.
    const index_t length = shape[axis];
    index_t step = 1;
    for (index_t inner = shape.size() - 1; inner > axis; --inner) step *= shape[inner];
    for (index_t i = 0; i < element_count(shape); ++i) {
      const index_t along = i / step % length;
      auto& element = expected[static_cast<std::size_t>(i)];
      if (along > 0) element += expected[static_cast<std::size_t>(i - step)];
      element += from[static_cast<std::size_t>(i + (length - 1 - 2 * along) * step)];
    }
    for_each_lane<std::int32_t, const std::int32_t>(
        axis,
        [](lane<std::int32_t> to, lane<const std::int32_t> other) {
          for (index_t i = 0; i < to.size; ++i)
            to[i] += (i > 0 ? to[i - 1] : 0) + other[other.size - 1 - i];
        },
        y, x);
    ASSERT_EQ(elements_of<std::int32_t>(y), expected);
  }
  EXPECT_GT(on_.statistics().mapped_tiles, 0u);
}

// The lanes of a tensor along `axis` of `shape`, which has length 1 there. An element is found by
// its lane's number in row-major order and its place in the lane. The tensor is broadcast to
// `shape`.
class walked_lanes {
 public:
  walked_lanes(const tensor& values, dims shape, index_t axis)
      : elements_(elements_of<std::int32_t>(values)) {
    const index_t own = axis - (shape.size() - values.rank());
    length = own < 0 ? 1 : values.shape()[own];
    shape[axis] = length;
    at_ = test::broadcast_positions(values.shape(), shape);
    for (index_t inner = axis + 1; inner < shape.size(); ++inner) step_ *= shape[inner];
  }

  index_t position(index_t lane, index_t place) const {
    const index_t i = (lane / step_ * length + place) * step_ + lane % step_;
    return at_[static_cast<std::size_t>(i)];
  }
  std::int32_t at(index_t lane, index_t place) const {
    return elements_[static_cast<std::size_t>(position(lane, place))];
  }

  index_t length = 0;

 private:
  std::vector<std::int32_t> elements_;
  test::index_list at_;
  index_t step_ = 1;
};

TEST_F(PassLoop, LanesMayDifferInLength) {
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape = some_shape(choose);
    const index_t axis = choose(0, shape.size() - 1);
    const auto with_lanes = [&] {
      dims own = shape;
      own[axis] = choose(0, 3) == 0 ? choose(0, 2) : choose(1, 30);
      return own;
    };
    const auto placed = [&](const tensor& values) {
      return values.size() > 0 && choose(0, 2) > 0 ? in_file(values) : values;
    };
    const tensor y = placed(random_tensor<std::int32_t>(choose, with_lanes(), sharing::distinct));
    const tensor x = placed(
        random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, with_lanes())));
    const tensor z = placed(
        random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, with_lanes())));
    shape[axis] = 1;
    const walked_lanes before(y, shape, axis), left(x, shape, axis), right(z, shape, axis);
    std::vector<std::int32_t> expected(static_cast<std::size_t>(y.size()));
    for (index_t lane = 0; lane < element_count(shape); ++lane)
      for (index_t i = 0; i < before.length; ++i) {
        std::int32_t value = before.at(lane, i);
        for (index_t j = 0; j < left.length; ++j) value += (i + 2 * j) % 7 * left.at(lane, j);
        for (index_t j = 0; j < right.length; ++j) value -= (i + j) % 5 * right.at(lane, j);
        expected[static_cast<std::size_t>(before.position(lane, i))] = value;
      }
    std::atomic<index_t> lanes = 0;
    for_each_lane<std::int32_t, const std::int32_t, const std::int32_t>(
        axis,
        [&](lane<std::int32_t> to, lane<const std::int32_t> a, lane<const std::int32_t> b) {
          ++lanes;
          for (index_t i = 0; i < to.size; ++i) {
            for (index_t j = 0; j < a.size; ++j) to[i] += (i + 2 * j) % 7 * a[j];
            for (index_t j = 0; j < b.size; ++j) to[i] -= (i + j) % 5 * b[j];
          }
        },
        y, x, z);
    ASSERT_EQ(elements_of<std::int32_t>(y), expected);
    ASSERT_EQ(lanes, element_count(shape));
  }
  EXPECT_GT(on_.statistics().mapped_tiles, 0u);
}

TEST_F(PassLoop, OtherAxesThanThatOfTheLanesAreBroadcastOnly) {
  const tensor y = tensor::zeros({3, 4}, dtype::int32);
  const auto lanes_with = [&](const tensor& x) {
    for_each_lane<std::int32_t, const std::int32_t>(
        1, [](lane<std::int32_t>, lane<const std::int32_t>) {}, y, x);
  };
  lanes_with(tensor::zeros({3, 9}, dtype::int32));
  lanes_with(tensor::zeros({9}, dtype::int32));
  EXPECT_THROW(lanes_with(tensor::zeros({2, 4}, dtype::int32)), error);
  EXPECT_THROW(lanes_with(tensor::zeros({2, 3, 4}, dtype::int32)), error);
}

// An input that overlaps an output is copied first.
TEST_F(PassLoop, LanesOfDifferentLengthsMayOverlap) {
  const tensor all = tensor::zeros({5, 9}, dtype::int32);
  std::iota(all.elements<std::int32_t>().begin(), all.elements<std::int32_t>().end(), 0);
  for_each_lane<std::int32_t, const std::int32_t>(
      1,
      [](lane<std::int32_t> to, lane<const std::int32_t> from) {
        for (index_t i = 0; i < to.size; ++i) to[i] = from[i] + from[i + 1] + from[i + 2];
      },
      all.narrow(1, 1, 7), all);
  for (index_t row = 0; row < 5; ++row)
    for (index_t i = 0; i < 9; ++i)
      EXPECT_EQ(all.elements<std::int32_t>()[static_cast<std::size_t>(9 * row + i)],
                i == 0 || i == 8 ? 9 * row + i : 3 * (9 * row + i))
          << row << ", " << i;
}

// way.1
TEST_F(PassLoop, FixedUnitsDoNotDependOnTheBudget) {
  int with_loads = 0;
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape{choose(300, 700), choose(300, 700)};
    std::vector<parallel::loop_operand> operands;
    for (int k = 0; k < 2; ++k)
      operands.push_back({in_file(random_tensor<float>(choose, shape, sharing::distinct)), false});
    const parallel::pass_options options{.coordinates = choose(0, 3) == 0, .fixed_units = true};
    const executor large({.threads = 1});
    const parallel::way wanted = parallel::choose_way(operands, options, large);
    EXPECT_FALSE(wanted.loads);
    for (const std::size_t budget : {100u << 10, 1u << 20, 2u << 20}) {
      const executor small({.threads = 3, .memory_bytes = budget});
      const parallel::way got = parallel::choose_way(operands, options, small);
      EXPECT_FALSE(got.plan_per_unit);
      EXPECT_EQ(got.units.tile_shape(), wanted.units.tile_shape());
      EXPECT_EQ(got.units.shape(), wanted.units.shape());
      EXPECT_EQ(got.units.has_square_blocks(), wanted.units.has_square_blocks());
      for (int k = 0; k < 2; ++k)
        EXPECT_EQ(got.units.strides_bytes(k), wanted.units.strides_bytes(k));
      if (!got.loads) continue;
      ++with_loads;
      // A load consists of whole units.
      for (index_t axis = 0; axis < got.units.rank(); ++axis)
        EXPECT_TRUE(got.loads->tile_shape()[axis] % got.units.tile_shape()[axis] == 0 ||
                    got.loads->tile_shape()[axis] == got.units.shape()[axis]);
    }
  }
  EXPECT_GT(with_loads, 0);
}

// pass.3
TEST_F(PassLoop, EachUnitRunsOnce) {
  random_choices choose(4);
  const tensor a = matrix<float>(choose, 700, 500);
  const tensor b = matrix<float>(choose, 500, 700);
  executor on({.threads = 3, .memory_bytes = 1 << 20});
  parallel::pass_loop loop({{a, false}, {b.swapaxes(0, 1), false}}, {.fixed_units = true}, on);
  std::vector<std::atomic<int>> runs(static_cast<std::size_t>(loop.unit_count()));
  std::atomic<index_t> elements = 0;
  loop.run([&](const parallel::unit& here) {
    ++runs[static_cast<std::size_t>(here.number)];
    here.for_each_block(
        [&](auto&&, auto&&, index_t inner, index_t outer, auto&&) { elements += inner * outer; });
  });
  for (const auto& each : runs) EXPECT_EQ(each, 1);
  EXPECT_EQ(elements, 700 * 500);
  EXPECT_GT(on.statistics().mapped_tiles, 0u);
}

}  // namespace
}  // namespace shale
