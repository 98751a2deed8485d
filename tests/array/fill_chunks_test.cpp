// Tests chunks that hold nothing but the fill value: they take no space.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <bit>
#include <cmath>
#include <random>

#include "array/test_support.hpp"
#include "shale/container.hpp"

namespace shale {
namespace {

using test::counting;
using test::findings_of;

class FillChunks : public test::fresh_container {
 protected:
  // Without compression, so that each stored chunk takes the bytes of its elements.
  static array_spec raw(dtype type, const dims& shape, const dims& chunk, const scalar& fill = 0) {
    return {.dtype = type,
            .shape = shape,
            .kind = array_kind::chunked,
            .chunk_shape = chunk,
            .codec = {.shuffle = shuffle_mode::none, .compression = std::nullopt},
            .fill_value = fill};
  }

  static array_spec rounded(const dims& shape, const dims& chunk, int bits, const scalar& fill) {
    array_spec spec = raw(dtype::float32, shape, chunk, fill);
    spec.codec = {.bitround = bits};
    return spec;
  }

  std::uint64_t file_bytes() const {
    struct stat facts {};
    EXPECT_EQ(::stat(path_.c_str(), &facts), 0);
    return static_cast<std::uint64_t>(facts.st_size);
  }

  std::uint64_t chunks() const { return file_.verify().chunks; }

