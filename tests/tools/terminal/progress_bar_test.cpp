#include "terminal/progress_bar.hpp"

#include <gtest/gtest.h>

#include "terminal/table.hpp"

namespace shale::tools {
namespace {

TEST(ProgressBar, SaysHowFarAndHowFast) {
  const std::string line = render_bar("stats", 1u << 30, 4u << 29, 2, 100);
  EXPECT_NE(line.find("stats"), std::string::npos);
  EXPECT_NE(line.find(" 50%"), std::string::npos);
  EXPECT_NE(line.find("1.0 GiB of 2.0 GiB"), std::string::npos);
  EXPECT_NE(line.find("537 MB/s"), std::string::npos);
  EXPECT_NE(line.find("2.0 s left"), std::string::npos);
}

TEST(ProgressBar, FillsInProportion) {
  const auto count = [](const std::string& line, char c) {
    return std::count(line.begin(), line.end(), c);
  };
  for (const std::uint64_t done : {0u, 25u, 50u, 100u}) {
    const std::string line = render_bar("x", done, 100, 1, 120);
    EXPECT_EQ(count(line, '#'), static_cast<std::ptrdiff_t>(done * 40 / 100)) << line;
  }
}

TEST(ProgressBar, FitsEveryWidth) {
  for (std::size_t columns = 1; columns < 200; ++columns)
    EXPECT_LE(display_width(render_bar("eval", 123456789, 987654321, 1.5, columns)), columns);
}

TEST(ProgressBar, SurvivesNothingToDo) {
  EXPECT_NE(render_bar("eval", 0, 0, 0, 80).find("100%"), std::string::npos);
  EXPECT_NE(render_bar("eval", 5, 3, 1, 80).find("100%"), std::string::npos);
}

}  // namespace
}  // namespace shale::tools
