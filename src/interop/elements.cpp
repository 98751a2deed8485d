#include "interop/elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/stored_bools.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/mapped/stored_checksums.hpp"
#include "parallel/operands/bytes_read_once.hpp"
#include "parallel/pass/copy.hpp"
#include "shale/mapped_file.hpp"
#include "storage/blocks/backing.hpp"

namespace shale::interop {

namespace {

template <class Number>
void swap_numbers(std::byte* bytes, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    Number number;
    std::memcpy(&number, bytes + i * sizeof number, sizeof number);
    if constexpr (sizeof number == 2) number = __builtin_bswap16(number);
    else if constexpr (sizeof number == 4) number = __builtin_bswap32(number);
    else number = __builtin_bswap64(number);
    std::memcpy(bytes + i * sizeof number, &number, sizeof number);
  }
}

tensor as_allowed(const tensor& made, access allowed) {
  return allowed == access::read_only ? made.as_read_only() : made;
}

tensor read_copy(const input_file& file, const element_place& place, access allowed) {
  storage bytes = storage::allocate(static_cast<std::size_t>(place.bytes()));
  const executor& on = executor::current();
  const std::span<std::byte> all(bytes.data(), bytes.size_bytes());
  for (std::size_t offset = 0; offset < all.size(); offset += piece_bytes) {
    parallel::require_not_cancelled(on);
    const auto piece = all.subspan(offset, std::min(piece_bytes, all.size() - offset));
    file.read(piece, place.offset + offset);
    if (place.byte_order != std::endian::native) swap_bytes(piece, place.dtype);
  }
  if (place.dtype == dtype::boolean) require_booleans(bytes);
  return as_allowed(tensor(std::move(bytes), place.dtype, place.layout), allowed);
}

// Streams the elements of one tensor. It splits the tensor along its leading axes until a part is
// dense or fits in the buffer.
class element_streamer {
 public:
  element_streamer(const tensor& values, std::endian order, executor& on,
                   const std::function<void(std::span<const std::byte>)>& sink)
      : swapped_(order != std::endian::native && alignment_bytes(values.dtype()) > 1),
        holds_bools_(values.dtype() == dtype::boolean),
        // A source that fits in the budget stays resident.
        let_go_(detail::is_mapped(values.storage()) &&
                touched_bytes(values).bytes > on.memory_bytes() / 2),
        on_(on),
        sink_(sink) {}

  void stream(const tensor& part) {
    const std::size_t bytes = part.size_bytes();
    if (bytes == 0) return;
    if (part.is_contiguous()) return stream_dense(part);
    if (bytes <= piece_bytes) return gather(part);
    const index_t rows = part.shape(0);
    const std::size_t row_bytes = bytes / static_cast<std::size_t>(rows);
    if (row_bytes > piece_bytes) {
      for (index_t row = 0; row < rows; ++row) stream(part.select(0, row));
      return;
    }
    const auto rows_at_once = static_cast<index_t>(piece_bytes / row_bytes);
    for (index_t row = 0; row < rows; row += rows_at_once)
      gather(part.narrow(0, row, std::min(rows_at_once, rows - row)));
  }

 private:
  void stream_dense(const tensor& part) {
    const storage& source = part.storage();
    const byte_range all = touched_bytes(part);
    for (std::size_t done = 0; done < all.bytes; done += piece_bytes) {
      parallel::require_not_cancelled(on_);
      const byte_range piece{all.offset + done, std::min(piece_bytes, all.bytes - done)};
      if (parallel::compares_checksums(on_, source)) source.compare_checksums(piece);
      source.populate(piece);
      std::span<const std::byte> elements(source.data() + piece.offset, piece.bytes);
      if (swapped_ || has_odd_bools(elements)) {
        std::byte* copy = buffer();
        std::memcpy(copy, elements.data(), piece.bytes);
        change({copy, piece.bytes}, part.dtype());
        elements = {copy, piece.bytes};
      }
      sink_(elements);
      if (let_go_) source.evict(piece);
    }
  }

  void gather(const tensor& part) {
    buffer();
    tensor dense(buffer_, part.dtype(), layout(part.shape()));
    parallel::copy_elements(dense, part, on_);
    const std::span<std::byte> elements(buffer_.data(), part.size_bytes());
    change(elements, part.dtype());
    sink_(elements);
    if (let_go_) part.storage().evict(touched_bytes(part));
  }

  bool has_odd_bools(std::span<const std::byte> elements) const noexcept {
    return holds_bools_ && detail::has_odd_bools(elements);
  }

