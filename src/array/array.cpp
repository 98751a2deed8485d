#include "shale/array.hpp"

#include <fmt/format.h>

#include "array/array_state.hpp"
#include "array/dense_bytes.hpp"
#include "array/specification.hpp"
#include "parallel/copy.hpp"
#include "parallel/executor_state.hpp"
#include "shale/error.hpp"
#include "shale/layout.hpp"

namespace shale {

namespace {

// The bytes of `where` if they follow each other in a row-major array of that shape: whole rows.
std::optional<byte_range> contiguous_range(const region& where, const dims& shape,
                                           std::size_t item) {
  layout view(shape);
  for (index_t axis = 0; axis < shape.size(); ++axis)
    view = view.narrow(axis, where.start[axis], where.shape[axis]);
  if (!view.is_contiguous()) return std::nullopt;
  return byte_range{static_cast<std::size_t>(view.offset()) * item,
                    static_cast<std::size_t>(view.size()) * item};
}

std::string label_of(const std::string& name, const std::string& path) {
  return fmt::format("'{}' in {}", name, path);
}

}  // namespace

array::implementation::implementation(std::string file, format::array_record found,
                                      format::generation_view pinned)
    : path(std::move(file)), record(std::move(found)) {
  if (record.is_dense()) view = std::move(pinned);
  else
    tiles = std::make_shared<arrays::chunk_tiles>(
        label(), record, std::make_shared<arrays::generation_chunks>(std::move(pinned), record));
}

array::implementation::implementation(arrays::transaction_state& owner,
                                      arrays::transaction_state::found_array found)
    : path(owner.path()), record(std::move(found.record)) {
  if (!found.written) {
    if (record.is_dense()) view = std::move(found.base);
    else
      tiles = std::make_shared<arrays::chunk_tiles>(
          label(), record,
          std::make_shared<arrays::generation_chunks>(std::move(*found.base), record));
  } else if (record.is_dense()) {
    mapped = owner.bytes_of(*found.written).as_read_only();
  } else {
    tiles = owner.read_tiles(found.written);
  }
}

std::string array::implementation::label() const { return label_of(record.name, path); }

tensor array::implementation::dense() {
  const std::lock_guard lock(mapping);
  if (!mapped && view)
    with_context([&] { return "map " + label(); },
                 [&] { mapped = arrays::map_dense(*view, record, path); });
  return tensor(mapped, record.dtype, layout(record.shape));
}

array::array(std::shared_ptr<implementation> made) noexcept : implementation_(std::move(made)) {}

const std::string& array::name() const noexcept { return implementation_->record.name; }

dtype array::dtype() const noexcept { return implementation_->record.dtype; }

const dims& array::shape() const noexcept { return implementation_->record.shape; }

index_t array::size() const noexcept {
  index_t product = 1;  // checked when the record was decoded
  for (const index_t each : shape()) product *= each;
  return product;
}

array_kind array::kind() const noexcept {
  return implementation_->record.is_dense() ? array_kind::dense : array_kind::chunked;
}

std::uint64_t array::size_bytes() const noexcept {
  return static_cast<std::uint64_t>(size()) * item_bytes(dtype());
}

std::uint64_t array::stored_bytes() const {
  const auto& record = implementation_->record;
  return record.is_dense() ? size_bytes() : record.chunked().stored_bytes;
}

const dims& array::chunk_shape() const noexcept {
  const auto& record = implementation_->record;
  return record.is_dense() ? record.shape : record.chunked().chunk_shape;
}

codec_spec array::codec() const {
  const auto& record = implementation_->record;
  return record.is_dense() ? arrays::codec_spec_of({})
                           : arrays::codec_spec_of(record.chunked().stages);
}

scalar array::fill_value() const {
  return arrays::scalar_of(implementation_->record.fill_value, dtype());
}

std::uint64_t array::modified() const noexcept { return implementation_->record.modified; }

std::vector<std::pair<std::string, std::string>> array::attributes() const {
  return implementation_->record.attributes;
}

tensor array::as_tensor() const {
  return kind() == array_kind::dense ? implementation_->dense() : read();
}

tensor array::read(const region& where, executor* on) const {
  auto& self = *implementation_;
  executor& chosen = parallel::choose(on);
  return with_context([&] { return fmt::format("read {} of {}", to_string(where), self.label()); },
                      [&] {
                        require_inside(where, shape());
                        if (self.tiles) return self.tiles->read(where, chosen);
                        const tensor result = tensor::empty(where.shape, dtype(), &chosen.pool());
                        const auto range = contiguous_range(where, shape(), item_bytes(dtype()));
                        if (range && self.view) {
                          arrays::read_dense(*self.view, self.record, self.label(), range->offset,
                                             result, chosen);
                        } else {
                          tensor from = self.dense();
                          for (index_t axis = 0; axis < rank(); ++axis)
                            from = from.narrow(axis, where.start[axis], where.shape[axis]);
                          parallel::copy_elements(result, from, chosen);
                          from.storage().check();
                        }
                        return result;
                      });
}

array::operator expr() const {
  return kind() == array_kind::dense ? expr(as_tensor()) : expr(tiles());
}

std::shared_ptr<const tile_source> array::tiles() const { return implementation_->tiles; }

}  // namespace shale
