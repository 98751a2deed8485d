#include "array/elements/chunk_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "array/elements/chunk_places.hpp"
#include "array/elements/prefetch.hpp"
#include "core/allocating.hpp"
#include "core/grid.hpp"
#include "core/stored_bools.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/mapped/stored_checksums.hpp"
#include "parallel/operands/loop_operand.hpp"
#include "parallel/sources/load_tile.hpp"
#include "shale/error.hpp"
#include "shale/expr.hpp"
#include "shale/memory_pool.hpp"
#include "storage/blocks/backing.hpp"
#include "tensor/parts.hpp"

namespace shale::arrays {

namespace {

tensor element_tensor(const std::vector<std::byte>& element, dtype type) {
  storage bytes = storage::allocate(element.size());
  std::memcpy(bytes.data(), element.data(), element.size());
  return tensor(bytes, type, layout());
}

format::bytes_span bytes_of(const tensor& contiguous) {
  return {const_cast<std::byte*>(contiguous.data()), contiguous.size_bytes()};
}

// If two arrays have equal texts, the same stored bytes decode to the same elements in both.
std::string form_of(dtype type, const format::chunked_layout& layout) {
  std::string form = fmt::format("{} {}", name(type), to_string(layout.chunk_shape));
  for (const format::codec_stage& stage : layout.stages)
    form += fmt::format(" {}:{}", static_cast<int>(stage.kind), stage.parameter);
  return form;
}

bool is_whole(const tensor& values, const dims& chunk_shape) {
  return values.shape() == chunk_shape && values.is_contiguous();
}

}  // namespace

chunk_tiles::chunk_tiles(std::string label, const format::array_record& record,
                         std::shared_ptr<chunk_store> store,
                         std::shared_ptr<const parallel::tile_owner> owner)
    : label_(std::move(label)),
      dtype_(record.dtype),
      shape_(record.shape),
      layout_(record.chunked()),
      chunk_bytes_(static_cast<std::size_t>(format::chunk_bytes(record))),
      fill_value_(element_tensor(record.fill_value, record.dtype)),
      fill_is_zero_(std::all_of(record.fill_value.begin(), record.fill_value.end(),
                                [](std::byte byte) { return byte == std::byte{0}; })),
      codec_(layout_.stages, record.dtype),
      store_(std::move(store)),
      owner_(std::move(owner)),
      form_(owner_ ? form_of(dtype_, layout_) : std::string()) {}

std::string chunk_tiles::frame(const char* doing, const dims& tile) const {
  return fmt::format("{} chunk {} of {}", doing, to_string(tile), label_);
}

void chunk_tiles::require_inside(const dims& tile) const {
  const region grid{dims::filled(shape_.size(), 0), shape_};
  const detail::tile_range all = detail::tiles_under(grid, layout_.chunk_shape);
  bool inside = tile.size() == shape_.size();
  for (index_t axis = 0; inside && axis < tile.size(); ++axis)
    inside = tile[axis] >= 0 && tile[axis] < all.count[axis];
  if (!inside)
    throw error(
        errc::invalid_argument, "there is no such tile",
        {fmt::format("got tile {}, the grid is {}", to_string(tile), to_string(all.count))});
}

void chunk_tiles::require_tile(const dims& tile, const tensor& values) const {
  require_inside(tile);
  const region covered = tile_region(shape_, layout_.chunk_shape, tile);
  if (values.dtype() != dtype_ || values.shape() != covered.shape)
    throw error(errc::invalid_argument, "the tensor does not fit the tile",
                {fmt::format("got {} {}, wanted {} {}", name(values.dtype()),
                             to_string(values.shape()), name(dtype_), to_string(covered.shape))});
}

void chunk_tiles::load(const dims& tile, const tensor& into) const {
  require_tile(tile, into);
  detail::reporting([&] { return frame("read", tile); },
                    [&] {
                      parallel::require_output(into);
                      if (!decode_stored(format::chunk_number(layout_, tile), into)) fill(into);
                    });
}

// Reads and decodes the chunk into `into`. Returns false if the chunk is absent.
//
// Readers of a transaction's chunks take no lock between `find` and `read`. Meanwhile another
// thread may replace the chunk and reuse its old space, so that the checksum is wrong. In that case
// the transaction has taken space, and the chunk is looked up again. If it has not, the bytes really
// are damaged. That the entry is still the same would not prove it: a chunk that is replaced by
// itself twice may be back at its old place. Attempts are limited, because other threads may take
// space all the time while the bytes are damaged.
bool chunk_tiles::decode_stored(std::uint64_t number, const tensor& into) const {
  constexpr int attempts_max = 100;
  for (int attempt = 1;; ++attempt) {
    const std::uint64_t taken = store_->times_space_taken();
    const auto entry = store_->find(number);
    if (!entry) return false;
    const auto staged = format::codec_workspace::of_this_thread().staging(
        static_cast<std::size_t>(entry->stored_bytes));
    try {
      store_->read(*entry, staged);
      decode(staged, entry->flags, into, executor::current().pool());
      return true;
    } catch (const error& failure) {
      if (failure.code() != errc::corrupt || attempt == attempts_max ||
          store_->times_space_taken() == taken)
        throw;
    }
  }
}

// Returns the elements of the tile, which the executor keeps decoded; nothing if the chunk is
// absent. Chunks of a generation do not change, so the entry is looked up only once.
//
// A tile at the edge of the array is kept without the elements beyond the edge. Its strides decide
// the order in which it is folded, so they must be the same as those of a tile that is not kept.
//
// A kept tile may outlive the call's pool, so it lies in the default pool. If the default pool has
// no room, the call gets the tile in its own pool, and the tile is not kept.
std::optional<tensor> chunk_tiles::decoded_chunk(const dims& tile, executor& on) const {
  auto& state = parallel::state_of(on);
  const region covered = tile_region(shape_, layout_.chunk_shape, tile);
  const std::size_t bytes =
      static_cast<std::size_t>(element_count(covered.shape)) * item_bytes(dtype_);
  const auto entry = store_->find(format::chunk_number(layout_, tile));
  if (!entry) {
    state.count.source_tile(bytes, 0);
    return std::nullopt;
  }
  const bool is_cut = covered.shape != layout_.chunk_shape;
  const parallel::stored_tile stored{
      .owner = owner_->number(),
      .offset = entry->offset,
      .bytes = entry->stored_bytes,
      .checksum = entry->checksum,
      .flags = entry->flags,
      .form = is_cut ? form_ + " as " + to_string(covered.shape) : form_};
  const auto load_into = [&](memory_pool& pool) {
    const tensor elements = tensor::empty(covered.shape, dtype_, &pool);
    const auto staged = format::codec_workspace::of_this_thread().staging(
        static_cast<std::size_t>(entry->stored_bytes));
    store_->read(*entry, staged);
    decode(staged, entry->flags, elements, pool);
    return elements;
  };
  auto chunk = [&]() -> parallel::decoded_tile_cache::result {
    memory_pool& lasting = memory_pool::default_pool();
    try {
      return state.decoded.get(stored, [&] { return load_into(lasting); });
    } catch (const error& failed) {
      if (failed.code() != errc::out_of_memory || &on.pool() == &lasting) throw;
      return {load_into(on.pool()), false};
    }
  }();
  if (chunk.found) state.count.tile_found();
  else state.count.source_tile(bytes, entry->stored_bytes);
  return std::move(chunk.values);
}

tensor chunk_tiles::decoded_tile(const dims& tile, executor& on) const {
  require_inside(tile);
  return detail::reporting([&] { return frame("read", tile); },
                           [&] {
                             if (const auto chunk = decoded_chunk(tile, on)) return *chunk;
                             const dims shape =
                                 tile_region(shape_, layout_.chunk_shape, tile).shape;
                             const tensor values = tensor::empty(shape, dtype_, &on.pool());
                             fill(values);
                             return values;
                           });
}

void chunk_tiles::decode(format::bytes_view stored, std::uint32_t flags, const tensor& into,
                         memory_pool& pool) const {
  auto& workspace = format::codec_workspace::of_this_thread();
  if (is_whole(into, layout_.chunk_shape)) {
    codec_.decode(stored, flags, bytes_of(into), workspace);
    return;
  }
  const tensor whole = tensor::empty(layout_.chunk_shape, dtype_, &pool);
  codec_.decode(stored, flags, bytes_of(whole), workspace);
  const region inside{dims::filled(shape_.size(), 0), into.shape()};
  parallel::copy_elements_here(into, detail::narrowed(whole, inside, inside.start));
}

void chunk_tiles::fill(const tensor& into) const {
  if (fill_is_zero_ && into.is_contiguous())
    std::memset(bytes_of(into).data(), 0, bytes_of(into).size());
  else parallel::copy_elements_here(into, fill_value_.broadcast_to(into.shape()));
}

bool chunk_tiles::is_fill(format::bytes_view elements) const noexcept {
  // The first element must be the fill value. Then each later byte must equal the byte one element
  // before it; this is one comparison of the elements with themselves, shifted by one element.
  const std::size_t item = item_bytes(dtype_);
  return std::memcmp(elements.data(), fill_value_.data(), item) == 0 &&
         std::memcmp(elements.data() + item, elements.data(), elements.size() - item) == 0;
}

// chunks.2. Elements that bitround rounds to the fill value count as the fill value. Most chunks
// begin with another value, so the first element is rounded and compared before the others.
bool chunk_tiles::reads_as_fill(format::bytes_view chunk) const {
  if (is_fill(chunk)) return true;
  auto& workspace = format::codec_workspace::of_this_thread();
  const format::bytes_view first = chunk.first(item_bytes(dtype_));
  return is_fill(codec_.rounded(first, workspace)) && is_fill(codec_.rounded(chunk, workspace));
}

// Makes the elements of a whole chunk, ready to be encoded.
tensor chunk_tiles::whole_chunk(const tensor& values) const {
  tensor whole = values;
  memory_pool& pool = executor::current().pool();
  if (!is_whole(values, layout_.chunk_shape)) {
    whole = tensor::empty(layout_.chunk_shape, dtype_, &pool);
    const region inside{dims::filled(shape_.size(), 0), values.shape()};
    if (values.shape() != layout_.chunk_shape) fill(whole);  // chunks.1
    parallel::copy_elements_here(detail::narrowed(whole, inside, inside.start), values);
  }
  if (dtype_ == dtype::boolean && detail::has_odd_bools(bytes_of(whole))) {
    whole = whole.clone(&pool);
    detail::make_stored_bools(bytes_of(whole));
  }
  return whole;
}

// The caller has a claim on the chunk.
void chunk_tiles::replace(const dims& tile, const tensor& values) {
  detail::reporting([&] { return frame("write", tile); },
                    [&] {
                      const tensor whole = whole_chunk(values);
                      const std::uint64_t number = format::chunk_number(layout_, tile);
                      const format::bytes_view elements = bytes_of(whole);
                      if (reads_as_fill(elements)) {
                        store_->erase(number);
                        return;
                      }
                      auto& workspace = format::codec_workspace::of_this_thread();
                      store_->put(number, codec_.encode(elements, workspace));
                    });
}

chunk_claims::claim chunk_tiles::claim(const dims& tile) {
  return detail::reporting([&] { return frame("write", tile); },
                           [&] { return store_->claim(format::chunk_number(layout_, tile)); });
}

void chunk_tiles::store(const dims& tile, const tensor& values) {
  require_tile(tile, values);
  const auto alone = claim(tile);
  replace(tile, values);
}

void chunk_tiles::store_encoded(const dims& tile, const format::encoded_chunk& chunk) {
  require_inside(tile);
  const auto alone = claim(tile);
  detail::reporting([&] { return frame("write", tile); },
                    [&] { store_->put(format::chunk_number(layout_, tile), chunk); });
}

void chunk_tiles::store_part(const dims& tile, const chunk_places& places, const tensor& values,
                             executor& on) {
  const region covered = tile_region(shape_, layout_.chunk_shape, tile);
  if (places.shape() == covered.shape) return store(tile, values);  // they cover the whole tile
  const tensor whole = tensor::empty(covered.shape, dtype_, &on.pool());
  const auto alone = claim(tile);
  parallel::load_tile(*this, tile, whole, on);
  parallel::copy_elements_here(places.inside(whole, covered.start), values);
  replace(tile, whole);
}

void chunk_tiles::prefetch(const dims& tile) const noexcept {
  try {
    if (const auto entry = store_->find(format::chunk_number(layout_, tile)))
      prefetch_range(store_->descriptor(), {entry->offset, entry->stored_bytes});
  } catch (...) {
    // This is only a hint. If loading the tile fails too, that reports the error.
  }
}

std::uint64_t chunk_tiles::stored_bytes(const dims& tile) const {
  require_inside(tile);
  const auto entry =
      detail::allocating([&] { return store_->find(format::chunk_number(layout_, tile)); });
  return entry ? entry->stored_bytes : 0;
}

// Limits the threads so that their chunks fit in half of the memory budget. Each thread holds about
// four chunks: the stored bytes, two buffers of the codec's stages, and the decoded chunk.
int chunk_tiles::workers(executor& on) const noexcept {
  const std::size_t allowed = on.memory_bytes() / 2 / (4 * chunk_bytes_);
  return static_cast<int>(
      std::clamp<std::size_t>(allowed, 1, static_cast<std::size_t>(on.threads())));
}

// Reads the elements of a part of a tile.
void chunk_tiles::read_part(const dims& tile, const region& part, const tensor& into, bool kept,
                            executor& on) const {
  const region covered = tile_region(shape_, layout_.chunk_shape, tile);
  const auto copy_from = [&](const tensor& chunk) {
    parallel::copy_elements_here(into, detail::narrowed(chunk, part, covered.start));
  };
  if (!kept) {
    const tensor whole = tensor::empty(covered.shape, dtype_, &on.pool());
    parallel::load_tile(*this, tile, whole, on);
    copy_from(whole);
    return;
  }
  detail::reporting([&] { return frame("read", tile); },
                    [&] {
                      if (const auto chunk = decoded_chunk(tile, on)) copy_from(*chunk);
                      else fill(into);
                    });
}

// Read-ahead: the thread that loads chunk n asks the kernel for chunk n + ahead. Chunks are taken
// in order, so the kernel always knows about the next few chunks of all threads, and the device
// works while the threads decode.
void chunk_tiles::read(const region& part, const tensor& result, executor& on) const {
  const detail::tile_range touched = detail::tiles_under(part, layout_.chunk_shape);
  parallel::axis_map seen = parallel::axis_map::identity(part.shape);
  seen.base = part.start;
  const bool kept = parallel::to_keep_decoded(*this, seen, on) != nullptr;
  const index_t ahead = chunks_ahead * on.threads();
  const auto prefetch_number = [&](index_t number) {
    if (number < touched.size()) prefetch(touched.at(number));
  };
  if (touched.size() > 1)
    for (index_t number = 0; number < ahead; ++number) prefetch_number(number);
  parallel::parallel_for_tiles(on, touched.size(),
                               [&](index_t number, int) {
                                 prefetch_number(number + ahead);
                                 const dims tile = touched.at(number);
                                 const region covered =
                                     tile_region(shape_, layout_.chunk_shape, tile);
                                 const region piece = detail::intersection(covered, part);
                                 const tensor into = detail::narrowed(result, piece, part.start);
                                 if (piece == covered) parallel::load_tile(*this, tile, into, on);
                                 else read_part(tile, piece, into, kept, on);
                               },
                               {.workers_max = workers(on), .progress_bytes = result.size_bytes()});
  parallel::state_of(on).count.pass();
}

// The values are read in place. But the values of a mapping are copied and then checked, so that
// bytes that the mapping has lost meanwhile are never stored.
void chunk_tiles::write(const chunk_places& places, const tensor& values, executor& on) {
  parallel::compare_checksums(values, on);
  values.storage().check();
  const bool copied = detail::is_mapped(values.storage());
  const dims pieces = places.pieces(layout_.chunk_shape);
  parallel::parallel_for_tiles(on, element_count(pieces),
                               [&](index_t number, int) {
                                 const dims at = detail::unravel(number, pieces);
                                 const dims tile = places.chunk_of(at, layout_.chunk_shape);
                                 const region indices = places.indices_of(
                                     {at, dims::filled(at.size(), 1)}, layout_.chunk_shape);
                                 const chunk_places piece = places.part(indices);
                                 const tensor from = detail::narrowed(values, indices);
                                 if (from.dtype() == dtype_ && !copied)
                                   return store_part(tile, piece, from, on);
                                 const tensor stored =
                                     tensor::empty(indices.shape, dtype_, &on.pool());
                                 if (from.dtype() == dtype_)
                                   parallel::copy_elements_here(stored, from);
                                 else eval_into(stored, expr(from));
                                 values.storage().check();
                                 store_part(tile, piece, stored, on);
                               },
                               {.workers_max = workers(on), .progress_bytes = values.size_bytes()});
  auto& count = parallel::state_of(on).count;
  count.pass();
  count.written(values.size_bytes());
}

void chunk_tiles::store_again(std::span<const format::numbered_chunk> chunks, executor& on) {
  parallel::parallel_for_tiles(
      on, static_cast<index_t>(chunks.size()),
      [&](index_t position, int) {
        const dims tile =
            format::chunk_index(layout_, chunks[static_cast<std::size_t>(position)].number);
        const region covered = tile_region(shape_, layout_.chunk_shape, tile);
        const tensor elements = tensor::empty(covered.shape, dtype_, &on.pool());
        load(tile, elements);
        store(tile, elements);
      },
      {.workers_max = workers(on)});
}

}  // namespace shale::arrays
