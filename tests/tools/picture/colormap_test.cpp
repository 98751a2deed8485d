#include "picture/colormap.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

TEST(Colormap, OklabKnowsWhiteBlackAndRed) {
  // The reference values of the paper, to its printed precision.
  const oklab white = to_oklab({255, 255, 255});
  EXPECT_NEAR(white.lightness, 1, 1e-4);
  EXPECT_NEAR(white.a, 0, 1e-4);
  EXPECT_NEAR(white.b, 0, 1e-4);
  EXPECT_NEAR(to_oklab({0, 0, 0}).lightness, 0, 1e-6);
  const oklab red = to_oklab({255, 0, 0});
  EXPECT_NEAR(red.lightness, 0.628, 1e-3);
  EXPECT_NEAR(red.a, 0.2249, 1e-3);
  EXPECT_NEAR(red.b, 0.1258, 1e-3);
}

TEST(Colormap, ColoursSurviveTheWayThroughOklab) {
  for (int red = 0; red < 256; red += 17)
    for (int green = 0; green < 256; green += 17)
      for (int blue = 0; blue < 256; blue += 17) {
        const rgb colour{static_cast<std::uint8_t>(red), static_cast<std::uint8_t>(green),
                         static_cast<std::uint8_t>(blue)};
        EXPECT_EQ(to_rgb(to_oklab(colour)), colour);
      }
}

TEST(Colormap, SequentialMapsGrowLighterInEqualSteps) {
  for (const char* name : {"moss", "ember"}) {
    const colormap& map = find_colormap(name);
    const double first = to_oklab(map.colours.front()).lightness;
    const double last = to_oklab(map.colours.back()).lightness;
    for (std::size_t i = 0; i < map.colours.size(); ++i) {
      const double wanted = first + (last - first) * static_cast<double>(i) / 255;
      // The 256 levels of a screen are coarse near black, and saturated colours are clipped to its
      // range.
      EXPECT_NEAR(to_oklab(map.colours[i]).lightness, wanted, 0.04) << name << ' ' << i;
      if (i == 0) continue;
      EXPECT_GE(to_oklab(map.colours[i]).lightness, to_oklab(map.colours[i - 1]).lightness - 0.004)
          << name << ' ' << i;
    }
  }
}

TEST(Colormap, GrayIsTheScreensOwnLevels) {
  const colormap& map = find_colormap("gray");
  for (std::size_t i = 0; i < map.colours.size(); ++i) {
    const auto level = static_cast<std::uint8_t>(i);
    EXPECT_EQ(map.colours[i], (rgb{level, level, level}));
  }
}

TEST(Colormap, DivergingMapIsLightestInTheMiddle) {
  const colormap& map = find_colormap("tide");
  const double middle = to_oklab(map.at(0.5)).lightness;
  for (const rgb colour : map.colours) EXPECT_LE(to_oklab(colour).lightness, middle + 0.01);
  EXPECT_GT(map.at(0).blue, map.at(0).red);
  EXPECT_GT(map.at(1).red, map.at(1).blue);
}

TEST(Colormap, ClampsPositions) {
  const colormap& map = find_colormap("gray");
  EXPECT_EQ(map.at(-1), (rgb{0, 0, 0}));
  EXPECT_EQ(map.at(2), (rgb{255, 255, 255}));
  EXPECT_EQ(map.at(std::nan("")), (rgb{0, 0, 0}));
}

TEST(Colormap, UnknownNameListsTheMaps) {
  try {
    find_colormap("jet");
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    EXPECT_NE(std::string(failure.what()).find("terrain"), std::string::npos);
  }
}

}  // namespace
}  // namespace shale::tools
