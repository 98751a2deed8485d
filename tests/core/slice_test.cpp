#include "shale/slice.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "shale/error.hpp"
#include "support/index_oracle.hpp"

namespace {

using shale::index_t;
using shale::slice;
using shale::test::index_list;

constexpr index_t top = std::numeric_limits<index_t>::max();
constexpr index_t bottom = std::numeric_limits<index_t>::min();

TEST(Slice, KeepsWhatPythonKeepsForEverySmallSlice) {
  for (index_t length = 0; length <= 5; ++length) {
    const auto whole = shale::test::index_oracle::row_major({length});
    for (index_t start = -8; start <= 8; ++start) {
      for (index_t stop = -8; stop <= 8; ++stop) {
        for (const index_t step : {-7, -3, -2, -1, 1, 2, 3, 7}) {
          // The extreme values of a bound mean that it is absent.
          slice part{.step = step};
          if (start > -8) part.start = start;
          if (stop > -8) part.stop = stop;
          const auto range = shale::resolve(part, length);
          index_list got;
          for (index_t i = 0; i < range.length; ++i) got.push_back(range.start + i * range.step);
          ASSERT_EQ(got, whole.sliced(0, part.start, part.stop, step).positions)
              << length << ": " << start << ' ' << stop << ' ' << step;
        }
      }
    }
  }
}

void expect_range(const shale::slice_range& got, index_t start, index_t length, index_t step) {
  EXPECT_EQ(got.start, start);
  EXPECT_EQ(got.length, length);
  EXPECT_EQ(got.step, step);
}

TEST(Slice, ClampsBoundsAndStepsAtTheEndsOf64Bits) {
  expect_range(shale::resolve({bottom, top, 1}, 10), 0, 10, 1);
  expect_range(shale::resolve({top, bottom, -1}, 10), 9, 10, -1);
  expect_range(shale::resolve({{}, {}, top}, 10), 0, 1, top);
  expect_range(shale::resolve({{}, {}, bottom}, 10), 9, 1, -top);
  expect_range(shale::resolve({{}, {}, 2}, top), 0, top / 2 + 1, 2);
  expect_range(shale::resolve({{}, {}, -1}, top), top - 1, top, -1);
}

TEST(Slice, EmptyRangesHaveOneForm) {
  expect_range(shale::resolve({5, 2, 3}, 10), 0, 0, 1);
  expect_range(shale::resolve({{}, {}, -1}, 0), 0, 0, 1);
}

TEST(Slice, RefusesStepZero) {
  try {
    shale::resolve({.step = 0}, 3);
    FAIL();
  } catch (const shale::error& failure) {
    EXPECT_STREQ(failure.what(),
                 "a slice cannot have step 0 [invalid_argument]\n"
                 "  wanted a positive step, or a negative one to walk backwards");
  }
}

}  // namespace
