#include "shale/npy.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <utility>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "core/held.hpp"
#include "core/never_destroyed.hpp"
#include "interop/elements.hpp"
#include "interop/npy_header.hpp"
#include "interop/npy_stream.hpp"
#include "interop/output_file.hpp"
#include "shale/executor.hpp"
#include "shale/mapped_file.hpp"
#include "shale/unfinished_file.hpp"

namespace shale {

namespace {

npy_header header_of(const interop::input_file& file, std::uint64_t offset) {
  if (offset > file.size_bytes())
    throw error(
        errc::invalid_argument, "offset after the end of the file",
        {fmt::format("file {} of {} bytes, offset {}", file.path(), file.size_bytes(), offset)});
  return interop::read_npy_header([&](std::span<std::byte> into, std::size_t position) {
    return file.read_up_to(into, offset + position);
  });
}

}  // namespace

npy_header inspect_npy(const std::string& path, std::uint64_t offset) {
  return detail::reporting([&] { return "read header of " + path; },
                           [&] { return header_of(interop::input_file(path), offset); });
}

tensor read_npy(const std::string& path, const npy_read_options& options) {
  return detail::reporting(
      [&] { return "read " + path; },
      [&] {
        detail::require_enumerator(options.trailing, trailing_bytes::ignore, "trailing_bytes");
        const interop::input_file file(path, options.access);
        const npy_header header = header_of(file, options.offset);
        // The header was read, so it lies inside the file and neither difference can wrap.
        const std::uint64_t first = options.offset + header.data_offset;
        const std::uint64_t held = file.size_bytes() - first;
        const std::uint64_t wanted = header.data_bytes();
        if (held < wanted)
          throw error(
              errc::corrupt, "elements are missing",
              {fmt::format("shape {} of {} needs {} bytes from byte {} on, the file has {}",
                           to_string(header.shape), name(header.dtype), wanted, first, held)});
        if (held > wanted && options.trailing == trailing_bytes::refuse)
          throw error(errc::corrupt, "bytes after the last element",
                      {fmt::format("{} bytes from byte {} on", held - wanted, first + wanted),
                       "if the file holds several arrays, read each with its offset and "
                       "trailing_bytes::ignore"});
        return interop::read_elements(
            file, {first, header.dtype, header.byte_order, header.layout()}, options.access);
      });
}

void write_npy(const std::string& path, const tensor& values, const npy_write_options& options) {
  detail::reporting([&] { return "write " + path; },
                    [&] {
                      const interop::npy_stream stream(values, options.logical);
                      interop::output_file file(path, options.existing);
                      file.append(stream.header());
                      stream.for_each_piece(
                          executor::current(),
                          [&](std::span<const std::byte> piece) { file.append(piece); });
                      file.publish();
                    });
}

struct npy_writer::implementation {
  unfinished_file pending;
  tensor elements;
  storage whole;
  bool finished = false;
};

namespace {

// Makes the file, reserves its space and maps it. The file is made empty, inside a `creation`, and
// grows afterwards: reserving its space may take long, and a sudden end does not wait for it.
storage make_file(const unfinished_file& pending, std::size_t bytes) {
  storage made = [&] {
    const unfinished_file::creation making;
    return pending.naming_target([&] {
      return create_file(
          pending.path(), 0,
          {.existing = existing_file::refuse, .mode = pending.mode(), .reserve_bytes = bytes});
    });
  }();
  pending.naming_target([&] { made.grow(bytes); });
  return made;
}

}  // namespace

npy_writer::npy_writer(const std::string& path, dtype type, const dims& shape,
                       const npy_write_options& options) {
  detail::reporting(
      [&] { return "create " + path; },
      [&] {
        const std::string header =
            format_npy_header({.dtype = type, .shape = shape, .logical = options.logical});
        const layout row_major(shape);
        const auto bytes = static_cast<std::size_t>(row_major.size());
        const auto total = checked_mul(bytes, shale::item_bytes(type));
        if (!total ||
            *total > static_cast<std::size_t>(std::numeric_limits<index_t>::max()) - header.size())
          throw error(errc::invalid_argument, "more elements than any file holds",
                      {fmt::format("shape {} of {}", to_string(shape), name(type))});
        unfinished_file pending(path, options.existing);
        storage whole = make_file(pending, header.size() + *total);
        std::memcpy(whole.data(), header.data(), header.size());
        tensor elements(whole.slice(header.size(), *total), type, row_major);
        implementation_ = std::make_unique<implementation>(
            implementation{std::move(pending), std::move(elements), std::move(whole)});
      });
}

npy_writer::~npy_writer() = default;
npy_writer::npy_writer(npy_writer&&) noexcept = default;
npy_writer& npy_writer::operator=(npy_writer&&) noexcept = default;

const tensor& npy_writer::elements() const noexcept {
  static detail::never_destroyed<tensor> none;
  return implementation_ ? implementation_->elements : none.get();
}

void npy_writer::finish() {
  implementation& state = detail::held(implementation_, "npy_writer");
  if (std::exchange(state.finished, true))
    throw error(errc::invalid_argument, "the file is finished already",
                {"file " + state.pending.target()});
  detail::reporting([&] { return "write " + state.pending.target(); },
                    [&] {
                      state.pending.naming_target([&] {
                        state.whole.flush();
                        state.whole.check();
                      });
                      state.pending.publish_durable();
                    });
}

}  // namespace shale
