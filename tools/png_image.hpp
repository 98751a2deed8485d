// Pictures as PNG files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shale::tools {

enum class pixel_kind : std::uint8_t { gray = 1, rgb = 3, rgba = 4 };  ///< values: bytes a pixel

struct image {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  pixel_kind kind = pixel_kind::rgb;
  std::vector<std::uint8_t> pixels;  ///< rows from the top, packed
};

/// Throws   io, out_of_space, invalid_argument (no pixels, or more than PNG can say)
void write_png(const std::string& path, const image& picture);

}  // namespace shale::tools
