#include "ops/linalg/matrix_batch.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "core/grid.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"
#include "ops/linalg/blas_buffer.hpp"
#include "ops/linalg/blas_kernels.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/executor/worker_scratch.hpp"
#include "shale/error.hpp"

namespace shale::ops {

namespace {

/// Small matrices share a tile. A shared tile has about this many multiplications.
constexpr double tile_multiplications = 1 << 20;

/// The elements of a matrix, with strides in bytes.
struct strided_elements {
  std::byte* first;
  index_t row_stride;
  index_t column_stride;
};

/// If rows lie apart, each element that is copied touches a cache line of its own. So matrices are
/// copied by strips of this many elements: their lines are still in the cache when the next
/// elements of the same lines are copied.
constexpr index_t strip = 64;

/// Copies elements by a kernel. The inner loop runs along the axis with the smaller stride of the
/// output.
void copy_matrix(parallel::kernel convert, const strided_elements& to, const strided_elements& from,
                 index_t rows, index_t columns) {
  index_t inner_to = to.row_stride, inner_from = from.row_stride;
  index_t outer_to = to.column_stride, outer_from = from.column_stride;
  index_t inner = rows, outer = columns;
  if (std::abs(outer_to) < std::abs(inner_to)) {
    std::swap(inner_to, outer_to);
    std::swap(inner_from, outer_from);
    std::swap(inner, outer);
  }
  if (outer == 0) return;
  const index_t strides[] = {inner_to, inner_from, outer_to, outer_from};
  for (index_t first = 0; first < inner; first += strip) {
    std::byte* const data[] = {to.first + first * inner_to, from.first + first * inner_from};
    convert(data, strides, std::min(strip, inner - first), outer);
  }
}

}  // namespace

matrix_batch::matrix_batch(const tensor& matrices)
    : matrices_(matrices),
      count_(element_count(batch_of(matrices.shape()))),
      rows_(lapack::integer_of(matrices.shape(-2))),
      columns_(lapack::integer_of(matrices.shape(-1))) {}

std::byte* matrix_batch::at(index_t number) const noexcept {
  auto* const first = const_cast<std::byte*>(matrices_.data());
  if (rows_ == 0 || columns_ == 0) return first;
  index_t offset = 0;
  detail::for_each_coordinate(
      number, matrices_.shape(), matrices_.rank() - 2,
      [&](index_t axis, index_t position) { offset += position * matrices_.strides()[axis]; });
  return first + offset * static_cast<index_t>(matrices_.item_bytes());
}

void matrix_batch::load_as(dtype type, index_t number, std::byte* to, index_t leading) const {
  const auto item = static_cast<index_t>(matrices_.item_bytes());
  const auto made = static_cast<index_t>(item_bytes(type));
  copy_matrix(find_cast(matrices_.dtype(), type), {to, made, made * std::max<index_t>(leading, 1)},
              {at(number), matrices_.stride(-2) * item, matrices_.stride(-1) * item}, rows_,
              columns_);
}

void matrix_batch::store_as(index_t number, const std::byte* from, index_t leading) const {
  const auto item = static_cast<index_t>(matrices_.item_bytes());
  copy_matrix(find_cast(matrices_.dtype(), matrices_.dtype()),
              {at(number), matrices_.stride(-2) * item, matrices_.stride(-1) * item},
              {const_cast<std::byte*>(from), item, item * std::max<index_t>(leading, 1)}, rows_,
              columns_);
}

tensor empty_columns(const dims& batch, index_t rows, index_t columns, dtype type, executor& on) {
  return tensor::empty(with_matrix(batch, columns, rows), type, &on.pool()).swapaxes(-2, -1);
}

dims batch_of(const dims& shape) {
  return shape.size() < 2 ? dims() : dims(shape.begin(), shape.end() - 2);
}

dims with_matrix(dims batch, index_t rows, index_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

dims with_vector(dims batch, index_t length) {
  batch.push_back(length);
  return batch;
}

std::size_t work_parts::add_bytes(index_t count, std::size_t item) {
  constexpr std::size_t alignment = 64, most = std::size_t{1} << 62;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(count), item, &bytes) || bytes > most ||
      bytes_ > most)
    throw error(errc::out_of_memory, "the work memory of LAPACK exceeds all address space",
                {"wanted " + std::to_string(count) + " elements for one matrix"});
  const std::size_t begin = bytes_;
  bytes_ += (bytes + alignment - 1) / alignment * alignment;
  return begin;
}

std::optional<failed_matrix> run_matrices(const batch_work& work, executor& on,
                                          lapack::integer (*body)(void*, index_t, std::byte*),
                                          void* context) {
  check_blas_kernels();
  auto& count = parallel::state_of(on).count;
  count.read(work.read_bytes);
  parallel::worker_scratch scratch(work.bytes, on);
  const auto together = std::max<index_t>(
      1, static_cast<index_t>(tile_multiplications / std::max(work.multiplications, 1.0)));

  std::mutex mutex;
  std::optional<failed_matrix> failed;
  const auto is_needed = [&](index_t number) {
    const std::lock_guard lock(mutex);
    return !failed || number < failed->number;
  };
  auto compute_tile = [&](index_t tile, int worker) {
    if (!is_needed(tile * together)) return;
    std::byte* const memory = scratch.of(worker);
    const blas_buffer held;
    const index_t end = std::min(work.count, (tile + 1) * together);
    for (index_t number = tile * together; number < end; ++number) {
      parallel::require_not_cancelled(on);
      const lapack::integer info = body(context, number, memory);
      if (info == 0) continue;
      const std::lock_guard lock(mutex);
      if (!failed || number < failed->number) failed = failed_matrix{number, info};
      return;
    }
  };
  parallel::parallel_for_tiles(
      on, ceil_div(work.count, together), compute_tile,
      {.workers_max = scratch.workers(), .progress_bytes = work.read_bytes});
  return failed;
}

}  // namespace shale::ops
