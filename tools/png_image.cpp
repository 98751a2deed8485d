#include "png_image.hpp"

#include <fmt/format.h>
#include <png.h>

#include "shale/error.hpp"

namespace shale::tools {

void write_png(const std::string& path, const image& picture) {
  if (picture.width == 0 || picture.height == 0)
    throw error(errc::invalid_argument, "a picture without pixels cannot be written");
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = picture.width;
  header.height = picture.height;
  header.format = picture.kind == pixel_kind::gray  ? PNG_FORMAT_GRAY
                  : picture.kind == pixel_kind::rgb ? PNG_FORMAT_RGB
                                                    : PNG_FORMAT_RGBA;
  // The simplified interface keeps its longjmp to itself.
  if (png_image_write_to_file(&header, path.c_str(), 0, picture.pixels.data(), 0, nullptr) == 0)
    throw error(errc::io, fmt::format("write picture: {}", header.message), {"file " + path});
}

}  // namespace shale::tools