  // Converts copied elements to the bytes that the file holds.
  void change(std::span<std::byte> elements, dtype type) const noexcept {
    if (swapped_) swap_bytes(elements, type);
    if (has_odd_bools(elements)) detail::make_stored_bools(elements);
  }

  std::byte* buffer() {
    if (buffer_.empty()) buffer_ = storage::allocate(piece_bytes, &on_.pool());
    return buffer_.data();
  }

  const bool swapped_;
  const bool holds_bools_;
  const bool let_go_;
  executor& on_;
  const std::function<void(std::span<const std::byte>)>& sink_;
  storage buffer_;
};

}  // namespace

void require_byte_order(std::endian order) {
  if (order == std::endian::little || order == std::endian::big) return;
  throw error(errc::invalid_argument, "invalid byte order",
              {fmt::format("got {}, wanted std::endian::little or big", static_cast<int>(order))});
}

std::size_t alignment_bytes(dtype type) noexcept {
  return kind(type) == dtype_kind::complex ? item_bytes(type) / 2 : item_bytes(type);
}

void swap_bytes(std::span<std::byte> elements, dtype type) noexcept {
  switch (alignment_bytes(type)) {
    case 2:
      return swap_numbers<std::uint16_t>(elements.data(), elements.size() / 2);
    case 4:
      return swap_numbers<std::uint32_t>(elements.data(), elements.size() / 4);
    case 8:
      return swap_numbers<std::uint64_t>(elements.data(), elements.size() / 8);
    default:
      return;
  }
}

bool mappable(const element_place& place) noexcept {
  return place.byte_order == std::endian::native &&
         place.offset % alignment_bytes(place.dtype) == 0;
}

tensor read_elements(const input_file& file, const element_place& place, access allowed) {
  if (place.bytes() == 0)
    return as_allowed(tensor(storage::allocate(0), place.dtype, place.layout), allowed);
  if (mappable(place)) {
    map_options options{.offset = place.offset,
                        .bytes = static_cast<std::size_t>(place.bytes()),
                        .access = access::read_only};
    // The scan uses a separate mapping, so that it leaves no resident pages in the mapping that is
    // kept.
    if (place.dtype == dtype::boolean) require_booleans(map_file(file.descriptor(), options));
    options.access = allowed;
    return tensor(map_file(file.descriptor(), options), place.dtype, place.layout);
  }
  if (allowed == access::read_write)
    throw error(
        errc::unsupported, "these elements cannot be changed in place",
        {fmt::format("file {}, byte {}", file.path(), place.offset),
         place.byte_order != std::endian::native
             ? std::string("they are big-endian: every access would have to swap them")
             : fmt::format("{} must start at a multiple of {} bytes", name(place.dtype),
                           alignment_bytes(place.dtype)),
         "read them with read_only or copy_on_write access, which copies, and write a new file"});
  return read_copy(file, place, allowed);
}

void require_booleans(const storage& bytes) {
  for (std::size_t offset = 0; offset < bytes.size_bytes(); offset += piece_bytes) {
    const byte_range window{offset, std::min(piece_bytes, bytes.size_bytes() - offset)};
    bytes.populate(window);
    const auto* first = reinterpret_cast<const unsigned char*>(bytes.data()) + offset;
    if (detail::has_odd_bools({bytes.data() + offset, window.bytes})) {
      const auto* wrong =
          std::find_if(first, first + window.bytes, [](unsigned char byte) { return byte > 1; });
      throw error(errc::corrupt, "a bool is neither 0 nor 1",
                  {fmt::format("position {} of the stored elements, got {}",
                               offset + static_cast<std::size_t>(wrong - first), *wrong),
                   "if these are bytes, read them as uint8 (for example with read_raw)"});
    }
    if (detail::is_mapped(bytes)) bytes.evict(window);
  }
}

void stream_elements(const tensor& values, std::endian order, executor& on,
                     const std::function<void(std::span<const std::byte>)>& sink) {
  element_streamer(values, order, on, sink).stream(values);
  values.storage().check();
  auto& count = parallel::state_of(on).count;
  count.pass();
  count.read(parallel::distinct_bytes(values));
  count.written(values.size_bytes());
}

byte_range touched_bytes(const tensor& values) noexcept {
  const auto extent = values.layout().extent();
  if (!extent) return {};
  const std::size_t width = values.item_bytes();
  return {static_cast<std::size_t>(extent->first) * width,
          static_cast<std::size_t>(extent->last - extent->first + 1) * width};
}

}  // namespace shale::interop
