// Tests argmin and argmax of expressions: over random layouts, dtypes and axes, in every way of the
// engine. The oracle looks at one element after the other.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/ops.hpp"
#include "support/failures.hpp"
#include "support/general_way.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;

/// The positions of the extrema of row-major values along an axis; of all values without an axis.
template <class T>
std::vector<std::int64_t> positions(const std::vector<T>& values, const dims& shape,
                                    std::optional<index_t> axis, bool largest) {
  index_t before = 1, along = 1, after = 1;
  for (index_t k = 0; k < shape.size(); ++k)
    (!axis || k == *axis ? along : k < *axis ? before : after) *= shape[k];
  std::vector<std::int64_t> result;
  for (index_t i = 0; i < before; ++i) {
    for (index_t j = 0; j < after; ++j) {
      const auto at = [&](index_t k) {
        return static_cast<double>(values[static_cast<std::size_t>((i * along + k) * after + j)]);
      };
      index_t best = 0;
      for (index_t k = 1; k < along; ++k) {
        if (std::isnan(at(best))) break;
        if (std::isnan(at(k)) || (largest ? at(k) > at(best) : at(k) < at(best))) best = k;
      }
      result.push_back(best);
    }
  }
  return result;
}

class ArgReductions : public testing::Test {
 protected:
  template <class T>
  void expect_positions(const tensor& values, std::optional<index_t> axis, keepdims keep) {
    const auto elements = elements_of<T>(values);
    for (const bool largest : {false, true}) {
      const expr value = largest ? argmax(values, axis, keep) : argmin(values, axis, keep);
      ASSERT_EQ(value.dtype(), dtype::int64);
      dims shape;
      for (index_t k = 0; k < values.rank(); ++k) {
        const bool folded = !axis || *axis == k;
        if (!folded || keep == keepdims::yes) shape.push_back(folded ? 1 : values.shape(k));
      }
      ASSERT_EQ(value.shape(), shape);
      const auto wanted = positions(elements, values.shape(), axis, largest);
      for (executor* on : {&plain_, &general_, &many_}) {
        const executor::scope within(*on);
        ASSERT_EQ(elements_of<std::int64_t>(eval(value)), wanted)
            << to_string(values.shape()) << ' ' << to_string(values.strides()) << " axis "
            << (axis ? *axis : -1) << (largest ? " max" : " min");
      }
    }
  }

  test::silent_sink sink_;
  executor plain_{{.threads = 1}};
  executor general_{{.threads = 2, .progress = &sink_}};
  executor many_{{.threads = 4, .progress = &sink_}};
};

template <class T>
void add_special(random_choices& choose, const tensor& values) {
  if constexpr (std::is_floating_point_v<T>) {
    auto* elements = reinterpret_cast<T*>(const_cast<std::byte*>(values.storage().data()));
    const auto count = static_cast<index_t>(values.storage().size_bytes() / sizeof(T));
    const T special[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                         -std::numeric_limits<T>::infinity(), T(-0.0), T(0)};
    for (index_t k = choose(0, 3); k > 0 && count > 0; --k)
      elements[choose(0, count - 1)] = special[choose(0, 4)];
  }
}

TEST_F(ArgReductions, AreThoseOfAnIndexByIndexLoop) {
  for (std::uint64_t seed = 0; seed < test::cases(600); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const index_t longest = choose(0, 4) == 0 ? 60 : 7;
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = longest, .may_be_empty = false});
    std::optional<index_t> axis;
    if (!shape.empty() && choose(0, 2) > 0) axis = choose(0, shape.size() - 1);
    const keepdims keep = choose(0, 1) == 0 ? keepdims::no : keepdims::yes;
    const auto check = [&]<class T>(std::type_identity<T>) {
      const tensor values = test::random_tensor<T>(choose, shape);
      add_special<T>(choose, values);
      expect_positions<T>(values, axis, keep);
    };
    switch (choose(0, 3)) {
      case 0:
        check(std::type_identity<std::uint8_t>{});
        break;
      case 1:
        check(std::type_identity<std::int32_t>{});
        break;
      case 2:
        check(std::type_identity<float>{});
        break;
      default:
        check(std::type_identity<double>{});
    }
    if (HasFatalFailure()) return;
  }
}

// Many units, whose positions begin anywhere.
TEST_F(ArgReductions, OfManyTilesCountFromTheFirstElement) {
  random_choices choose(1);
  const tensor values = test::random_tensor<float>(choose, {layout({600, 500}), 600 * 500});
  const tensor volume = values.view({20, 30, 500});
  const index_t places[] = {157'777, 0, 1, 300'000 - 1};
  for (const index_t lowest : std::span(places).first(test::cases(std::size(places)))) {
    values.elements<float>()[static_cast<std::size_t>(lowest)] -= 1000;
    for (const tensor& view : {values, values.swapaxes(0, 1), values.flip({0}), volume,
                               volume.permute_dims({2, 0, 1}), values.sliced(1, {.step = 3})}) {
      expect_positions<float>(view, std::nullopt, keepdims::no);
      for (index_t axis = 0; axis < view.rank(); ++axis)
        expect_positions<float>(view, axis, keepdims::no);
      if (HasFatalFailure()) return;
    }
  }
}

// A fold that reads positions walks in another order. Sums must not notice.
TEST_F(ArgReductions, LeaveTheBitsOfSumsAlone) {
  random_choices choose(2);
  const tensor values =
      eval(sqrt(expr(test::random_tensor<float>(choose, {layout({500, 600}), 500 * 600}))));
  const expr turned = expr(values.swapaxes(0, 1));
  const executor::scope within(general_);
  const std::vector<expr> together{argmin(turned), sum(turned), min(turned), mean(turned),
                                   argmax(turned)};
  const std::vector<tensor> got = eval_all(together);
  for (std::size_t k = 0; k < together.size(); ++k)
    EXPECT_TRUE(equal_bits(got[k], eval(together[k]))) << k;
}

// They share the pass of other reductions whose results do not depend on the order.
TEST_F(ArgReductions, ArePartOfOnePassWithExtrema) {
  random_choices choose(3);
  const tensor values = test::random_tensor<float>(choose, {layout({50, 60}), 50 * 60});
  const expr both = astype(argmax(values, 1), dtype::float32) + max(values, dims{1});
  EXPECT_EQ(explain(both).passes, 2);
}

TEST_F(ArgReductions, RefuseWhatHasNoExtremum) {
  const tensor none = tensor::zeros({3, 0}, dtype::float32);
  EXPECT_EQ(code_of([&] { argmin(none); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { argmax(none, 1); }), errc::invalid_argument);
  EXPECT_EQ(eval(argmin(none, 0)).shape(), dims{0});
  EXPECT_EQ(code_of([&] { argmin(tensor::zeros({3}, dtype::complex64)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { argmin(tensor::zeros({3}, dtype::float32), 1); }),
            errc::invalid_argument);
  EXPECT_EQ(eval(argmax(tensor::full({}, 3, dtype::int32))).at({}).to<std::int64_t>(), 0);
}

}  // namespace
}  // namespace shale
