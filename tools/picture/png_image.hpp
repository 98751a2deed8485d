// Writes pictures as PNG files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shale/unfinished_file.hpp"

namespace shale::tools {

enum class pixel_kind : std::uint8_t { gray = 1, rgb = 3, rgba = 4 };  ///< bytes of a pixel

struct image {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  pixel_kind kind = pixel_kind::rgb;
  std::vector<std::uint8_t> pixels;  ///< rows from the top, packed
};

/// Writes the picture durably, whole or not at all.
/// Throws   io, out_of_space, already_exists, invalid_argument (no pixels, or too many for PNG)
void write_png(const std::string& path, const image& picture, existing_file existing);

}  // namespace shale::tools
