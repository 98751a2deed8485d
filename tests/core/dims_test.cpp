#include "shale/dims.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "shale/error.hpp"

namespace {

using shale::dims;
using shale::index_t;

TEST(Dims, PrintsAsPythonsTuples) {
  EXPECT_EQ(to_string(dims{}), "()");
  EXPECT_EQ(to_string(dims{5}), "(5,)");
  EXPECT_EQ(to_string(dims{3, -4, 0}), "(3, -4, 0)");
}

TEST(Dims, EditsLikeAVector) {
  dims values{1, 2, 3};
  std::vector<index_t> model{1, 2, 3};
  const auto same = [&] { return std::vector<index_t>(values.begin(), values.end()) == model; };
  values.push_back(4), model.push_back(4);
  EXPECT_TRUE(same());
  values.insert(0, 9), model.insert(model.begin(), 9);
  EXPECT_TRUE(same());
  values.insert(5, 8), model.push_back(8);
  EXPECT_TRUE(same());
  values.insert(2, 7), model.insert(model.begin() + 2, 7);
  EXPECT_TRUE(same());
  values.erase(0), model.erase(model.begin());
  EXPECT_TRUE(same());
  values.erase(values.size() - 1), model.pop_back();
  EXPECT_TRUE(same());
  values.pop_back(), model.pop_back();
  EXPECT_TRUE(same());
  EXPECT_EQ(values.front(), model.front());
  EXPECT_EQ(values.back(), model.back());
  const dims copy = values;
  values.pop_back();
  EXPECT_NE(copy, values);
  EXPECT_EQ(copy.size(), values.size() + 1);
}

TEST(Dims, ComparesLengthAndEntries) {
  EXPECT_EQ((dims{1, 2}), (dims{1, 2}));
  EXPECT_NE((dims{1, 2}), (dims{1, 3}));
  EXPECT_NE((dims{1, 2}), (dims{1, 2, 3}));
  EXPECT_EQ(dims{}, dims::filled(0, 7));
}

TEST(Dims, HoldsThirtyTwoEntriesAndRefusesMore) {
  dims full = dims::filled(shale::rank_max, 1);
  EXPECT_EQ(full.size(), 32);
  const auto refuses = [](auto&& body) {
    try {
      body();
      FAIL() << "nothing was thrown";
    } catch (const shale::error& failure) {
      EXPECT_EQ(failure.code(), shale::errc::invalid_argument);
    }
  };
  refuses([&] { full.push_back(1); });
  refuses([&] { full.insert(0, 1); });
  refuses([] { dims::filled(33, 1); });
  refuses([] { dims::filled(-1, 1); });
  refuses([] {
    const std::vector<index_t> many(33, 1);
    dims{std::span<const index_t>(many)};
  });
  EXPECT_EQ(full, dims::filled(32, 1));
}

TEST(Dims, WorksInConstantExpressions) {
  constexpr index_t sum = [] {
    dims values{1, 2, 3};
    values.push_back(4);
    index_t total = 0;
    for (const index_t value : values) total += value;
    return total;
  }();
  static_assert(sum == 10);
}

}  // namespace