  template <class Body>
  void change(Body body) {
    transaction next = file_.begin();
    body(next);
    next.commit();
  }
};

constexpr std::size_t mib = 1 << 20;

// chunks.2: when nobody can read the old generation any more, other elements get the space.
TEST_F(FillChunks, GiveTheirSpaceBack) {
  const dims shape{8, mib};
  write_new("a", raw(dtype::uint8, shape, {1, mib}, 9), counting(shape, dtype::uint8));
  EXPECT_EQ(chunks(), 8u);
  EXPECT_GT(file_bytes(), 8 * mib);
  change([](transaction& next) { next.update("a").write(expr(9)); });
  EXPECT_EQ(chunks(), 0u);
  EXPECT_EQ(at("a").stored_bytes(), 0u);
  for (int i = 0; i < 2; ++i)
    change([&](transaction& next) { next.set_attribute("a", "round", std::to_string(i)); });
  const std::uint64_t before = file_bytes();
  write_new("b", raw(dtype::uint8, shape, {1, mib}), counting(shape, dtype::uint8));
  EXPECT_LT(file_bytes(), before + mib / 4);
  EXPECT_EQ(at("a").read().at({7, 12345}), scalar(9));
  EXPECT_EQ(findings_of(file_), "");
}

// The space of a chunk that the same transaction had stored is free at once.
TEST_F(FillChunks, OfOneTransactionNeverReachTheFile) {
  const dims shape{4, mib};
  const tensor values = counting(shape, dtype::uint8);
  change([&](transaction& next) {
    const writable_array a = next.create("a", raw(dtype::uint8, shape, {1, mib}));
    for (int i = 0; i < 10; ++i) {
      a.write(region::all(shape), values);
      a.write(expr(0));
    }
  });
  EXPECT_EQ(chunks(), 0u);
  EXPECT_LT(file_bytes(), 5 * mib);
}

// Each row stores the chunk again, and the space of the chunk before it is used again.
TEST_F(FillChunks, AndChunksStoredInPartsLeaveNoSpaceBehind) {
  const dims shape{64, mib / 64};
  change([&](transaction& next) {
    const writable_array a = next.create("a", raw(dtype::uint8, shape, shape));
    for (index_t row = 0; row < 64; ++row)
      a.write({{row, 0}, {1, shape[1]}}, counting({1, shape[1]}, dtype::uint8));
  });
  EXPECT_EQ(chunks(), 1u);
  EXPECT_LT(file_bytes(), 4 * mib);
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(FillChunks, PartsMakeAChunkAbsentTogether) {
  write_new("a", raw(dtype::int32, {16, 16}, {8, 8}), counting({16, 16}, dtype::int32));
  EXPECT_EQ(chunks(), 4u);
  const tensor zeros = tensor::zeros({8, 4}, dtype::int32);
  change([&](transaction& next) { next.update("a").write({{0, 0}, {8, 4}}, zeros); });
  EXPECT_EQ(chunks(), 4u);
  change([&](transaction& next) { next.update("a").write({{0, 4}, {8, 4}}, zeros); });
  EXPECT_EQ(chunks(), 3u);
  EXPECT_EQ(at("a").stored_bytes(), 3u * 8 * 8 * 4);
  // It comes back with the fill value around what is written.
  change([&](transaction& next) {
    next.update("a").write({{3, 3}, {1, 1}}, counting({1, 1}, dtype::int32));
  });
  EXPECT_EQ(chunks(), 4u);
  const tensor stored = at("a").read();
  for (index_t i = 0; i < 8; ++i)
    for (index_t j = 0; j < 8; ++j)
      ASSERT_EQ(stored.at({i, j}), scalar(i == 3 && j == 3 ? test::number_at(0) : 0));
}

TEST_F(FillChunks, AppearWhereAResizeCutsAllOtherElementsOff) {
  write_new("a", raw(dtype::int32, {8, 8}, {8, 8}), expr(0));
  change([&](transaction& next) {
    next.update("a").write({{6, 0}, {2, 8}}, counting({2, 8}, dtype::int32));
  });
  EXPECT_EQ(chunks(), 1u);
  change([](transaction& next) { next.resize("a", {6, 8}); });
  EXPECT_EQ(chunks(), 0u);
  EXPECT_EQ(at("a").stored_bytes(), 0u);
  change([](transaction& next) { next.resize("a", {20, 8}); });
  EXPECT_TRUE(equal_bits(at("a").read(), tensor::zeros({20, 8}, dtype::int32)));
  change([](transaction& next) { next.append("a", zeros({5, 8}, dtype::int32)); });
  EXPECT_EQ(chunks(), 0u);
  EXPECT_EQ(findings_of(file_), "");
}

// An oracle counts the chunks that have an element with other bits than the fill value.
TEST_F(FillChunks, AreAllChunksWithoutAnotherElement) {
  constexpr index_t rows = 20, columns = 18, side = 5;
  std::vector<std::int16_t> oracle(rows * columns, -3);
  write_new("a", raw(dtype::int16, {rows, columns}, {side, side}, -3), expr(-3));
  std::mt19937 random(7);
  const auto below = [&](index_t n) { return static_cast<index_t>(random()) % n; };
  for (int round = 0; round < 60; ++round) {
    const bool commits = below(5) != 0;
    std::vector<std::int16_t> next_oracle = oracle;
    transaction next = file_.begin();
    const writable_array a = next.update("a");
    for (index_t writes = below(4); writes >= 0; --writes) {
      const region part{{below(rows), below(columns)}, {}};
      const dims extent{below(rows - part.start[0]) + 1, below(columns - part.start[1]) + 1};
      const int value = below(3) == 0 ? static_cast<int>(below(50)) : -3;
      const auto element = static_cast<std::int16_t>(value);
      a.write({part.start, extent}, tensor::of({element}));
      for (index_t i = 0; i < extent[0]; ++i)
        for (index_t j = 0; j < extent[1]; ++j)
          next_oracle[static_cast<std::size_t>((part.start[0] + i) * columns + part.start[1] + j)] =
              element;
    }
    if (commits) next.commit();
    else next.abort();
    if (commits) oracle = next_oracle;
    std::uint64_t wanted = 0;
    for (index_t top = 0; top < rows; top += side)
      for (index_t left = 0; left < columns; left += side) {
        bool other = false;
        for (index_t i = top; i < std::min(rows, top + side); ++i)
          for (index_t j = left; j < std::min(columns, left + side); ++j)
            other = other || oracle[static_cast<std::size_t>(i * columns + j)] != -3;
        wanted += other ? 1 : 0;
      }
    ASSERT_EQ(chunks(), wanted) << round;
    ASSERT_EQ(at("a").stored_bytes(), wanted * side * side * 2) << round;
    const tensor stored = at("a").read();
    ASSERT_TRUE(
        std::equal(oracle.begin(), oracle.end(), stored.elements<const std::int16_t>().begin()));
  }
  EXPECT_EQ(findings_of(file_), "");
}

// chunks.2: 1.001 has the bits of 1 after four bits of mantissa.
TEST_F(FillChunks, AreFoundAfterTheMantissasAreRounded) {
  write_new("a", rounded({64}, {16}, 4, 1.0f), expr(1.001f));
  EXPECT_EQ(chunks(), 0u);
  EXPECT_EQ(at("a").read().at({5}), scalar(1.0f));
  change([](transaction& next) { next.update("a").write({{20}, {1}}, tensor::of({1.2f})); });
  EXPECT_EQ(chunks(), 1u);
  change([](transaction& next) { next.update("a").write({{20}, {1}}, tensor::of({0.9999f})); });
  EXPECT_EQ(chunks(), 0u);
  EXPECT_EQ(at("a").stored_bytes(), 0u);
}

// Three bits of mantissa cannot hold 0.1, so chunks of what it is rounded to must be stored.
TEST_F(FillChunks, AreNoChunksThatOnlyRoundAsTheFillValueDoes) {
  write_new("a", rounded({16}, {16}, 3, 0.1f), expr(0.1001f));
  EXPECT_EQ(chunks(), 1u);
  EXPECT_NE(at("a").read().at({3}), scalar(0.1f));
  change([](transaction& next) { next.update("a").write(expr(0.1f)); });
  EXPECT_EQ(chunks(), 0u);
  EXPECT_EQ(at("a").read().at({3}), scalar(0.1f));
}

// Zeros of the other sign, and NaNs of other bits, are other elements, with bitround and without.
TEST_F(FillChunks, AreNoChunksOfOtherBits) {
  const float nan = std::bit_cast<float>(0x7fc00001u);
  const float other = std::bit_cast<float>(0x7fc00002u);
  const auto bits_of = [&](const char* name) {
    return std::bit_cast<std::uint32_t>(at(name).read().elements<const float>()[7]);
  };
  for (const bool rounds : {false, true}) {
    const auto spec = [&](const scalar& fill) {
      return rounds ? rounded({8}, {8}, 5, fill) : raw(dtype::float32, {8}, {8}, fill);
    };
    change([&](transaction& next) {
      next.create("zero", spec(0.0f)).write(expr(tensor::of({-0.0f})));
      next.create("minus", spec(-0.0f)).write(expr(tensor::of({0.0f})));
      next.create("nan", spec(nan)).write(expr(tensor::of({other})));
    });
    EXPECT_EQ(chunks(), 3u);
    EXPECT_EQ(bits_of("zero"), 0x80000000u);
    EXPECT_EQ(bits_of("minus"), 0u);
    EXPECT_EQ(bits_of("nan"), 0x7fc00002u);
    change([&](transaction& next) {
      next.update("nan").write(expr(tensor::of({nan})));
      next.update("zero").write(expr(tensor::of({0.0f})));
      next.remove("minus");
    });
    EXPECT_EQ(chunks(), 0u);
    EXPECT_EQ(bits_of("nan"), 0x7fc00001u);
    change([](transaction& next) {
      next.remove("nan");
      next.remove("zero");
    });
  }
}

}  // namespace
}  // namespace shale
