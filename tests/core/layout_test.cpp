// Compares the view rules with lists of positions (tests/support/index_oracle.hpp).
#include "shale/layout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "shale/error.hpp"
#include "support/index_oracle.hpp"
#include "support/random_layouts.hpp"
#include "support/shrinking_choice.hpp"
#include "support/view_chain.hpp"

namespace shale {

// In this namespace RapidCheck and GoogleTest find it.
void showValue(const layout& view, std::ostream& out) {
  out << "shape " << to_string(view.shape()) << ", strides " << to_string(view.strides())
      << ", offset " << view.offset();
}
void PrintTo(const layout& view, std::ostream* out) { showValue(view, *out); }
void PrintTo(const dims& values, std::ostream* out) { *out << to_string(values); }

namespace {

using test::index_list;
using test::index_oracle;

constexpr index_t top = std::numeric_limits<index_t>::max();

// Empty if `got` names the same elements as `wanted`, else the difference.
std::string difference(const layout& got, const index_oracle& wanted) {
  if (test::to_list(got.shape()) != wanted.shape) return "shape " + to_string(got.shape());
  if (got.size() != static_cast<index_t>(wanted.positions.size())) return "size";
  if (got.empty()) return got.extent() ? "an extent of an empty layout" : "";
  const auto strides = wanted.strides();
  if (!strides) return "the oracle has no strides";
  for (index_t axis = 0; axis < got.rank(); ++axis)
    if (got.shape()[axis] > 1 && got.strides()[axis] != (*strides)[static_cast<std::size_t>(axis)])
      return "strides " + to_string(got.strides());
  if (got.offset() != wanted.positions.front()) return "offset " + std::to_string(got.offset());
  std::size_t number = 0;
  std::string wrong;
  test::for_each_index(wanted.shape, [&](const index_list& index) {
    if (got.position(index) != wanted.positions[number++]) wrong = "position";
  });
  const auto [first, last] = std::minmax_element(wanted.positions.begin(), wanted.positions.end());
  const auto extent = got.extent();
  if (!extent || extent->first != *first || extent->last != *last) return "extent";
  bool dense = true;
  for (std::size_t k = 0; k < wanted.positions.size(); ++k)
    dense = dense && wanted.positions[k] == wanted.positions.front() + static_cast<index_t>(k);
  if (got.is_contiguous() != dense) return "is_contiguous";
  return wrong;
}

void check_chain(index_t steps) {
  auto first = test::random_layout(test::shrinking_choice);
  layout view = first.geometry;
  index_oracle oracle = index_oracle::strided(test::to_list(view.shape()),
                                              test::to_list(view.strides()), view.offset());
  for (index_t step = 0; step < steps; ++step) {
    const auto next = test::random_step(test::shrinking_choice, oracle.shape,
                                        {.storage_positions = first.positions});
    RC_LOG(next.line());
    const auto wanted = apply_step(oracle, next);
    const auto got = apply_step(view, next);
    RC_ASSERT(got.has_value() == wanted.has_value());
    if (!got) continue;
    view = *got;
    oracle = *wanted;
    RC_ASSERT(difference(view, oracle) == "");
  }
}

RC_GTEST_PROP(Layout, ChainsOfViewsNameTheElementsTheyMean, ()) { check_chain(8); }

TEST(Layout, ManyChainsOfViewsNameTheElementsTheyMean) {
  test::random_choices choose(20240817);
  std::vector<int> taken(2);
  for (int chain = 0; chain < 20000; ++chain) {
    const auto first = test::random_layout(choose);
    layout view = first.geometry;
    auto oracle = index_oracle::strided(test::to_list(view.shape()), test::to_list(view.strides()),
                                        view.offset());
    std::string history;
    for (int step = 0; step < 6; ++step) {
      const auto next =
          test::random_step(choose, oracle.shape, {.storage_positions = first.positions});
      history += next.line() + "; ";
      const auto wanted = apply_step(oracle, next);
      const auto got = apply_step(view, next);
      ASSERT_EQ(got.has_value(), wanted.has_value()) << history;
      ++taken[got.has_value()];
      if (!got) continue;
      view = *got;
      oracle = *wanted;
      ASSERT_EQ(difference(view, oracle), "") << history;
    }
  }
  // The chains must contain views that only a copy can make.
  EXPECT_GT(taken[0], 1000);
  EXPECT_GT(taken[1], 50000);
}

// Tries every shape of up to three axes with up to four positions, with every stride of a set that
// contains the dense ones, and views it as every shape with the same number of elements.
TEST(Layout, ViewsExactlyWhatSomeStridesCanExpress) {
  const index_list choices{-4, -2, -1, 0, 1, 2, 3, 4, 6, 12};
  int expressible = 0, inexpressible = 0;
  const auto check = [&](const index_list& shape, const index_list& strides) {
    const layout old(test::to_dims(shape), test::to_dims(strides), 100);
    const auto oracle = index_oracle::strided(shape, strides, 100);
    const index_t count = test::product(shape);
    const auto try_shape = [&](const index_list& wanted) {
      const auto viewed = oracle.reshaped(wanted);
      const auto got = old.view(test::to_dims(wanted));
      const bool can = viewed.strides().has_value();
      ASSERT_EQ(got.has_value(), can);
      if (can) {
        ASSERT_EQ(difference(*got, viewed), "");
      }
      ++(can ? expressible : inexpressible);
    };
    try_shape({count});
    for (index_t a = 1; a <= count; ++a) {
      if (count % a != 0) continue;
      try_shape({a, count / a});
      for (index_t b = 1; b <= count / a; ++b)
        if (count / a % b == 0) try_shape({a, b, count / a / b});
    }
    try_shape({1, count, 1, 1});
  };
  for (const index_t a : {1, 2, 3, 4}) {
    for (const index_t s : choices) check({a}, {s});
    for (const index_t b : {1, 2, 3, 4}) {
      for (const index_t s : choices)
        for (const index_t t : choices) check({a, b}, {s, t});
      for (const index_t c : {1, 2, 3})
        for (const index_t s : choices)
          for (const index_t t : choices)
            for (const index_t u : {-1, 0, 1, 2}) check({a, b, c}, {s, t, u});
    }
  }
  EXPECT_GT(expressible, 10000);
  EXPECT_GT(inexpressible, 10000);
}

RC_GTEST_PROP(Layout, BroadcastShapesAreWhatBothExpandTo, ()) {
  const dims shape = test::random_shape(test::shrinking_choice);
  const dims a = test::random_broadcastable(test::shrinking_choice, shape);
  const dims b = test::random_broadcastable(test::shrinking_choice, shape);
  const dims both = broadcast_shapes(a, b);
  RC_ASSERT(both == broadcast_shapes(b, a));
  RC_ASSERT(layout(a).broadcast_to(both).shape() == both);
  RC_ASSERT(layout(b).broadcast_to(both).shape() == both);
  RC_ASSERT(layout(both).broadcast_to(broadcast_shapes(both, shape)).shape() == shape);
}

// ---- the rules, in examples -------------------------------------------------------------

TEST(Layout, FreshStridesSkipEmptyAxes) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (dims{12, 4, 1}));
  EXPECT_EQ(row_major_strides({2, 0, 4}), (dims{4, 4, 1}));
  EXPECT_EQ(row_major_strides({}), dims{});
  EXPECT_EQ(layout().size(), 1);
  EXPECT_EQ(layout({0, 3}).size(), 0);
}

