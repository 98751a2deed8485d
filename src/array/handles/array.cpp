#include "shale/array.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "array/elements/dense_bytes.hpp"
#include "array/handles/array_implementation.hpp"
#include "array/handles/read_attribute.hpp"
#include "array/specification/specification.hpp"
#include "core/allocating.hpp"
#include "core/held.hpp"
#include "core/printable.hpp"
#include "format/catalog/attributes.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/operands/loop_operand.hpp"
#include "parallel/pass/copy.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/layout.hpp"
#include "tensor/parts.hpp"

namespace shale {

namespace {

// The byte range of the region if it is contiguous in a row-major array of that shape, else
// nothing.
std::optional<byte_range> contiguous_range(const region& part, const dims& shape,
                                           std::size_t item) {
  const layout view = detail::narrowed(layout(shape), part);
  if (!view.is_contiguous()) return std::nullopt;
  return byte_range{static_cast<std::size_t>(view.offset()) * item,
                    static_cast<std::size_t>(view.size()) * item};
}

// Throws   corrupt if the chunk lies outside of the grid
stored_chunk described(const format::array_record& record, const format::numbered_chunk& chunk) {
  if (!format::is_in_grid(record, chunk.number))
    throw error(errc::corrupt, "a chunk index is damaged",
                {fmt::format("chunk {} is outside the grid", chunk.number)});
  const format::chunked_layout& layout = record.chunked();
  stored_chunk result{.index = format::chunk_index(layout, chunk.number),
                      .part = region::all(layout.chunk_shape),
                      .offset = chunk.entry.offset,
                      .stored_bytes = chunk.entry.stored_bytes,
                      .checksum = chunk.entry.checksum,
                      .raw = (chunk.entry.flags & format::chunk_flag_raw) != 0};
  for (index_t axis = 0; axis < record.shape.size(); ++axis) {
    result.part.start[axis] = result.index[axis] * layout.chunk_shape[axis];
    result.part.shape[axis] =
        std::min(layout.chunk_shape[axis], record.shape[axis] - result.part.start[axis]);
  }
  return result;
}

std::string label_of(const std::string& name, const std::string& path) {
  return fmt::format("{} in {}", detail::in_quotes(name), path);
}

}  // namespace

array::implementation::implementation(std::string file, format::array_record found,
                                      format::generation_view pinned,
                                      std::shared_ptr<const parallel::tile_owner> owner)
    : path(std::move(file)), record(std::move(found)), view(std::move(pinned)) {
  if (!record.is_dense())
    tiles = std::make_shared<arrays::chunk_tiles>(
        label(), record, std::make_shared<arrays::generation_chunks>(*view, record),
        std::move(owner));
}

array::implementation::implementation(const std::shared_ptr<arrays::shared_transaction>& owner,
                                      arrays::shared_transaction::found_array found)
    : path(owner->path()), record(std::move(found.record)) {
  if (!found.written) {
    view = std::move(found.base);
    if (!record.is_dense())
      tiles = std::make_shared<arrays::chunk_tiles>(
          label(), record, std::make_shared<arrays::generation_chunks>(*view, record),
          owner->tile_owner());
  } else if (record.is_dense()) {
    writer = owner;
    written = std::move(found.written);
  } else {
    tiles = owner->read_only_tiles_of(found.written);
  }
}

std::string array::implementation::label() const { return label_of(record.name, path); }

std::shared_ptr<arrays::mapped_checksums> array::implementation::checksums() {
  const std::lock_guard lock(mutex);
  if (!sums) sums = arrays::mapped_checksums_of(*view, record, label());
  return sums;
}

void array::implementation::compare_checksums(byte_range range) {
  if (const auto known = checksums()) known->compare(range);
}

storage array::implementation::mapped_bytes() {
  const auto present = [&] {
    const std::lock_guard lock(mutex);
    return mapped;
  };
  if (storage known = present()) return known;
  const std::lock_guard turn(mapping);
  if (storage known = present()) return known;
  storage made = with_context([&] { return "map " + label(); },
                              [&] { return arrays::map_dense(*view, record, path, checksums()); });
  const std::lock_guard lock(mutex);
  mapped = made;
  return made;
}

tensor array::implementation::dense() {
  if (written)
    return with_context([&] { return "map " + label(); },
                        [&] {
                          return tensor(writer->bytes_of(*written).as_read_only(), record.dtype,
                                        layout(record.shape));
                        });
  return tensor(mapped_bytes(), record.dtype, layout(record.shape));
}

void array::implementation::require_stored_chunks() const {
  if (record.is_dense())
    throw error(errc::invalid_argument, "a dense array has no chunks", {label()});
  if (!view)
    throw error(errc::invalid_argument, "the chunks have no place before the commit",
                {label(),
                 "this is the array of a transaction that changed it: ask the array of a "
                 "later snapshot"});
}

void array::implementation::require_in_grid(const dims& index) const {
  const dims grid = format::chunk_grid(record);
  bool inside = index.size() == grid.size();
  for (index_t axis = 0; inside && axis < grid.size(); ++axis)
    inside = index[axis] >= 0 && index[axis] < grid[axis];
  if (!inside)
    throw error(errc::invalid_argument, "no such chunk",
                {label(), fmt::format("got {}, the grid of chunks is {}", to_string(index),
                                      to_string(grid))});
}

array::array(std::shared_ptr<implementation> made) noexcept : implementation_(std::move(made)) {}

array::implementation& array::state() const { return detail::held(implementation_, "array"); }

const std::string& array::name() const { return state().record.name; }

dtype array::dtype() const { return state().record.dtype; }

const dims& array::shape() const { return state().record.shape; }

index_t array::size() const { return element_count(shape()); }

array_kind array::kind() const {
  return state().record.is_dense() ? array_kind::dense : array_kind::chunked;
}

std::uint64_t array::size_bytes() const {
  return static_cast<std::uint64_t>(size()) * item_bytes(dtype());
}

std::uint64_t array::stored_bytes() const {
  const auto& record = state().record;
  return record.is_dense() ? size_bytes() : record.chunked().stored_bytes;
}

const dims& array::chunk_shape() const {
  const auto& record = state().record;
  return record.is_dense() ? record.shape : record.chunked().chunk_shape;
}

codec_spec array::codec() const {
  const auto& record = state().record;
  return detail::allocating([&] {
    return record.is_dense() ? arrays::codec_spec_of({})
                             : arrays::codec_spec_of(record.chunked().stages);
  });
}

scalar array::fill_value() const { return arrays::scalar_of(state().record.fill_value, dtype()); }

std::uint64_t array::modified() const { return state().record.modified; }

std::vector<std::pair<std::string, std::string>> array::attributes() const {
  const auto& record = state().record;
  return detail::allocating([&] { return record.attributes; });
}

std::optional<std::string> array::attribute(std::string_view key) const {
  const auto& self = state();
  return detail::allocating([&]() -> std::optional<std::string> {
    if (const std::string* const stored = format::find_attribute(self.record, key)) return *stored;
    return std::nullopt;
  });
}

std::optional<attribute_value> array::typed_attribute(std::string_view key) const {
  const auto& self = state();
  return arrays::read_attribute<attribute_value>(
      self.record, key, [&] { return self.label(); },
      [](const attribute_value& value) { return value; });
}

template <attribute_type T>
std::optional<T> array::attribute_as(std::string_view key) const {
  const auto& self = state();
  return arrays::read_attribute<T>(
      self.record, key, [&] { return self.label(); },
      [](const attribute_value& value) { return value.as<T>(); });
}

template std::optional<bool> array::attribute_as(std::string_view) const;
template std::optional<std::int64_t> array::attribute_as(std::string_view) const;
template std::optional<std::uint64_t> array::attribute_as(std::string_view) const;
template std::optional<double> array::attribute_as(std::string_view) const;
template std::optional<std::string> array::attribute_as(std::string_view) const;
template std::optional<std::vector<bool>> array::attribute_as(std::string_view) const;
template std::optional<std::vector<std::int64_t>> array::attribute_as(std::string_view) const;
template std::optional<std::vector<std::uint64_t>> array::attribute_as(std::string_view) const;
template std::optional<std::vector<double>> array::attribute_as(std::string_view) const;
template std::optional<std::vector<std::string>> array::attribute_as(std::string_view) const;

tensor array::map() const {
  auto& self = state();
  if (!self.record.is_dense())
    throw error(errc::invalid_argument, "a chunked array cannot be mapped",
                {self.label(), "read it, or use it as an expression"});
  return detail::allocating([&] { return self.dense(); });
}

// `result` has the array's dtype and the shape of the region, which lies inside the array.
void array::implementation::read(const region& part, const tensor& result, executor& on) {
  if (tiles) return tiles->read(part, result, on);
  const auto range = contiguous_range(part, record.shape, item_bytes(record.dtype));
  if (range && view && result.is_contiguous()) {
    // `read_dense` compares only the segments that it reads completely. The first and the last
    // segment may be read in part, so they are compared here.
    if (on.checksums() == checksum_use::compared && range->bytes > 0) {
      compare_checksums({range->offset, 1});
      compare_checksums({range->offset + range->bytes - 1, 1});
    }
    const auto known = checksums();
    const auto read_sums = [&](std::uint64_t first, std::uint64_t count) {
      return known ? known->read_sums(first, count) : std::vector<std::uint64_t>();
    };
    arrays::read_dense(*view, record, label(), range->offset, result, read_sums, on);
  } else {
    const tensor from = detail::narrowed(dense(), part);
    parallel::copy_elements(result, from, on);
    from.storage().check();
  }
}

tensor array::read(const region& part) const {
  auto& self = state();
  executor& on = executor::current();
  return detail::reporting(
      [&] { return fmt::format("read {} of {}", to_string(part), self.label()); },
      [&] {
        require_inside(part, shape());
        const tensor result = tensor::empty(part.shape, dtype(), &on.pool());
        self.read(part, result, on);
        return result;
      });
}

void array::read_into(const tensor& out, const region& part) const {
  auto& self = state();
  executor& on = executor::current();
  detail::reporting(
      [&] { return fmt::format("read {} of {}", to_string(part), self.label()); },
      [&] {
        require_inside(part, shape());
        if (!(out.shape() == part.shape))
          throw error(
              errc::invalid_argument, "the tensor has another shape than the part",
              {fmt::format("got {}, wanted {}", to_string(out.shape()), to_string(part.shape))});
        parallel::require_output(out);
        if (out.dtype() == dtype()) self.read(part, out, on);
        else eval_into(out, detail::narrowed(expr(*this), part));
        out.storage().check();
      });
}

tensor array::read_at(std::span<const index_entry> entries) const {
  auto& self = state();
  return with_context([&] { return fmt::format("read a part of {}", self.label()); },
                      [&] { return eval(expr(*this).index(entries)); });
}

array::operator expr() const { return kind() == array_kind::dense ? expr(map()) : expr(tiles()); }

std::shared_ptr<const tile_source> array::tiles() const { return state().tiles; }

std::vector<stored_chunk> array::stored_chunks(const std::optional<dims>& after,
                                               std::size_t limit) const {
  const auto& self = state();
  return detail::reporting([&] { return "list the chunks of " + self.label(); },
                           [&] {
                             self.require_stored_chunks();
                             std::uint64_t first = 0;
                             if (after) {
                               self.require_in_grid(*after);
                               first = format::chunk_number(self.record.chunked(), *after) + 1;
                             }
                             std::vector<stored_chunk> result;
                             for (const auto& chunk : self.view->chunks(self.record, first, limit))
                               result.push_back(described(self.record, chunk));
                             return result;
                           });
}

std::vector<std::byte> array::read_stored_chunk(const dims& index) const {
  const auto& self = state();
  return detail::reporting(
      [&] { return fmt::format("read chunk {} of {}", to_string(index), self.label()); },
      [&] {
        self.require_stored_chunks();
        self.require_in_grid(index);
        std::vector<std::byte> bytes;
        const std::uint64_t number = format::chunk_number(self.record.chunked(), index);
        if (const auto entry = self.view->find_chunk(self.record, number)) {
          bytes.resize(static_cast<std::size_t>(entry->stored_bytes));
          self.view->read_chunk(*entry, bytes);
        }
        return bytes;
      });
}

}  // namespace shale
