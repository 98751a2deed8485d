#include "notation/codec_text.hpp"

#include <gtest/gtest.h>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

TEST(CodecText, NamesExactlyTheStagesThatRun) {
  const codec_spec codec = parse_codec("zstd:3,shuffle");
  EXPECT_EQ(codec.zstd_level, 3);
  EXPECT_EQ(codec.shuffle, shuffle_mode::byte);
  EXPECT_FALSE(codec.delta);
  EXPECT_FALSE(codec.bitround);
}

TEST(CodecText, LeavesOutWhatIsNotNamed) {
  const codec_spec codec = parse_codec("zstd");
  EXPECT_EQ(codec.zstd_level, 1);
  EXPECT_EQ(codec.shuffle, shuffle_mode::none);
  const codec_spec raw = parse_codec("raw");
  EXPECT_EQ(raw.zstd_level, std::nullopt);
  EXPECT_EQ(raw.shuffle, shuffle_mode::none);
}

TEST(CodecText, PrintsStagesInTheOrderInWhichTheyRun) {
  EXPECT_EQ(format_codec(parse_codec("zstd:9,bitshuffle,delta,bitround:12"), dtype::float32),
            "bitround:12,delta,bitshuffle,zstd:9");
  EXPECT_EQ(format_codec(parse_codec("raw"), dtype::float32), "raw");
}

TEST(CodecText, DefaultShufflesWideTypesOnly) {
  EXPECT_EQ(format_codec({}, dtype::float32), "shuffle,zstd:1");
  EXPECT_EQ(format_codec({}, dtype::uint8), "zstd:1");
}

TEST(CodecText, RefusesWhatIsNoPipeline) {
  for (const char* text :
       {"", "lz4", "zstd:0", "zstd:20", "zstd:x", "zstd:", "zstd,zstd", "shuffle,bitshuffle",
        "shuffle:1", "bitround", "bitround:53", "raw,zstd", "delta,", "zstd: 1"})
    EXPECT_THROW(parse_codec(text), error) << text;
}

}  // namespace
}  // namespace shale::tools