TEST(Layout, ContiguityIgnoresAxesOfLengthOneAndHoldsForEmptyLayouts) {
  EXPECT_TRUE(layout({2, 1, 3}, {3, 99, 1}, 5).is_contiguous());
  EXPECT_FALSE(layout({2, 3}, {4, 1}, 0).is_contiguous());
  EXPECT_FALSE(layout({2, 3}, {1, 2}, 0).is_contiguous());
  EXPECT_TRUE(layout({0, 3}, {-7, 5}, 0).is_contiguous());
  EXPECT_TRUE(layout().is_contiguous());
}

TEST(Layout, IsBroadcastWhereALongAxisHasStrideZero) {
  EXPECT_TRUE(layout({3}, {0}, 0).is_broadcast());
  EXPECT_FALSE(layout({1}, {0}, 0).is_broadcast());
  EXPECT_FALSE(layout({0}, {0}, 0).is_broadcast());
}

TEST(Layout, InfersOneExtent) {
  EXPECT_EQ(infer_shape({2, -1}, 6), (dims{2, 3}));
  EXPECT_EQ(infer_shape({-1}, 0), (dims{0}));
  EXPECT_EQ(infer_shape({}, 1), dims{});
}

TEST(Layout, NarrowCountsAStartFromTheEnd) {
  EXPECT_EQ(layout({5}).narrow(0, -2, 2).offset(), 3);
  EXPECT_EQ(layout({5}).narrow(0, 5, 0).size(), 0);
}

