// Views of tensors: the same rules as layouts (tests/core/layout_test.cpp), over real elements.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "shale/error.hpp"
#include "shale/index_entry.hpp"
#include "shale/tensor.hpp"
#include "support/random_tensors.hpp"
#include "support/view_chain.hpp"

namespace shale {
namespace {

using test::index_list;
using test::index_oracle;

tensor counting(const dims& shape) {
  tensor result = tensor::empty(shape, dtype::int32);
  std::int32_t next = 0;
  for (auto& element : result.elements<std::int32_t>()) element = next++;
  return result;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    return failure.what();
  }
  return "nothing was thrown";
}

std::optional<tensor> try_view(const tensor& source, const dims& shape) {
  try {
    return source.view(shape);
  } catch (const error&) {
    return std::nullopt;
  }
}

TEST(TensorView, ChainsNameTheElementsTheyMean) {
  test::random_choices choose(3);
  for (int chain = 0; chain < 4000; ++chain) {
    const index_t positions = choose(1, 200);
    const tensor whole = counting({positions});
    tensor view = whole;
    auto oracle = index_oracle::row_major({positions});
    for (int step = 0; step < 6; ++step) {
      const auto next = test::random_step(choose, oracle.shape, {.storage_positions = positions});
      const auto wanted = test::apply_step(oracle, next);
      const auto got = test::apply_step(
          view, next, try_view,
          [](const tensor& source, const dims& shape, const dims& strides, index_t offset) {
            return source.as_strided(shape, strides, offset);
          });
      ASSERT_EQ(got.has_value(), wanted.has_value()) << next.line();
      if (!wanted) {
        // If strides cannot express the shape, reshape copies.
        const tensor copy = view.reshape(test::to_dims(next.numbers));
        ASSERT_FALSE(copy.storage().shares_owner_with(whole.storage()));
        const auto elements = test::elements_of<std::int32_t>(copy);
        ASSERT_EQ(index_list(elements.begin(), elements.end()), oracle.positions);
        continue;
      }
      if (next.operation == "view") {
        ASSERT_TRUE(view.reshape(test::to_dims(next.numbers)).is_set_to(*got));
      }
      view = *got;
      oracle = *wanted;
      ASSERT_EQ(test::to_list(view.shape()), oracle.shape) << next.line();
      ASSERT_TRUE(view.storage().shares_owner_with(whole.storage()));
      std::size_t number = 0;
      test::for_each_index(oracle.shape, [&](const index_list& index) {
        // Element i of the storage is the number i.
        ASSERT_EQ(view.at(index), scalar(oracle.positions[number++])) << next.line();
      });
    }
  }
}

TEST(TensorIndex, FollowsNumPysBasicIndexing) {
  const tensor x = counting({2, 3, 4});
  const auto expect = [](const tensor& got, const index_oracle& wanted) {
    ASSERT_EQ(test::to_list(got.shape()), wanted.shape);
    const auto elements = test::elements_of<std::int32_t>(got);
    EXPECT_EQ(index_list(elements.begin(), elements.end()), wanted.positions);
  };
  const auto whole = index_oracle::row_major({2, 3, 4});
  expect(x.index({}), whole);
  expect(x.index({ellipsis}), whole);
  expect(x.index({1}), whole.select(0, 1));
  expect(x.index({-1, ellipsis, 2}), whole.select(0, 1).select(1, 2));
  expect(x.index({ellipsis, slice{.step = -1}}), whole.flip({2}));
  expect(x.index({newaxis, ellipsis, newaxis}), whole.expand_dims(0).expand_dims(4));
  expect(x.index({slice{1, 2}, newaxis, 0}), whole.narrow(0, 1, 1).select(1, 0).expand_dims(1));
  expect(x.index({1, 2, 3, ellipsis}), whole.select(0, 1).select(0, 2).select(0, 3));
  expect(x.index({0, ellipsis, 1, newaxis, slice{{}, {}, 2}}),
         whole.select(0, 0).select(0, 1).keeping(0, {0, 2}).expand_dims(0));
}

TEST(TensorIndex, DropsAxesBeforeItAddsOthers) {
  const tensor full = tensor::zeros(dims::filled(rank_max, 1), dtype::uint8);
  EXPECT_EQ(full.index({newaxis, 0}).rank(), rank_max);
  EXPECT_EQ(full.index({0, newaxis}).rank(), rank_max);
  EXPECT_NE(message_of([&] { full.index({newaxis, newaxis, 0}); }), "nothing was thrown");
}

TEST(TensorIndex, RefusesPositionsBeyond64Bits) {
  const tensor x = counting({3});
  const auto refuses = [&](index_entry entry) {
    EXPECT_EQ(message_of([&] { x.index({entry}); }).substr(0, 18), "index out of range");
  };
  refuses(std::numeric_limits<std::uint64_t>::max());
  refuses(std::uint64_t{1} << 63);
  refuses((std::uint64_t{1} << 63) - 1);
  refuses(std::numeric_limits<index_t>::min());
  EXPECT_EQ(x.index({std::uint64_t{2}}).item(), scalar(2));
  EXPECT_EQ(x.index({std::int8_t{-1}}).item(), scalar(2));
}

TEST(TensorIndex, RefusesTooMuch) {
  const tensor x = counting({2, 3});
  EXPECT_EQ(message_of([&] {
              x.index({0, 0, 0});
            }),
            "too many indices [invalid_argument]\n"
            "  got 3, wanted at most 2 for shape (2, 3)");
  EXPECT_EQ(message_of([&] {
              x.index({ellipsis, ellipsis});
            }),
            "only one ellipsis can stand in an index [invalid_argument]\n"
            "  got 2: it would be unclear which axes each one covers");
  EXPECT_EQ(message_of([&] { x.index({2}); }),
            "index out of range [invalid_argument]\n"
            "  got index 2, but axis 0 has 2 positions");
}

TEST(TensorPieces, SplitCutsByLengthAndChunkByCount) {
  const tensor x = counting({7, 2});
  const auto lengths = [](const std::vector<tensor>& pieces, index_t axis) {
    index_list result;
    for (const auto& piece : pieces) result.push_back(piece.shape(axis));
    return result;
  };
  EXPECT_EQ(lengths(x.split(3), 0), (index_list{3, 3, 1}));
  EXPECT_EQ(lengths(x.split(7), 0), (index_list{7}));
  EXPECT_EQ(lengths(x.split(std::numeric_limits<index_t>::max()), 0), (index_list{7}));
  EXPECT_EQ(lengths(x.chunk(3), 0), (index_list{3, 3, 1}));
  EXPECT_EQ(lengths(x.chunk(4), 0), (index_list{2, 2, 2, 1}));
  EXPECT_EQ(lengths(x.chunk(5), 0), (index_list{2, 2, 2, 1}));  // fewer pieces than requested
  EXPECT_EQ(lengths(x.chunk(9, -1), 1), (index_list{1, 1}));
  EXPECT_EQ(lengths(counting({0, 2}).split(3), 0), (index_list{0}));
  EXPECT_EQ(lengths(counting({0, 2}).chunk(3), 0), (index_list{0}));
  EXPECT_EQ(x.split(3)[2].at({0, 1}), scalar(13));
  EXPECT_EQ(message_of([&] { x.split(0); }),
            "pieces need a positive length [invalid_argument]\n  got 0");
  EXPECT_NE(message_of([&] { x.chunk(0); }), "nothing was thrown");
}

TEST(TensorPieces, UnbindGivesEveryPosition) {
  const auto columns = counting({2, 3}).unstack(-1);
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(test::elements_of<std::int32_t>(columns[1]), (std::vector<std::int32_t>{1, 4}));
  EXPECT_EQ(counting({0, 3}).unstack().size(), 0u);
}

TEST(TensorPieces, TooManyAreOutOfMemory) {
  const tensor repeated = counting({1}).broadcast_to({index_t{1} << 60});
  const auto code_of = [](auto&& body) -> std::optional<errc> {
    try {
      body();
    } catch (const error& failure) {
      return failure.code();
    }
    return std::nullopt;
  };
  EXPECT_EQ(code_of([&] { repeated.unstack(); }), errc::out_of_memory);
  EXPECT_EQ(code_of([&] { repeated.split(1); }), errc::out_of_memory);
  EXPECT_EQ(code_of([&] { repeated.chunk(index_t{1} << 59); }), errc::out_of_memory);
  EXPECT_EQ(repeated.chunk(2).size(), 2u);
}

TEST(TensorViewAs, ReinterpretsBytesAsNumPyDoes) {
  const tensor wide =
      tensor::of<std::uint32_t>({0x04030201u, 0x08070605u, 0x0c0b0a09u, 0x100f0e0du});
  const tensor bytes = wide.view({2, 2}).view_as(dtype::uint8);
  EXPECT_EQ(bytes.shape(), (dims{2, 8}));
  EXPECT_EQ(bytes.strides(), (dims{8, 1}));
  EXPECT_EQ(bytes.at({1, 2}), scalar(11));
  EXPECT_TRUE(bytes.view_as(dtype::uint32).is_set_to(wide.view({2, 2})));
  // For equal widths, any layout is allowed.
  const tensor reversed = wide.flip().view_as(dtype::float32);
  EXPECT_EQ(reversed.strides(), dims{-1});
  // Offsets and strides scale with the last axis.
  const tensor corner = wide.view({2, 2}).index({slice{1, 2}, slice{1, 2}}).view_as(dtype::uint16);
  EXPECT_EQ(corner.shape(), (dims{1, 2}));
  EXPECT_EQ(corner.at({0, 0}), scalar(0x0e0d));
  const tensor halves = wide.view_as(dtype::uint16).narrow(0, 2, 4).view_as(dtype::uint32);
  EXPECT_EQ(halves.offset(), 1);
  EXPECT_EQ(halves.shape(), dims{2});
  EXPECT_EQ(tensor::empty({0, 16}, dtype::uint8).view_as(dtype::float64).shape(), (dims{0, 2}));
}

TEST(TensorViewAs, RefusesWhatDoesNotScale) {
  const tensor x = counting({4, 6});
  const auto refused = [](const std::function<void()>& body) {
    const std::string text = message_of(body);
    return text.substr(0, text.rfind('\n'));  // without the line with the geometry
  };
  EXPECT_EQ(refused([&] { x.swapaxes(0, 1).view_as(dtype::uint8); }),
            "int32 cannot be viewed as uint8 [invalid_argument]\n"
            "  the last axis has gaps between its elements");
  EXPECT_EQ(refused([&] { x.narrow(1, 0, 5).view_as(dtype::float64); }),
            "int32 cannot be viewed as float64 [invalid_argument]\n"
            "  the last axis is not a multiple of the wider dtype");
  EXPECT_EQ(refused([&] { x.narrow(1, 1, 4).view_as(dtype::float64); }),
            "int32 cannot be viewed as float64 [invalid_argument]\n"
            "  the offset is not a multiple of the wider dtype");
  EXPECT_EQ(refused([&] {
              counting({4, 5}).narrow(1, 0, 4).view_as(dtype::float64);
            }),
            "int32 cannot be viewed as float64 [invalid_argument]\n"
            "  a stride is not a multiple of the wider dtype");
  EXPECT_EQ(refused([&] { x.select(0, 0).select(0, 0).view_as(dtype::uint8); }),
            "int32 cannot be viewed as uint8 [invalid_argument]\n"
            "  rank 0 has no last axis to scale");
}

TEST(TensorAsStrided, StaysInsideTheStorage) {
  const tensor x = counting({10});
  EXPECT_EQ(x.as_strided({4, 4}, {2, 1}, 0).at({3, 3}), scalar(9));
  EXPECT_EQ(x.as_strided({3}, {-4}, 9).at({2}), scalar(1));
  EXPECT_EQ(x.as_strided({0}, {1}, 1000).size(), 0);
  EXPECT_EQ(message_of([&] {
              x.as_strided({4, 4}, {2, 1}, 1);
            }),
            "an element lies outside its storage [invalid_argument]\n"
            "  shape (4, 4), strides (2, 1) and offset 1 reach positions 1 to 10\n"
            "  the storage holds 10 elements of int32 (40 bytes)");
  EXPECT_NE(message_of([&] { x.as_strided({2}, {-1}, 0); }), "nothing was thrown");
  EXPECT_NE(message_of([&] { x.as_strided({2}, {index_t{1} << 61}, 0); }), "nothing was thrown");
  EXPECT_NE(message_of([&] {
              x.as_strided({0, 2}, {1, index_t{1} << 61}, 0);
            }),
            "nothing was thrown");
}

TEST(TensorAsStrided, IgnoresStridesThatAreNeverUsed) {
  const tensor x = counting({10});
  for (const index_t stride : {std::numeric_limits<index_t>::max(),
                               std::numeric_limits<index_t>::min(), index_t{1} << 61}) {
    const tensor one = x.as_strided({1}, {stride}, 7);
    EXPECT_EQ(one.item(), scalar(7));
    EXPECT_EQ(one.flip().broadcast_to({3}).clone().at({2}), scalar(7));
    EXPECT_EQ(x.as_strided({1, 2}, {stride, 1}, 3).at({0, 1}), scalar(4));
    EXPECT_EQ(x.as_strided({0, 1}, {stride, stride}, 3).size(), 0);
  }
}

TEST(TensorView, SaysWhatStridesCannotExpress) {
  EXPECT_EQ(message_of([] {
              counting({2, 3}).swapaxes(0, 1).view({6});
            }),
            "strides cannot express the view [invalid_argument]\n"
            "  got shape (6,) over shape (3, 2) with strides (1, 3)\n"
            "  use `reshape`, which copies if necessary");
}

}  // namespace
}  // namespace shale
