// Tests kernels that compute float16 and bfloat16 in one pass. The oracles are the operators of
// float32 and the kernels of float32, between the conversions of single elements.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/kernels/blocks.hpp"
#include "shale/small_floats.hpp"

namespace shale::test {
namespace {

using ops::operation;

ops::kernel find(ops::isa isa, operation op, dtype type) {
  return ops::kernels_for(isa).operations[static_cast<int>(op)][static_cast<int>(type)];
}

template <class T>
std::vector<T> applied(ops::kernel compute, std::vector<T> a, std::vector<T> b = {}) {
  std::vector<T> out(a.size());
  std::byte* data[] = {reinterpret_cast<std::byte*>(out.data()),
                       reinterpret_cast<std::byte*>(a.data()),
                       reinterpret_cast<std::byte*>(b.data())};
  constexpr auto item = static_cast<index_t>(sizeof(T));
  const index_t one[] = {item, item, 0, 0};
  const index_t two[] = {item, item, item, 0, 0, 0};
  compute(data, b.empty() ? one : two, static_cast<index_t>(a.size()), 1);
  return out;
}

template <class T>
std::vector<T> every_value() {
  std::vector<T> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) all.push_back(bits_to<T>(bits));
  return all;
}

template <class T>
class SmallFloats : public testing::Test {};
using small_list = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(SmallFloats, small_list);

TYPED_TEST(SmallFloats, HaveTheRoundedFunctionsOfFloat32) {
  using T = TypeParam;
  const std::vector<T> values = every_value<T>();
  const std::vector<float> wide(values.begin(), values.end());
  for (const operation op : {operation::exponential, operation::hyperbolic_tangent})
    for (const ops::isa isa : usable_isas()) {
      if (isa == ops::isa::baseline) continue;
      const std::vector<T> got = applied(find(isa, op, dtype_of<T>()), values);
      const std::vector<float> wanted = applied(find(isa, op, dtype::float32), wide);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_TRUE(same(got[i], T(wanted[i])))
            << "operation " << static_cast<int>(op) << " with " << name(isa) << " of "
            << show(values[i]) << ": got " << show(got[i]) << ", wanted " << wanted[i];
    }
}

TYPED_TEST(SmallFloats, HaveTheRoundedOperatorsOfFloat32) {
  using T = TypeParam;
  const std::vector<T> values = every_value<T>();
  const struct {
    operation op;
    float (*in_float)(float, float);
  } operators[] = {{operation::add, [](float a, float b) { return a + b; }},
                   {operation::subtract, [](float a, float b) { return a - b; }},
                   {operation::multiply, [](float a, float b) { return a * b; }},
                   {operation::divide, [](float a, float b) { return a / b; }}};
  generator random(5);
  for (const T special : {T(1.0f), T(3e-5f), T(-700.0f), T(0.0f)}) {
    std::vector<T> others(values.size());
    for (T& other : others) other = random() % 2 == 0 ? special : some_value<T>(random);
    for (const auto& [op, in_float] : operators)
      for (const ops::isa isa : usable_isas()) {
        if (isa == ops::isa::baseline) continue;
        const std::vector<T> got = applied(find(isa, op, dtype_of<T>()), values, others);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const T wanted(in_float(static_cast<float>(values[i]), static_cast<float>(others[i])));
          ASSERT_TRUE(same(got[i], wanted))
              << "operation " << static_cast<int>(op) << " with " << name(isa) << " of "
              << show(values[i]) << " and " << show(others[i]) << ": got " << show(got[i])
              << ", wanted " << show(wanted);
        }
      }
  }
}

// All lengths, so that every tail is reached, and results in the place of an operand.
TYPED_TEST(SmallFloats, OfAnyLengthAreTheSameInPlace) {
  using T = TypeParam;
  generator random(6);
  for (const ops::isa isa : usable_isas()) {
    if (isa == ops::isa::baseline) continue;
    const ops::kernel add = find(isa, operation::add, dtype_of<T>());
    for (std::size_t count = 1; count < 70; ++count) {
      std::vector<T> a(count + 1), b(count + 1);
      for (std::size_t i = 0; i <= count; ++i) {
        a[i] = some_value<T>(random);
        b[i] = some_value<T>(random);
      }
      const std::vector<T> before = a;
      auto* const first = reinterpret_cast<std::byte*>(a.data());
      std::byte* data[] = {first, first, reinterpret_cast<std::byte*>(b.data())};
      constexpr auto item = static_cast<index_t>(sizeof(T));
      const index_t strides[] = {item, item, item, 0, 0, 0};
      add(data, strides, static_cast<index_t>(count), 1);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(same(a[i], T(static_cast<float>(before[i]) + static_cast<float>(b[i]))))
            << name(isa) << " " << count << " " << i;
      ASSERT_TRUE(same(a[count], before[count])) << name(isa) << " " << count;
    }
  }
}

}  // namespace
}  // namespace shale::test