template <class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    return failure.what();
  }
  return "nothing was thrown";
}

TEST(Layout, RefusalsNameWhatWasGotAndWanted) {
  const layout six({2, 3});
  EXPECT_EQ(message_of([&] { six.select(2, 0); }),
            "axis out of range [invalid_argument]\n"
            "  got axis 2 of rank 2, wanted -2 to 1");
  EXPECT_EQ(message_of([&] { six.select(-1, 3); }),
            "index out of range [invalid_argument]\n"
            "  got index 3, but axis 1 has 3 positions");
  EXPECT_EQ(message_of([&] { six.narrow(1, 2, 2); }),
            "a range lies outside its axis [invalid_argument]\n"
            "  got 2 positions from 2, but axis 1 has 3 positions");
  EXPECT_EQ(message_of([&] {
              broadcast_shapes({4, 2, 3}, {5, 3});
            }),
            "shapes do not broadcast [invalid_argument]\n"
            "  (4, 2, 3) and (5, 3): axis -2 has 2 and 5 positions\n"
            "  aligned right, extents must be equal or one of them 1");
  EXPECT_EQ(message_of([&] {
              six.broadcast_to({4, 3});
            }),
            "only an axis of length 1 can be expanded [invalid_argument]\n"
            "  got (4, 3) from (2, 3): axis 0 would go from 2 to 4");
  EXPECT_EQ(message_of([&] {
              six.view({4, -1});
            }),
            "a shape does not fit the elements [invalid_argument]\n"
            "  got (4, -1), but 6 elements are not a multiple of 4");
}

TEST(Layout, RefusesArgumentsThatDoNotFit) {
  const layout six({2, 3});
  const layout none({0, 3});
  const auto refuses = [](auto&& body) { EXPECT_NE(message_of(body), "nothing was thrown"); };
  refuses([&] { layout({2, -3}); });
  refuses([&] { layout({2}, {1, 1}, 0); });
  refuses([&] { layout().select(0, 0); });
  refuses([&] { none.select(0, 0); });
  refuses([&] { six.narrow(0, 0, -1); });
  refuses([&] { six.narrow(0, -3, 1); });
  refuses([&] { six.narrow(0, 3, 0); });
  refuses([&] { six.sliced(0, {.step = 0}); });
  refuses([&] { six.permute_dims({0}); });
  refuses([&] { six.permute_dims({0, -2}); });
  refuses([&] { six.moveaxis(0, 2); });
  refuses([&] { six.squeeze(0); });
  refuses([&] { six.expand_dims(1).squeeze({1, 0}); });
  refuses([&] { six.expand_dims(1).squeeze({1, -2}); });
  refuses([&] { six.expand_dims(3); });
  refuses([&] { six.expand_dims(-4); });
  refuses([&] { six.broadcast_to({3}); });
  refuses([&] { six.broadcast_to({-1, 2, 3}); });
  refuses([&] { six.view({-1, -1}); });
  refuses([&] { six.view({5}); });
  refuses([&] { six.view({-2, -3}); });
  refuses([&] { none.view({0, -1}); });
  refuses([&] { six.unfold(0, 3, 1); });
  refuses([&] { six.unfold(0, 1, 0); });
  refuses([&] { six.unfold(0, -1, 1); });
  refuses([&] { six.diagonal(0, 1, -1); });
  refuses([&] { six.flip({0, -2}); });
  refuses([&] { static_cast<void>(six.position(index_list{1})); });
  refuses([&] { static_cast<void>(six.position(index_list{0, 3})); });
  refuses([&] { layout(dims::filled(32, 1)).expand_dims(0); });
  refuses([&] { layout(dims::filled(32, 1)).unfold(0, 1, 1); });
}

