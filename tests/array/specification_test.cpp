#include "array/specification/specification.hpp"

#include "array/specification/close_names.hpp"
#include "array/test_support.hpp"
#include "shale/array_spec.hpp"

namespace shale {
namespace {

using test::code_of;

std::size_t bytes_of(const dims& chunk, dtype type) {
  std::size_t bytes = item_bytes(type);
  for (const index_t extent : chunk) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

TEST(DefaultChunkShape, HasWholePagesInARow) {
  EXPECT_EQ(default_chunk_shape({32768, 32768}, dtype::float32), (dims{128, 2048}));
  EXPECT_EQ(default_chunk_shape({32768, 32768}, dtype::uint8), (dims{128, 8192}));
}

TEST(DefaultChunkShape, IsTheWholeArrayIfThatIsSmall) {
  EXPECT_EQ(default_chunk_shape({344, 403}, dtype::float32), (dims{344, 403}));
  EXPECT_EQ(default_chunk_shape({5}, dtype::float64), (dims{5}));
  EXPECT_EQ(default_chunk_shape({}, dtype::float64), dims{});
}

TEST(DefaultChunkShape, KeepsExtentsOfEmptyAxesPositive) {
  EXPECT_EQ(default_chunk_shape({0, 7}, dtype::int8), (dims{1, 7}));
}

TEST(DefaultChunkShape, ComesCloseToItsTargetForAnyShape) {
  const std::vector<dims> shapes = {{1'000'000'000},      {3, 1'000'000},   {1'000'000, 3},
                                    {1000, 1000, 1000},   {40, 50, 60, 70}, {7, 100'000, 5},
                                    {2, 2, 2, 2, 999'999}};
  for (const dims& shape : shapes) {
    for (const dtype type : {dtype::uint8, dtype::float32, dtype::complex128}) {
      const dims chunk = default_chunk_shape(shape, type);
      EXPECT_LE(bytes_of(chunk, type), 1u << 20) << to_string(shape);
      EXPECT_GE(bytes_of(chunk, type), std::min<std::size_t>(1u << 18, bytes_of(shape, type)))
          << to_string(shape) << " " << to_string(chunk);
      for (index_t axis = 0; axis < shape.size(); ++axis) EXPECT_LE(chunk[axis], shape[axis]);
    }
  }
}

TEST(Codec, ShufflesMultiByteTypesUnlessToldOtherwise) {
  using format::stage_kind;
  const auto kinds = [](const codec_spec& spec, dtype type) {
    std::vector<stage_kind> found;
    for (const auto& stage : arrays::stages_of(spec, type)) found.push_back(stage.kind);
    return found;
  };
  EXPECT_EQ(kinds({}, dtype::float32), (std::vector{stage_kind::byte_shuffle, stage_kind::zstd}));
  EXPECT_EQ(kinds({}, dtype::uint8), std::vector{stage_kind::zstd});
  EXPECT_EQ(kinds({.compression = std::nullopt}, dtype::float32), std::vector<stage_kind>{});
  EXPECT_EQ(kinds({.shuffle = shuffle_mode::none}, dtype::float32), std::vector{stage_kind::zstd});
  EXPECT_EQ(
      kinds({.bitround = 7, .shuffle = shuffle_mode::bit, .compression = zstd(3)}, dtype::float32),
      (std::vector{stage_kind::bitround, stage_kind::bit_shuffle, stage_kind::zstd}));
  EXPECT_EQ(kinds({.compression = lz4()}, dtype::float32),
            (std::vector{stage_kind::byte_shuffle, stage_kind::lz4}));
}

TEST(Codec, IsReadBackAsItWasAskedFor) {
  const codec_spec spec{.delta = true, .shuffle = shuffle_mode::bit, .compression = zstd(9)};
  const codec_spec back = arrays::codec_spec_of(arrays::stages_of(spec, dtype::int32));
  EXPECT_EQ(back.delta, true);
  EXPECT_EQ(back.shuffle, shuffle_mode::bit);
  EXPECT_EQ(back.compression, zstd(9));
  EXPECT_EQ(back.bitround, std::nullopt);
  const codec_spec fast{.compression = lz4(12)};
  EXPECT_EQ(arrays::codec_spec_of(arrays::stages_of(fast, dtype::int32)).compression, lz4(12));
  const codec_spec rounded{
      .bitround = 5, .shuffle = shuffle_mode::none, .compression = std::nullopt};
  const codec_spec again = arrays::codec_spec_of(arrays::stages_of(rounded, dtype::float32));
  EXPECT_EQ(again.bitround, 5);
  EXPECT_EQ(again.shuffle, shuffle_mode::none);
  EXPECT_EQ(again.compression, std::nullopt);
}

TEST(FillValue, IsTheSameScalarAfterwards) {
  EXPECT_EQ(arrays::scalar_of(arrays::element_of(-3, dtype::int16), dtype::int16), scalar(-3));
  EXPECT_EQ(arrays::scalar_of(arrays::element_of(0.5, dtype::float8_e5m2), dtype::float8_e5m2),
            scalar(0.5));
  EXPECT_EQ(code_of([] { arrays::element_of(0.5, dtype::int16); }), errc::invalid_argument);
}

TEST(CloseNames, AreTheFewestEditsAway) {
  const std::vector<std::string> names = {"dem", "demo", "elevation", "slope", "den", "a/dem"};
  EXPECT_EQ(arrays::close_names("dem2", names), (std::vector<std::string>{"dem", "demo"}));
  EXPECT_EQ(arrays::close_names("elevatoin", names), std::vector<std::string>{"elevation"});
  EXPECT_TRUE(arrays::close_names("hillshade", names).empty());
}

}  // namespace
}  // namespace shale
