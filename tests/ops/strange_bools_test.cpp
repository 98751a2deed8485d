// Tests bools whose bytes are neither 0 nor 1, as foreign files may contain them. Any byte but 0 is
// true.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/load_element.hpp"
#include "shale/apply.hpp"
#include "shale/functions.hpp"
#include "shale/linalg.hpp"
#include "shale/print.hpp"
#include "shale/scatter.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::random_choices;

/// The same truth values twice: as arbitrary bytes, and as bytes of 0 and 1.
struct truths {
  tensor strange;
  tensor plain;
};

truths random_truths(random_choices& choose, const dims& shape) {
  constexpr std::uint8_t bytes[] = {0, 0, 0, 1, 2, 3, 4, 127, 128, 254, 255};
  const tensor strange = tensor::empty(shape, dtype::uint8);
  const tensor plain = tensor::empty(shape, dtype::uint8);
  auto any = strange.elements<std::uint8_t>();
  auto clean = plain.elements<std::uint8_t>();
  for (std::size_t i = 0; i < any.size(); ++i) {
    any[i] = bytes[choose(0, std::size(bytes) - 1)];
    clean[i] = any[i] != 0 ? 1 : 0;
  }
  return {strange.view_as(dtype::boolean), plain.view_as(dtype::boolean)};
}

TEST(StrangeBools, AreTrueForEveryOperation) {
  using function = std::function<expr(const expr&, const expr&)>;
  const std::map<std::string, function> functions{
      {"+", [](auto a, auto b) { return a + b; }},
      {"*", [](auto a, auto b) { return a * b; }},
      {"/", [](auto a, auto b) { return a / b; }},
      {"==", [](auto a, auto b) { return a == b; }},
      {"!=", [](auto a, auto b) { return a != b; }},
      {"<", [](auto a, auto b) { return a < b; }},
      {"<=", [](auto a, auto b) { return a <= b; }},
      {">", [](auto a, auto b) { return a > b; }},
      {">=", [](auto a, auto b) { return a >= b; }},
      {"&", [](auto a, auto b) { return a & b; }},
      {"|", [](auto a, auto b) { return a | b; }},
      {"^", [](auto a, auto b) { return a ^ b; }},
      {"minimum", [](auto a, auto b) { return minimum(a, b); }},
      {"maximum", [](auto a, auto b) { return maximum(a, b); }},
      {"where", [](auto a, auto b) { return where(a, b, a); }},
      {"~", [](auto a, auto) { return ~a; }},
      {"abs", [](auto a, auto) { return abs(a); }},
      {"sqrt", [](auto a, auto) { return sqrt(a); }},
      {"isfinite", [](auto a, auto) { return isfinite(a); }},
      {"logical_not", [](auto a, auto) { return logical_not(a); }},
      {"cast uint8", [](auto a, auto) { return astype(a, dtype::uint8); }},
      {"cast int64", [](auto a, auto) { return astype(a, dtype::int64); }},
      {"cast bfloat16", [](auto a, auto) { return astype(a, dtype::bfloat16); }},
      {"cast complex", [](auto a, auto) { return astype(a, dtype::complex64); }},
      {"promoted", [](auto a, auto b) { return a + astype(b, dtype::int16); }},
      {"sum", [](auto a, auto) { return sum(a); }},
      {"sum 0", [](auto a, auto) { return sum(a, dims{0}); }},
      {"sum 1", [](auto a, auto) { return sum(a, dims{1}); }},
      {"prod 0", [](auto, auto b) { return prod(where(b, b, b), dims{0}); }},
      {"prod", [](auto a, auto) { return prod(a.narrow(1, 0, 1), dims{1}); }},
      {"mean", [](auto a, auto) { return mean(a); }},
      {"mean 0", [](auto a, auto) { return mean(a, dims{0}); }},
      {"var 0", [](auto a, auto) { return var(a, dims{0}); }},
      {"stddev 1", [](auto a, auto) { return stddev(a, dims{1}); }},
      {"min 0", [](auto a, auto) { return min(a.narrow(0, 0, 2), dims{0}); }},
      {"min 1", [](auto a, auto) { return min(a.narrow(1, 0, 2), dims{1}); }},
      {"max 0", [](auto a, auto) { return max(a.narrow(0, 0, 2), dims{0}); }},
      {"max 1", [](auto a, auto) { return max(a.narrow(1, 0, 2), dims{1}); }},
      {"any 0", [](auto a, auto) { return any(a, dims{0}); }},
      {"all 0", [](auto a, auto) { return all(a.narrow(0, 0, 2), dims{0}); }},
      {"count", [](auto a, auto) { return count_nonzero(a); }},
  };
  random_choices choose(1);
  for (const dims& shape : {dims{37, 129}, dims{3, 5000}, dims{5000, 3}}) {
    const truths a = random_truths(choose, shape), b = random_truths(choose, shape);
    for (const auto& [name, compute] : functions) {
      SCOPED_TRACE(name + " of shape " + to_string(shape));
      ASSERT_TRUE(equal_bits(eval(compute(a.strange, b.strange)), eval(compute(a.plain, b.plain))));
      // The strides force packing.
      const auto turned = [](const tensor& x) { return x.swapaxes(0, 1).flip({1}); };
      ASSERT_TRUE(
          equal_bits(eval(compute(turned(a.strange).clone().swapaxes(0, 1), b.strange.flip({1}))),
                     eval(compute(turned(a.plain).clone().swapaxes(0, 1), b.plain.flip({1})))));
    }
  }
}

