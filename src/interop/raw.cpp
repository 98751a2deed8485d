#include "shale/raw.hpp"

#include <fmt/format.h>

#include "core/allocating.hpp"
#include "interop/elements.hpp"
#include "interop/output_file.hpp"
#include "shale/executor.hpp"

namespace shale {

namespace {

dims shape_to_end(std::uint64_t held_bytes, dtype type) {
  const std::uint64_t width = item_bytes(type);
  if (held_bytes % width != 0)
    throw error(errc::invalid_argument, "not a whole number of elements",
                {fmt::format("{} bytes after the offset, {} takes {} each: {} are left over",
                             held_bytes, name(type), width, held_bytes % width),
                 "give the shape, the offset or another dtype"});
  return {static_cast<index_t>(held_bytes / width)};
}

}  // namespace

tensor read_raw(const std::string& path, dtype type, const raw_read_options& options) {
  return detail::reporting(
      [&] { return "read " + path; },
      [&] {
        interop::require_byte_order(options.byte_order);
        const interop::input_file file(path, options.access);
        if (options.offset > file.size_bytes())
          throw error(
              errc::invalid_argument, "offset after the end of the file",
              {fmt::format("file of {} bytes, offset {}", file.size_bytes(), options.offset)});
        const std::uint64_t held = file.size_bytes() - options.offset;
        const dims shape = options.shape ? *options.shape : shape_to_end(held, type);
        const layout row_major(shape);
        const auto wanted = checked_mul(static_cast<std::uint64_t>(row_major.size()),
                                        std::uint64_t{item_bytes(type)});
        if (!wanted || *wanted > held)
          throw error(errc::invalid_argument, "the file is too short",
                      {fmt::format("shape {} of {} does not fit into the {} bytes from byte {} on",
                                   to_string(shape), name(type), held, options.offset)});
        return interop::read_elements(file, {options.offset, type, options.byte_order, row_major},
                                      options.access);
      });
}

void write_raw(const std::string& path, const tensor& values, const raw_write_options& options) {
  detail::reporting([&] { return "write " + path; },
                    [&] {
                      interop::require_byte_order(options.byte_order);
                      interop::output_file file(path, options.existing);
                      interop::stream_elements(
                          values, options.byte_order, executor::current(),
                          [&](std::span<const std::byte> piece) { file.append(piece); });
                      file.publish();
                    });
}

}  // namespace shale
