#include "terminal/units.hpp"

#include <gtest/gtest.h>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

TEST(Units, ReadsSizes) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("256MiB"), 256u << 20);
  EXPECT_EQ(parse_bytes("256M"), 256u << 20);
  EXPECT_EQ(parse_bytes("256 mib"), 256u << 20);
  EXPECT_EQ(parse_bytes("64k"), 64u << 10);
  EXPECT_EQ(parse_bytes("1.5GiB"), 3u << 29);
  EXPECT_EQ(parse_bytes("10GB"), 10'000'000'000u);
  EXPECT_EQ(parse_bytes("2TiB"), std::uint64_t{2} << 40);
  EXPECT_EQ(parse_bytes("12B"), 12u);
}

TEST(Units, RefusesWhatIsNoSize) {
  for (const char* text : {"", "M", "-1", "1.5", "12 parsecs", "1e3", "nan", "inf", "MiB256",
                           "99999999999999999999", "9223372036854775808", "8388608TiB", "1  M"})
    EXPECT_THROW(parse_bytes(text), error) << text;
}

TEST(Units, PrintsSizesInFourCharacters) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(10188), "9.9 KiB");
  EXPECT_EQ(format_bytes(10200), "10 KiB");
  EXPECT_EQ(format_bytes((std::uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(std::uint64_t{17} << 30), "17 GiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16 EiB");
}

TEST(Units, GroupsDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
}

TEST(Units, PrintsTimes) {
  EXPECT_EQ(format_seconds(0.0421), "0.042 s");
  EXPECT_EQ(format_seconds(0.9996), "1.0 s");
  EXPECT_EQ(format_seconds(59.94), "59.9 s");
  EXPECT_EQ(format_seconds(59.96), "1:00 min");
  EXPECT_EQ(format_seconds(125), "2:05 min");
  EXPECT_EQ(format_seconds(3723), "1:02:03 h");
}

TEST(Units, PrintsShares) {
  EXPECT_EQ(format_share(1, 8), "12.5 %");
  EXPECT_EQ(format_share(7, 7), "100.0 %");
  EXPECT_EQ(format_share(0, 0), "-");
}

TEST(Units, PrintsRates) {
  EXPECT_EQ(format_rate(1'300'000'000, 1), "1.30 GB/s");
  EXPECT_EQ(format_rate(840'000'000, 1), "840 MB/s");
  EXPECT_EQ(format_rate(1000, 0), "-");
}

}  // namespace
}  // namespace shale::tools
