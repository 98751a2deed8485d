// Matrices by rows: how their work is shared out among threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/grid.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// A piece of a row is worth a thread of its own if it has at least this many elements. A unit of
/// short rows has about this many.
inline constexpr index_t piece_elements_min = index_t{1} << 15;

/// The last axis of a tensor, and all others together.
struct row_shape {
  index_t rows;
  index_t length;

  explicit row_shape(const tensor& values)
      : rows(values.shape(-1) == 0 ? 0 : values.size() / values.shape(-1)),
        length(values.shape(-1)) {}
};

/// The pieces, a power of two, into which each row is cut: 1 if the rows keep the threads busy.
inline index_t pieces_of(const row_shape& shape, const executor& on) {
  if (shape.rows >= 2 * on.threads()) return 1;
  const auto wanted = std::bit_ceil(static_cast<std::uint64_t>(on.threads()));
  const auto most = std::bit_floor(
      static_cast<std::uint64_t>(std::max<index_t>(shape.length / piece_elements_min, 1)));
  return static_cast<index_t>(std::min(wanted, most));
}

/// Calls `body(row, worker)` for all rows, several of short ones in one unit. At most `workers_max`
/// threads work at once, or any number if it is 0.
template <class Body>
void for_each_row(const row_shape& shape, std::size_t item_bytes, executor& on, const Body& body,
                  int workers_max = 0) {
  const index_t together =
      std::max<index_t>(piece_elements_min / std::max<index_t>(shape.length, 1), 1);
  parallel::parallel_for_tiles(
      on, ceil_div(shape.rows, together),
      [&](index_t unit, int worker) {
        const index_t end = std::min(shape.rows, (unit + 1) * together);
        for (index_t row = unit * together; row < end; ++row) body(row, worker);
      },
      {.workers_max = workers_max,
       .progress_bytes = static_cast<std::uint64_t>(shape.rows * shape.length) * item_bytes});
}

/// The bounds of equal pieces of a sequence.
class equal_pieces {
 public:
  equal_pieces(index_t count, index_t pieces) : whole_(count / pieces), rest_(count % pieces) {}
  index_t start(index_t piece) const { return whole_ * piece + std::min(piece, rest_); }

 private:
  index_t whole_, rest_;
};

}  // namespace shale::ops
