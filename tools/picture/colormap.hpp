// Maps from numbers to colours. A map interpolates few colours in OKLab, so that equal steps of the
// number look equally large.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shale::tools {

struct rgb {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  friend bool operator==(const rgb&, const rgb&) noexcept = default;
};

/// A colour in a perceptual colour space: lightness from 0 to 1, green to red, blue to yellow.
/// Source   B. Ottosson, "A perceptual color space for image processing" (2020)
struct oklab {
  double lightness = 0;
  double a = 0;
  double b = 0;
};

oklab to_oklab(rgb colour) noexcept;

/// The nearest colour that a screen can show.
rgb to_rgb(const oklab& colour) noexcept;

struct colormap {
  std::string_view name;
  std::string_view description;
  std::array<rgb, 256> colours;

  /// The colour of `position`: the first colour at 0 and below, the last one at 1 and above.
  rgb at(double position) const noexcept;
};

/// gray, terrain, moss, ember, tide.
const std::vector<colormap>& colormaps();

/// Throws   invalid_argument with the names of all maps
const colormap& find_colormap(std::string_view name);

}  // namespace shale::tools
