#include "notation/codec_text.hpp"

#include <gtest/gtest.h>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

TEST(CodecText, NamesExactlyTheStagesThatRun) {
  const codec_spec codec = parse_codec("zstd:3,shuffle");
  EXPECT_EQ(codec.compression, zstd(3));
  EXPECT_EQ(codec.shuffle, shuffle_mode::byte);
  EXPECT_FALSE(codec.delta);
  EXPECT_FALSE(codec.bitround);
}

TEST(CodecText, LeavesOutWhatIsNotNamed) {
  const codec_spec codec = parse_codec("zstd");
  EXPECT_EQ(codec.compression, zstd(1));
  EXPECT_EQ(codec.shuffle, shuffle_mode::none);
  EXPECT_EQ(parse_codec("lz4").compression, lz4(1));
  const codec_spec raw = parse_codec("raw");
  EXPECT_EQ(raw.compression, std::nullopt);
  EXPECT_EQ(raw.shuffle, shuffle_mode::none);
}

TEST(CodecText, PrintsStagesInTheOrderInWhichTheyRun) {
  EXPECT_EQ(format_codec(parse_codec("zstd:9,bitshuffle,delta,bitround:12"), dtype::float32),
            "bitround:12,delta,bitshuffle,zstd:9");
  EXPECT_EQ(format_codec(parse_codec("lz4:12,shuffle"), dtype::float32), "shuffle,lz4:12");
  EXPECT_EQ(format_codec(parse_codec("raw"), dtype::float32), "raw");
}

TEST(CodecText, DefaultShufflesWideTypesOnly) {
  EXPECT_EQ(format_codec({}, dtype::float32), "shuffle,zstd:1");
  EXPECT_EQ(format_codec({}, dtype::uint8), "zstd:1");
  EXPECT_EQ(format_codec({.compression = lz4()}, dtype::float32), "shuffle,lz4:1");
  EXPECT_EQ(format_codec({.compression = std::nullopt}, dtype::float32), "raw");
}

TEST(CodecText, RefusesWhatIsNoPipeline) {
  for (const char* text : {"", "gzip", "lz4:0", "lz4:13", "zstd,lz4", "zstd:0", "zstd:20", "zstd:x",
                           "zstd:", "zstd,zstd", "shuffle,bitshuffle", "shuffle:1", "bitround",
                           "bitround:53", "raw,zstd", "delta,", "zstd: 1"})
    EXPECT_THROW(parse_codec(text), error) << text;
}

}  // namespace
}  // namespace shale::tools