// ---- the ends of 64 bits -----------------------------------------------------------------------

TEST(Layout, RefusesElementsAndPositionsBeyond64Bits) {
  const auto refuses = [](auto&& body) { EXPECT_NE(message_of(body), "nothing was thrown"); };
  refuses([] { element_count({index_t{1} << 40, index_t{1} << 40}); });
  EXPECT_EQ(element_count({index_t{1} << 40, index_t{1} << 40, 0}), 0);
  // The extent of 0 makes the number of elements 0, but strides in front of it still overflow.
  refuses([] { row_major_strides({0, index_t{1} << 40, index_t{1} << 40}); });
  refuses([] { layout({3}, {top / 2 + 1}, 0); });
  refuses([] { layout({2}, {top}, 1); });
  refuses([] { layout({2}, {std::numeric_limits<index_t>::min()}, top); });
  refuses([] { layout({3, 3}, {top / 4, -top / 2}, 0); });  // the ends are too far apart
  refuses([] { layout({0, 3}, {1, top / 2 + 1}, 0); });     // a view could still go there
  refuses([] { layout({1}).broadcast_to({index_t{1} << 40, index_t{1} << 40}); });
}

TEST(Layout, ViewsOfExtremeLayoutsStayInRange) {
  const layout wide({3}, {top / 2}, 0);
  EXPECT_EQ(wide.flip().position(index_list{2}), 0);
  EXPECT_EQ(wide.sliced(0, {.step = -2}).strides()[0], -(top / 2) * 2);
  EXPECT_EQ(wide.sliced(0, {.step = -2}).flip().position(index_list{1}), top / 2 * 2);
  // Strides of axes with one position are never used, so steps of any size are allowed.
  EXPECT_EQ(wide.sliced(0, {.step = top}).position(index_list{0}), 0);
  EXPECT_EQ(wide.sliced(0, {.step = std::numeric_limits<index_t>::min()}).offset(), top / 2 * 2);
  EXPECT_EQ(wide.unfold(0, 3, top).position(index_list{0, 2}), top / 2 * 2);
  // Windows of length 0 begin at each position and after the last, even if that position
  // overflows.
  const layout ends({2}, {index_t{1} << 62}, 0);
  EXPECT_EQ(ends.unfold(0, 0, 1).shape(), (dims{3, 0}));
  EXPECT_EQ(ends.unfold(0, 0, 2).shape(), (dims{2, 0}));
  EXPECT_EQ(ends.unfold(0, 0, top).shape(), (dims{1, 0}));
  EXPECT_NE(message_of([] { layout({top}, {0}, 0).unfold(0, 0, 1); }), "nothing was thrown");
  EXPECT_EQ(layout({top}, {0}, 0).unfold(0, 0, 2).shape(), (dims{top / 2 + 1, 0}));
  const layout corner({2, 2}, {top / 4, top / 4}, 0);
  EXPECT_EQ(corner.diagonal().position(index_list{1}), top / 4 * 2);
  const layout far({1, 1}, {top, top}, top);
  EXPECT_EQ(far.diagonal(1).size(), 0);
  EXPECT_EQ(far.diagonal().offset(), top);
  EXPECT_EQ(far.expand_dims(0).expand_dims(3).view({1}).value().offset(), top);
}

}  // namespace
}  // namespace shale