TEST(StrangeBools, AreTrueInProducts) {
  random_choices choose(2);
  const truths a = random_truths(choose, {60, 3}), b = random_truths(choose, {3, 70});
  EXPECT_TRUE(equal_bits(matmul(a.strange, b.strange), matmul(a.plain, b.plain)));
  const truths wide = random_truths(choose, {70, 3});
  EXPECT_TRUE(equal_bits(matmul(a.strange, wide.strange.swapaxes(0, 1)),
                         matmul(a.plain, wide.plain.swapaxes(0, 1))));
  for (index_t row = 0; row < 60; ++row)
    EXPECT_EQ(dot(a.strange.select(0, row), b.strange.select(1, row)).item(),
              dot(a.plain.select(0, row), b.plain.select(1, row)).item());
}

TEST(StrangeBools, AreTrueForCallablesThatOnlyReadThem) {
  random_choices choose(3);
  const truths a = random_truths(choose, {300, 7});
  for (const auto& [strange, plain] :
       {std::pair(a.strange, a.plain),
        std::pair(a.strange.sliced(0, {.step = 3}), a.plain.sliced(0, {.step = 3}))}) {
    tensor by_value = tensor::zeros(strange.shape(), dtype::int32);
    tensor by_reference = by_value.clone();
    const auto counted = [](bool value) { return value ? 1 : 10; };
    apply([&](std::int32_t& to, bool value) { to = counted(value); }, by_value, strange);
    apply_into(
        by_reference, [&](const bool& value) -> std::int32_t { return counted(value); }, strange);
    const tensor wanted = eval(astype(10 - 9 * astype(plain, dtype::int32), dtype::int32));
    EXPECT_TRUE(equal_bits(by_value, wanted));
    EXPECT_TRUE(equal_bits(by_reference, wanted));
    const auto sum_of = [](const tensor& operand) {
      return reduce(
          operand, std::int64_t{0}, [](std::int64_t& to, bool value) { to += value ? 1 : 0; },
          [](std::int64_t& to, std::int64_t other) { to += other; });
    };
    EXPECT_EQ(scalar(sum_of(strange)), eval(count_nonzero(plain)).item());
  }
}

// As for_each.hpp says.
TEST(StrangeBools, AreReadAsBytesInSegmentsAndLanes) {
  random_choices choose(5);
  const truths a = random_truths(choose, {300, 7});
  std::int64_t wanted = 0;
  const tensor zeros_and_ones = a.plain.view_as(dtype::uint8);
  for (const std::uint8_t byte : zeros_and_ones.elements<std::uint8_t>()) wanted += byte;
  std::atomic<std::int64_t> in_segments = 0, in_lanes = 0;
  for_each_segment<const std::uint8_t>(
      [&](std::span<const std::uint8_t> bytes) {
        for (const std::uint8_t byte : bytes) in_segments += byte != 0 ? 1 : 0;
      },
      a.strange.view_as(dtype::uint8));
  for_each_lane<const std::uint8_t>(
      0,
      [&](lane<const std::uint8_t> bytes) {
        for (index_t i = 0; i < bytes.size; ++i) in_lanes += bytes[i] != 0 ? 1 : 0;
      },
      a.strange.view_as(dtype::uint8));
  EXPECT_EQ(in_segments, wanted);
  EXPECT_EQ(in_lanes, wanted);
}

// The result of a sum is a bool that is computed, and so its byte is 0 or 1.
TEST(StrangeBools, AreTrueInSumsAtIndices) {
  using bytes = std::vector<std::uint8_t>;
  const tensor values = tensor::of<std::uint8_t>({0, 0, 7, 2, 1}).view_as(dtype::boolean);
  const tensor indices = tensor::of<std::int64_t>({0, 1, 2, 3, 4});
  for (const auto add : {&scatter_add, &index_add}) {
    const tensor out = tensor::of<std::uint8_t>({0, 2, 0, 255, 4, 2});
    add(out.view_as(dtype::boolean), 0, indices, values);
    EXPECT_EQ(test::elements_of<std::uint8_t>(out), (bytes{0, 1, 1, 1, 1, 2}));
  }
}

TEST(StrangeBools, AreTrueOneByOne) {
  random_choices choose(4);
  const truths a = random_truths(choose, {40});
  EXPECT_EQ(to_string(a.strange), to_string(a.plain));
  for (index_t i = 0; i < 40; ++i) {
    EXPECT_EQ(a.strange.at({i}), a.plain.at({i}));
    EXPECT_EQ(scalar(detail::load_element<bool>(a.strange.data() + i)), a.plain.at({i}));
    EXPECT_EQ(a.strange.at({i}).to_string(), a.plain.at({i}).to_string());
  }
}

}  // namespace
}  // namespace shale
