// Tests reducers of the positions of extrema for every dtype, layout, arrangement of states, order
// of positions and instruction set. The oracle looks at one value after the other.
#include <gtest/gtest.h>

#include <type_traits>

#include "ops/kernels/blocks.hpp"
#include "ops/kernels/expected_positions.hpp"

namespace shale::test {
namespace {

/// Whether a value wins against the best one of lower positions.
template <class T>
bool wins(T value, T best, bool largest) {
  const auto a = convert<double>(value), b = convert<double>(best);
  if (a != a || b != b) return b == b;
  if constexpr (std::is_integral_v<T>) return largest ? value > best : value < best;
  else return largest ? a > b : a < b;
}

template <class T>
element_type element_type_of() {
  return {dtype_of<T>(), [](std::byte* to, generator& random) { write(to, some_value<T>(random)); },
          [](std::byte* to, double number) { write(to, convert<T>(number)); },
          [](const std::byte* value, const std::byte* best, bool largest) {
            return wins(read<T>(value), read<T>(best), largest);
          }};
}

template <class T>
class ArgExtrema : public testing::Test {};
using all_types =
    testing::Types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                   std::uint16_t, std::uint32_t, std::uint64_t, float16, bfloat16, float, double>;
TYPED_TEST_SUITE(ArgExtrema, all_types);

TYPED_TEST(ArgExtrema, AreTheFirstOfTheBest) {
  expect_first_of_the_best(element_type_of<TypeParam>());
}

}  // namespace
}  // namespace shale::test
