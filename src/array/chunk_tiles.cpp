#include "array/chunk_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "array/chunk_grid.hpp"
#include "array/read_ahead.hpp"
#include "parallel/copy.hpp"
#include "parallel/load_tile.hpp"
#include "parallel/tile_loop.hpp"
#include "shale/error.hpp"
#include "shale/expr.hpp"

namespace shale::arrays {

namespace {

// Chunks whose stored bytes are asked for before they are needed, for each thread.
constexpr index_t chunks_ahead = 4;

tensor element_tensor(const std::vector<std::byte>& element, dtype type) {
  storage bytes = storage::allocate(element.size());
  std::memcpy(bytes.data(), element.data(), element.size());
  return tensor(bytes, type, layout());
}

format::bytes_span bytes_of(const tensor& contiguous) {
  return {const_cast<std::byte*>(contiguous.data()), contiguous.size_bytes()};
}

bool is_whole(const tensor& values, const dims& chunk_shape) {
  return values.shape() == chunk_shape && values.is_contiguous();
}

}  // namespace

chunk_tiles::chunk_tiles(std::string label, const format::array_record& record,
                         std::shared_ptr<chunk_store> store)
    : label_(std::move(label)),
      dtype_(record.dtype),
      shape_(record.shape),
      layout_(record.chunked()),
      chunk_bytes_(static_cast<std::size_t>(format::chunk_bytes(record))),
      fill_value_(element_tensor(record.fill_value, record.dtype)),
      fill_is_zero_(std::all_of(record.fill_value.begin(), record.fill_value.end(),
                                [](std::byte each) { return each == std::byte{0}; })),
      codec_(layout_.stages, record.dtype),
      store_(std::move(store)) {}

std::string chunk_tiles::frame(const char* doing, const dims& tile) const {
  return fmt::format("{} chunk {} of {}", doing, to_string(tile), label_);
}

void chunk_tiles::require_tile(const dims& tile, const tensor& values) const {
  const region grid{dims::filled(shape_.size(), 0), shape_};
  const tile_range all = tiles_touched(grid, layout_.chunk_shape);
  bool inside = tile.size() == shape_.size();
  for (index_t axis = 0; inside && axis < tile.size(); ++axis)
    inside = tile[axis] >= 0 && tile[axis] < all.count[axis];
  if (!inside)
    throw error(
        errc::invalid_argument, "there is no such tile",
        {fmt::format("got tile {}, the grid is {}", to_string(tile), to_string(all.count))});
  const region covered = tile_region(shape_, layout_.chunk_shape, tile);
  if (values.dtype() != dtype_ || values.shape() != covered.shape)
    throw error(errc::invalid_argument, "the tensor is no such tile",
                {fmt::format("got {} {}, wanted {} {}", name(values.dtype()),
                             to_string(values.shape()), name(dtype_), to_string(covered.shape))});
}

void chunk_tiles::load(const dims& tile, const tensor& into) const {
  require_tile(tile, into);
  with_context([&] { return frame("read", tile); },
               [&] {
                 if (!decode_stored(format::chunk_number(layout_, tile), into)) fill(into);
               });
}

// False if the chunk is absent.
bool chunk_tiles::decode_stored(std::uint64_t number, const tensor& into) const {
  auto entry = store_->find(number);
  while (entry) {
    const auto staged = format::codec_workspace::of_this_thread().staging(
        static_cast<std::size_t>(entry->stored_bytes));
    try {
      store_->read(*entry, staged);
      decode(staged, entry->flags, into);
      return true;
    } catch (const error& failure) {
      // A transaction may have replaced the chunk, and used its old space again, since `find`.
      const auto now = store_->find(number);
      if (failure.code() != errc::corrupt || now == entry) throw;
      entry = now;
    }
  }
  return false;
}

void chunk_tiles::decode(format::bytes_view stored, std::uint32_t flags, const tensor& into) const {
  auto& workspace = format::codec_workspace::of_this_thread();
  if (is_whole(into, layout_.chunk_shape)) {
    codec_.decode(stored, flags, bytes_of(into), workspace);
    return;
  }
  const tensor whole = tensor::empty(layout_.chunk_shape, dtype_);
  codec_.decode(stored, flags, bytes_of(whole), workspace);
  const region inside{dims::filled(shape_.size(), 0), into.shape()};
  parallel::copy_elements_here(into, part(whole, inside, inside.start));
}

void chunk_tiles::fill(const tensor& into) const {
  if (fill_is_zero_ && into.is_contiguous())
    std::memset(bytes_of(into).data(), 0, bytes_of(into).size());
  else parallel::copy_elements_here(into, fill_value_.expand(into.shape()));
}

bool chunk_tiles::is_fill(format::bytes_view chunk) const noexcept {
  // The first element is the fill value, and every later byte equals the one an element before.
  const std::size_t item = item_bytes(dtype_);
  return std::memcmp(chunk.data(), fill_value_.data(), item) == 0 &&
         std::memcmp(chunk.data() + item, chunk.data(), chunk.size() - item) == 0;
}

void chunk_tiles::store(const dims& tile, const tensor& from) {
  require_tile(tile, from);
  with_context([&] { return frame("write", tile); },
               [&] {
                 tensor whole = from;
                 if (!is_whole(from, layout_.chunk_shape)) {
                   whole = tensor::empty(layout_.chunk_shape, dtype_);
                   const region inside{dims::filled(shape_.size(), 0), from.shape()};
                   if (from.shape() != layout_.chunk_shape) fill(whole);  // chunks.1
                   parallel::copy_elements_here(part(whole, inside, inside.start), from);
                 }
                 const std::uint64_t number = format::chunk_number(layout_, tile);
                 const format::bytes_view elements = bytes_of(whole);
                 if (is_fill(elements)) {
                   store_->erase(number);
                   return;
                 }
                 auto& workspace = format::codec_workspace::of_this_thread();
                 store_->put(number, codec_.encode(elements, workspace));
               });
}

void chunk_tiles::prefetch(const dims& tile) const noexcept {
  try {
    if (const auto entry = store_->find(format::chunk_number(layout_, tile)))
      read_ahead(store_->descriptor(), {entry->offset, entry->stored_bytes});
  } catch (...) {
    // A hint: whoever loads the tile meets the same failure and reports it.
  }
}

std::uint64_t chunk_tiles::stored_bytes(const dims& tile) const {
  const auto entry = store_->find(format::chunk_number(layout_, tile));
  return entry ? entry->stored_bytes : 0;
}

// A thread holds the stored bytes, the stages between, and a decoded chunk.
int chunk_tiles::workers(executor& on) const noexcept {
  const std::size_t allowed = on.memory_bytes() / 2 / (4 * chunk_bytes_);
  return static_cast<int>(
      std::clamp<std::size_t>(allowed, 1, static_cast<std::size_t>(on.threads())));
}

tensor chunk_tiles::read(const region& where, executor& on) const {
  const tensor result = tensor::empty(where.shape, dtype_, &on.pool());
  const tile_range touched = tiles_touched(where, layout_.chunk_shape);
  const index_t ahead = chunks_ahead * on.threads();
  const auto prefetch_number = [&](index_t number) {
    if (number < touched.size()) prefetch(touched.at(number));
  };
  if (touched.size() > 1)
    for (index_t number = 0; number < ahead; ++number) prefetch_number(number);
  parallel::for_each_tile(on, touched.size(),
                          [&](index_t number, int) {
                            prefetch_number(number + ahead);
                            const dims tile = touched.at(number);
                            const region covered = tile_region(shape_, layout_.chunk_shape, tile);
                            const region piece = intersection(covered, where);
                            const tensor into = part(result, piece, where.start);
                            if (piece == covered) {
                              parallel::load_tile(*this, tile, into, on);
                            } else {
                              const tensor whole = tensor::empty(covered.shape, dtype_, &on.pool());
                              parallel::load_tile(*this, tile, whole, on);
                              parallel::copy_elements_here(into, part(whole, piece, covered.start));
                            }
                          },
                          {.most_workers = workers(on), .progress_bytes = result.size_bytes()});
  on.state().count.calls.fetch_add(1, std::memory_order_relaxed);
  return result;
}

void chunk_tiles::write(const region& where, const tensor& values, executor& on) {
  const tile_range touched = tiles_touched(where, layout_.chunk_shape);
  parallel::for_each_tile(on, touched.size(),
                          [&](index_t number, int) {
                            const dims tile = touched.at(number);
                            const region covered = tile_region(shape_, layout_.chunk_shape, tile);
                            const region piece = intersection(covered, where);
                            const tensor from = part(values, piece, where.start);
                            if (piece == covered && from.dtype() == dtype_) {
                              store(tile, from);
                              return;
                            }
                            const tensor whole = tensor::empty(covered.shape, dtype_, &on.pool());
                            if (piece != covered) parallel::load_tile(*this, tile, whole, on);
                            const tensor into = part(whole, piece, covered.start);
                            if (from.dtype() == dtype_) parallel::copy_elements_here(into, from);
                            else eval_into(into, expr(from), &on);
                            store(tile, whole);
                          },
                          {.most_workers = workers(on), .progress_bytes = values.size_bytes()});
  auto& count = on.state().count;
  count.calls.fetch_add(1, std::memory_order_relaxed);
  count.bytes_written.fetch_add(values.size_bytes(), std::memory_order_relaxed);
}

}  // namespace shale::arrays
