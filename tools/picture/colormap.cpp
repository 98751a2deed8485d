#include "picture/colormap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "shale/error.hpp"

namespace shale::tools {

namespace {

double to_linear(std::uint8_t level) {
  const double value = level / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

std::uint8_t from_linear(double value) {
  value = std::clamp(value, 0.0, 1.0);
  const double curved =
      value <= 0.0031308 ? value * 12.92 : 1.055 * std::pow(value, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(curved * 255));
}

// A colour at a position between 0 and 1.
struct stop {
  double position;
  rgb colour;
};

// The lightness along a map: linear from the first stop to the last, or interpolated between the
// stops.
enum class lightness { linear, as_given };

std::array<rgb, 256> blend(std::span<const stop> stops, lightness rule) {
  std::array<rgb, 256> colours;
  const double first = to_oklab(stops.front().colour).lightness;
  const double last = to_oklab(stops.back().colour).lightness;
  std::size_t right = 1;
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const double position = static_cast<double>(i) / 255;
    while (right + 1 < stops.size() && position > stops[right].position) ++right;
    const stop& low = stops[right - 1];
    const stop& high = stops[right];
    const double part = (position - low.position) / (high.position - low.position);
    const oklab from = to_oklab(low.colour);
    const oklab to = to_oklab(high.colour);
    oklab mixed{std::lerp(from.lightness, to.lightness, part), std::lerp(from.a, to.a, part),
                std::lerp(from.b, to.b, part)};
    if (rule == lightness::linear) mixed.lightness = std::lerp(first, last, position);
    colours[i] = to_rgb(mixed);
  }
  return colours;
}

// The grey levels of the screen. Near black, equal steps in OKLab would be smaller than one level.
std::array<rgb, 256> levels() {
  std::array<rgb, 256> colours;
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const auto level = static_cast<std::uint8_t>(i);
    colours[i] = {level, level, level};
  }
  return colours;
}

std::vector<colormap> make_colormaps() {
  // Valleys, meadows, woods, rock, snow.
  const stop terrain[] = {{0.00, {38, 92, 84}},    {0.20, {86, 139, 84}},   {0.40, {176, 182, 108}},
                          {0.58, {206, 178, 126}}, {0.75, {158, 124, 102}}, {0.88, {186, 172, 166}},
                          {1.00, {250, 250, 252}}};
  const stop moss[] = {{0.00, {32, 14, 62}},
                       {0.30, {38, 74, 118}},
                       {0.55, {24, 128, 120}},
                       {0.80, {108, 184, 84}},
                       {1.00, {246, 232, 92}}};
  const stop ember[] = {{0.00, {4, 3, 16}},
                        {0.25, {70, 16, 94}},
                        {0.50, {164, 38, 84}},
                        {0.75, {234, 112, 36}},
                        {1.00, {252, 246, 170}}};
  const stop tide[] = {{0.00, {18, 60, 128}},
                       {0.25, {84, 146, 206}},
                       {0.50, {244, 243, 240}},
                       {0.75, {222, 124, 90}},
                       {1.00, {126, 22, 40}}};
  return {
      {"gray", "black to white", levels()},
      {"terrain", "valleys, meadows, rock, snow", blend(terrain, lightness::as_given)},
      {"moss", "dark blue over green to yellow", blend(moss, lightness::linear)},
      {"ember", "black over red to pale yellow", blend(ember, lightness::linear)},
      {"tide", "blue over white to red, for values around a middle",
       blend(tide, lightness::as_given)},
  };
}

}  // namespace

oklab to_oklab(rgb colour) noexcept {
  const double r = to_linear(colour.red);
  const double g = to_linear(colour.green);
  const double b = to_linear(colour.blue);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

rgb to_rgb(const oklab& colour) noexcept {
  const auto cube = [](double value) { return value * value * value; };
  const double l = cube(colour.lightness + 0.3963377774 * colour.a + 0.2158037573 * colour.b);
  const double m = cube(colour.lightness - 0.1055613458 * colour.a - 0.0638541728 * colour.b);
  const double s = cube(colour.lightness - 0.0894841775 * colour.a - 1.2914855480 * colour.b);
  return {from_linear(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          from_linear(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          from_linear(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

rgb colormap::at(double position) const noexcept {
  if (!(position > 0)) return colours.front();
  return colours[static_cast<std::size_t>(std::lround(std::min(position, 1.0) * 255))];
}

const std::vector<colormap>& colormaps() {
  static const std::vector<colormap> all = make_colormaps();
  return all;
}

const colormap& find_colormap(std::string_view name) {
  std::string names;
  for (const colormap& map : colormaps()) {
    if (map.name == name) return map;
    names += (names.empty() ? "" : ", ") + std::string(map.name);
  }
  throw error(errc::invalid_argument, fmt::format("no colormap '{}'", name),
              {"there are " + names});
}

}  // namespace shale::tools
