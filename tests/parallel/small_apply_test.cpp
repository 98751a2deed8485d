// Tests apply over few elements, which runs by plans that the thread keeps. The oracle is the
// general way, which an executor that reports progress always takes.
#include "parallel/pass/small_apply.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "parallel/kept/form_key.hpp"
#include "parallel/kept/kept_table.hpp"
#include "parallel/kept/operand_extent.hpp"
#include "parallel/kept/thread_scratch.hpp"
#include "shale/apply.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"
#include "support/general_way.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"

namespace shale {
namespace {

using parallel::form_key;
using parallel::kept_table;
using test::code_of;
using test::random_choices;
using test::sharing;

class SmallApply : public testing::Test {
 protected:
  test::silent_sink sink_;
  executor general_{{.threads = 2, .progress = &sink_}};
  executor plain_{{.threads = 2}};
};

TEST_F(SmallApply, VisitsTheElementsThatTheGeneralWayVisits) {
  for (std::uint64_t seed = 0; seed < test::cases(600); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 6});
    const dims smaller = test::random_broadcastable(choose, shape);
    const auto out_layout = test::random_layout(choose, shape, sharing::distinct);
    const auto a_layout = test::random_layout(choose, shape);
    const auto b_layout = test::random_layout(choose, smaller);
    for (int round = 0; round < 2; ++round) {
      const tensor out = test::random_tensor<float>(choose, out_layout);
      const tensor wanted = out.clone();
      const tensor a = test::random_tensor<std::int32_t>(choose, a_layout);
      const tensor b = test::random_tensor<double>(choose, b_layout);
      const auto combine = [](float& to, std::int32_t x, double y) {
        to = to * 2 + static_cast<float>(x) - static_cast<float>(y);
      };
      test::run_on(general_, [&] { apply(combine, wanted, a, b); });
      test::run_on(plain_, [&] { apply(combine, out, a, b); });
      ASSERT_TRUE(equal_bits(out, wanted));
    }
  }
}

TEST_F(SmallApply, CopiesInputsThatOverlapAnOutput) {
  for (index_t from = 0; from < 8; ++from)
    for (int round = 0; round < 2; ++round) {
      std::vector<std::int32_t> numbers(20);
      std::iota(numbers.begin(), numbers.end(), 1);
      const tensor whole = tensor::of<std::int32_t>(numbers, {20});
      test::run_on(plain_, [&] {
        apply([](std::int32_t& to, std::int32_t x) { to += x; }, whole.narrow(0, 4, 12),
              whole.narrow(0, from, 12));
      });
      auto wanted = numbers;
      for (std::size_t i = 0; i < 12; ++i)
        wanted[4 + i] = numbers[4 + i] + numbers[static_cast<std::size_t>(from) + i];
      EXPECT_EQ(test::elements_of<std::int32_t>(whole), wanted) << from;
    }
}

TEST_F(SmallApply, RefusesWhatTheGeneralWayRefuses) {
  const tensor x = tensor::zeros({4}, dtype::float32), y = tensor::zeros({4}, dtype::float32);
  const auto add = [](float& to, float from) { to += from; };
  const executor::scope within(plain_);
  for (int round = 0; round < 2; ++round) {
    apply(add, x, y);
    EXPECT_EQ(code_of([&] { apply(add, x.as_read_only(), y); }), errc::access_denied);
    EXPECT_EQ(code_of([&] { apply(add, x.narrow(0, 0, 1).broadcast_to({4}), y); }),
              errc::invalid_argument);
    EXPECT_EQ(code_of([&] { apply(add, x.narrow(0, 0, 3), y); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { apply(add, x, tensor::zeros({4}, dtype::float64)); }),
              errc::invalid_argument);
    EXPECT_EQ(code_of([&] {
                apply([](float& a, float& b) { a = b; }, x.narrow(0, 0, 3), x.narrow(0, 1, 3));
              }),
              errc::invalid_argument);
    executor stopped;
    stopped.cancel();
    EXPECT_EQ(code_of([&] { test::run_on(stopped, [&] { apply(add, x, y); }); }), errc::cancelled);
  }
}

TEST_F(SmallApply, CountsWhatTheGeneralWayCounts) {
  const tensor x = tensor::zeros({40}, dtype::float32), y = tensor::zeros({60}, dtype::float32);
  const auto call = [&] {
    apply([](float& to, float a, float b) { to = a + b; }, x, y.narrow(0, 0, 40),
          y.narrow(0, 10, 40));
  };
  for (int round = 0; round < 2; ++round) {
    const auto version = x.storage().version();
    test::expect_same_counts(plain_, general_, call);
    EXPECT_EQ(x.storage().version(), version + 2);
  }
}

// keep.3: the callable makes calls of many other forms.
TEST_F(SmallApply, CallablesMayMakeFurtherCalls) {
  const tensor outer = tensor::zeros({3, 50}, dtype::float32).narrow(1, 0, 20);
  const tensor inner = tensor::zeros({400}, dtype::float32);
  const executor::scope within(plain_);
  index_t length = 0;
  apply(
      [&](float& to) {
        for (int more = 0; more < 6; ++more) {
          length = length % 390 + 1;
          apply([](float& x) { x += 1; }, inner.narrow(0, 0, length));
        }
        to += inner.at({0}).as<float>();
      },
      outer);
  for (index_t row = 0; row < 3; ++row)
    for (index_t column = 0; column < 20; ++column)
      EXPECT_EQ(outer.at({row, column}), scalar(6.0 * static_cast<double>(row * 20 + column + 1)));
}

TEST_F(SmallApply, OfManyThreadsAreIndependent) {
  std::vector<std::thread> threads;
  const tensor shared = tensor::full({30}, 2, dtype::float32);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const tensor own = tensor::zeros({30}, dtype::float32);
      for (int round = 0; round < 500; ++round)
        apply([](float& to, float from) { to += from; }, own, shared);
      EXPECT_EQ(own.at({29}), scalar(1000.0));
    });
  for (auto& thread : threads) thread.join();
}

