#include "picture/png_image.hpp"

#include <fmt/format.h>
#include <png.h>

#include "shale/error.hpp"
#include "shale/raw.hpp"

namespace shale::tools {

void write_png(const std::string& path, const image& picture, existing_file existing) {
  if (picture.width == 0 || picture.height == 0)
    throw error(errc::invalid_argument, "a picture without pixels cannot be written");
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = picture.width;
  header.height = picture.height;
  header.format = picture.kind == pixel_kind::gray  ? PNG_FORMAT_GRAY
                  : picture.kind == pixel_kind::rgb ? PNG_FORMAT_RGB
                                                    : PNG_FORMAT_RGBA;
  // The picture is compressed in memory, because libpng does not report why it could not write a
  // file. The simplified interface never calls longjmp out of libpng.
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(header);
  tensor packed = tensor::empty({static_cast<index_t>(bytes)}, dtype::uint8);
  if (png_image_write_to_memory(&header, packed.data(), &bytes, 0, picture.pixels.data(), 0,
                                nullptr) == 0)
    throw error(errc::invalid_argument, fmt::format("write picture: {}", header.message),
                {"file " + path, fmt::format("{} x {} pixels", picture.width, picture.height)});
  write_raw(path, packed.narrow(0, 0, static_cast<index_t>(bytes)), {.existing = existing});
}

}  // namespace shale::tools