// keep.1, keep.2
TEST(KeptTable, KeepsFewValuesByTheirKeys) {
  struct number {
    std::uint64_t value;
  };
  using table = kept_table<number>;
  int made = 0;
  const auto find = [&](std::uint64_t word) {
    form_key key;
    key.add(word);
    return table::find(key, [&]() -> std::unique_ptr<number> {
      ++made;
      return word % 10 == 0 ? nullptr : std::make_unique<number>(number{word});
    });
  };
  EXPECT_EQ(find(7)->value, 7U);
  EXPECT_EQ(find(7)->value, 7U);
  EXPECT_EQ(made, 1);
  EXPECT_FALSE(find(10));
  EXPECT_FALSE(find(10));
  EXPECT_EQ(made, 2);  // that there is no value is kept too
  for (std::uint64_t word = 1; word < 2000; ++word)
    EXPECT_EQ(find(word) ? find(word)->value : word, word);
  EXPECT_GT(made, 1900);
  made = 0;
  for (std::uint64_t word = 1999; word > 1900; --word) find(word);
  EXPECT_GE(made, 99 - 64);
}

// keep.3
TEST(KeptTable, DoesNotReplaceAValueInUse) {
  struct number {
    std::uint64_t value;
  };
  const auto find = [&](std::uint64_t word) {
    form_key key;
    key.add(word);
    return kept_table<number>::find(key, [&] { return std::make_unique<number>(number{word}); });
  };
  std::vector<kept_table<number>::used> held;
  std::vector<std::uint64_t> words;
  for (std::uint64_t word = 1; word < 500; ++word)
    if (auto found = find(word)) {
      held.push_back(std::move(found));
      words.push_back(word);
    }
  EXPECT_GE(held.size(), 32U);
  EXPECT_LE(held.size(), 64U);
  for (std::size_t k = 0; k < held.size(); ++k) EXPECT_EQ(held[k]->value, words[k]);
}

TEST(FormKey, ThatIsTooLongNamesNothing) {
  form_key key;
  for (std::uint64_t word = 0; word < 160; ++word) key.add(word);
  EXPECT_FALSE(key.overflown());
  key.add(dims{1});
  EXPECT_TRUE(key.overflown());
  EXPECT_FALSE(kept_table<int>::find(key, [] { return std::make_unique<int>(1); }));
}

TEST(OperandReach, CoversAllElementsOfALayout) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    random_choices choose(seed);
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = 5, .may_be_empty = false});
    const tensor values = test::random_tensor<std::int16_t>(choose, shape);
    const auto extent = parallel::extent_of(values, false);
    index_t lowest = values.offset(), highest = values.offset();
    for (const index_t position : test::positions_of(values)) {
      lowest = std::min(lowest, position);
      highest = std::max(highest, position);
    }
    EXPECT_EQ(extent.first, (lowest - values.offset()) * 2);
    EXPECT_EQ(extent.last, (highest - values.offset() + 1) * 2);
  }
}

TEST(ThreadScratch, GrowsAndIsAligned) {
  for (const std::size_t bytes : {0, 100, 5000, 70000, 100}) {
    std::byte* const scratch = parallel::thread_scratch(bytes);
    ASSERT_NE(scratch, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(scratch) % 64, 0U);
    std::fill(scratch, scratch + bytes, std::byte{1});
  }
}

}  // namespace
}  // namespace shale
