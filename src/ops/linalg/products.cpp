#include "ops/linalg/products.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>

#include "core/grid.hpp"
#include "core/widened.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"
#include "ops/linalg/gemm.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/mapped/stored_checksums.hpp"
#include "parallel/pass/copy.hpp"
#include "parallel/plan/fault_around.hpp"
#include "shale/error.hpp"
#include "storage/blocks/backing.hpp"

namespace shale::ops {

namespace {

/// Rows and columns of one tile of a product. They are fixed, so that results do not depend on
/// threads. They are far below what BLAS counts, whatever the extents of the operands.
constexpr index_t tile_extent = 512;

/// Small matrices of a batch share a tile. A shared tile has about this many multiplications.
constexpr index_t tile_work = index_t{1} << 20;

/// The least memory for blocks, even if the budget is smaller.
constexpr std::size_t block_room_min = std::size_t{1} << 20;

/// Matrix `number` of a batch. Matrices are counted row-major over the axes before the last two. A
/// matrix without elements may have no address, so no offset is added for it.
matrix matrix_of_batch(const tensor& batch, index_t number) {
  const index_t axes = batch.rank() - 2;
  if (batch.size() == 0) return {batch.data(), batch.shape()[axes], batch.shape()[axes + 1], 0, 0};
  index_t offset = 0;
  detail::for_each_coordinate(number, batch.shape(), axes, [&](index_t axis, index_t position) {
    offset += position * batch.strides()[axis];
  });
  auto* first = const_cast<std::byte*>(batch.data());
  return {first + offset * static_cast<index_t>(batch.item_bytes()), batch.shape()[axes],
          batch.shape()[axes + 1], batch.strides()[axes], batch.strides()[axes + 1]};
}

/// Multiplies operands that `multiply` reads in place. The result is cut into square tiles, which
/// are computed in parallel; each tile sums over the whole inner axis.
void multiply_in_memory(const tensor& out, const tensor& a, const tensor& b, product mode,
                        executor& on) {
  const index_t rank = out.rank();
  const index_t m = out.shape()[rank - 2], n = out.shape()[rank - 1], k = a.shape()[rank - 1];
  const index_t batches = out.size() / (m * n);
  const index_t tile_rows = ceil_div(m, tile_extent), tile_columns = ceil_div(n, tile_extent);
  const index_t tiles = tile_rows * tile_columns;
  const std::size_t item = out.item_bytes();
  if (tiles > 1) {
    parallel::parallel_for_tiles(on, batches * tiles, [&](index_t tile, int) {
      const index_t row = tile % tiles / tile_columns * tile_extent;
      const index_t column = tile % tile_columns * tile_extent;
      const index_t rows = std::min(tile_extent, m - row);
      const index_t columns = std::min(tile_extent, n - column);
      const index_t batch = tile / tiles;
      multiply(out.dtype(), matrix_of_batch(out, batch).block(row, rows, column, columns, item),
               matrix_of_batch(a, batch).block(row, rows, 0, k, item),
               matrix_of_batch(b, batch).block(0, k, column, columns, item), mode);
    });
    return;
  }
  const index_t work = m * n * std::min(k, tile_work) + 1;
  const index_t together = std::max<index_t>(1, tile_work / work);
  parallel::parallel_for_tiles(on, ceil_div(batches, together), [&](index_t tile, int) {
    const index_t end = std::min(batches, (tile + 1) * together);
    for (index_t batch = tile * together; batch < end; ++batch)
      multiply(out.dtype(), matrix_of_batch(out, batch), matrix_of_batch(a, batch),
               matrix_of_batch(b, batch), mode);
  });
}

// ---- operands that are brought into memory ------------------------------------------------------

/// The matrices of a batch without the repetitions along broadcast axes.
tensor distinct(const tensor& values) {
  tensor once = values;
  for (index_t axis = 0; axis < values.rank() - 2; ++axis)
    if (values.strides()[axis] == 0 && values.shape()[axis] > 1) once = once.narrow(axis, 0, 1);
  return once;
}

/// Whether the matrices are stored column by column.
bool is_column_major(const tensor& values) {
  return std::abs(values.stride(-2)) < std::abs(values.stride(-1));
}

/// Copies the values to memory that `multiply` reads in place, converted to `type`, in the same
/// storage order if BLAS can count its strides.
tensor brought_in(const tensor& values, dtype type, executor& on) {
  const tensor source = distinct(values);
  const index_t rank = source.rank();
  dims shape = source.shape();
  const bool columns_first =
      readable_by_columns(shape[rank - 2], shape[rank - 1], is_column_major(source));
  if (columns_first) std::swap(shape[rank - 2], shape[rank - 1]);
  tensor made = tensor::empty(shape, type, &on.pool());
  if (columns_first) made = made.swapaxes(-2, -1);
  parallel::copy_elements_by(find_cast(source.dtype(), type), made, source, on,
                             parallel::streams_if::mapped);
  return made.broadcast_to(values.shape());
}

/// One operand of a product, and how it is brought into memory.
struct operand {
  tensor values;
  dtype type;      // the dtype in which the product is computed
  bool copied;     // `multiply` cannot read it in place
  bool in_memory;  // it is neither copied nor in a mapped file

  operand(const tensor& matrices, dtype computed) : values(matrices), type(computed) {
    const index_t rank = matrices.rank();
    copied = matrices.dtype() != type ||
             !readable_in_place({nullptr, matrices.shape(rank - 2), matrices.shape(rank - 1),
                                 matrices.stride(rank - 2), matrices.stride(rank - 1)});
    in_memory = !copied && !detail::is_mapped(matrices.storage());
  }

  operand part(const tensor& matrices) const {
    operand result = *this;
    result.values = matrices;
    return result;
  }

  /// The bytes of memory that `loaded` takes.
  std::size_t room_bytes() const {
    return in_memory ? 0 : static_cast<std::size_t>(distinct(values).size()) * item_bytes(type);
  }

  /// The bytes that become resident when `readable` is read. For a mapped file this may be its
  /// whole span.
  std::size_t readable_bytes() const {
    const auto span = values.layout().extent();
    if (copied || in_memory || !span) return room_bytes();
    return static_cast<std::size_t>(span->last - span->first + 1) * values.item_bytes();
  }

  /// The values in memory: copied from a mapped file, or converted, if necessary.
  tensor loaded(executor& on) const {
    return in_memory ? compared(on) : brought_in(values, type, on);
  }

  /// As `loaded`, but a mapped file that `multiply` can read in place is not copied.
  tensor readable(executor& on) const {
    return copied ? brought_in(values, type, on) : compared(on);
  }

  /// The values in place. Compares their stored checksums if the executor asks for it.
  const tensor& compared(executor& on) const {
    parallel::compare_checksums(values, on);
    return values;
  }
};

// ---- block by block -----------------------------------------------------------------------------

// If the operands do not fit in memory, the product is computed by blocks: `rows` x `inner` of a
// times `inner` x `columns` of b. One operand is the *staying* one, and each of its blocks is
// brought in once. While such a block is in memory, the blocks of the other, *passing* operand that
// are multiplied by it are brought in one after the other. If a stays, all of b is read once for
// each block row of a, which is m / rows times. So larger blocks of a mean fewer reads of b: the
// staying block gets three quarters of the memory, and the passing block one quarter.
//
// Either operand may stay, and `inner` may be halved any number of times. The number of bytes read
// is computed for each of these choices, and the smallest one is taken. Reading a block of a file
// also reads a part of the gaps between its pieces, so narrow blocks of row-major files are
// avoided.

/// A block of a matrix is read in pieces of its rows (or columns, if it is stored by columns). The
/// system also reads up to this many bytes of the gap between two pieces.
constexpr auto gap_bytes = static_cast<double>(parallel::fault_around_bytes);

/// The bytes read when all blocks of `rows` x `columns` of an operand are brought in once.
double read_bytes(const operand& matrix, index_t rows, index_t columns) {
  if (matrix.in_memory) return 0;
  const bool columns_first = is_column_major(matrix.values);
  const auto item = static_cast<double>(matrix.values.item_bytes());
  const double whole = item * static_cast<double>(matrix.values.shape(columns_first ? 0 : 1));
  const double piece = item * static_cast<double>(columns_first ? rows : columns);
  return item * static_cast<double>(matrix.values.size()) * std::min(whole, piece + gap_bytes) /
         piece;
}

/// The extents of the blocks, and the operand whose blocks stay.
struct block_shape {
  bool a_stays;
  index_t rows;     // rows of a and of the result
  index_t inner;    // columns of a, rows of b
  index_t columns;  // columns of b and of the result
};

/// The shape that reads the fewest bytes if both blocks together have at most `room` elements.
///
/// The search has two variables: the operand that stays, and `inner`, which both blocks share.
/// These determine the other two extents: the block of a, with `inner` columns, gets as many rows
/// as fit into its part of the room, and the block of b, with `inner` rows, as many columns. An
/// operand that is in memory already needs no room, so its block is as large as the operand, and
/// the other operand gets the whole room.
///
/// A choice reads the staying operand once, and the passing operand once for each block row of a
/// (if a stays) or block column of b (if b stays). With a large `inner`, a block has few rows or
/// columns, so the passing operand is read more often. With a small `inner`, pieces are narrow, and
/// the gaps between them are read too. There is no closed form for the best `inner`, so all values
/// are tried that result from halving k: at most 64.
///
/// A choice fits if one row of the block of a and one column of the block of b fit. `inner` = 1
/// fits in any room of four elements.
block_shape choose_blocks(const operand& a, const operand& b, index_t room) {
  const index_t m = a.values.shape(0), k = a.values.shape(1), n = b.values.shape(1);
  block_shape best{};
  double fewest = std::numeric_limits<double>::infinity();
  for (const bool a_stays : {true, false}) {
    const bool alone = a_stays ? b.in_memory : a.in_memory;
    const index_t staying = alone ? room : room / 4 * 3;
    const index_t passing = (a_stays ? a : b).in_memory ? room : room / 4;
    for (index_t inner = k;; inner = ceil_div(inner, index_t{2})) {
      const auto fitting = [&](const operand& matrix, index_t elements, index_t extent) {
        return matrix.in_memory ? extent : std::clamp<index_t>(elements / inner, 1, extent);
      };
      const index_t rows = fitting(a, a_stays ? staying : passing, m);
      const index_t columns = fitting(b, a_stays ? passing : staying, n);
      const bool fits = (a.in_memory || inner <= (a_stays ? staying : passing)) &&
                        (b.in_memory || inner <= (a_stays ? passing : staying));
      double bytes = read_bytes(a, rows, inner) +
                     read_bytes(b, inner, columns) * static_cast<double>(ceil_div(m, rows));
      if (!a_stays)
        bytes = read_bytes(b, inner, columns) +
                read_bytes(a, rows, inner) * static_cast<double>(ceil_div(n, columns));
      if (fits && bytes < fewest) {
        fewest = bytes;
        best = {a_stays, rows, inner, columns};
      }
      if (inner <= 1) break;
    }
  }
  return best;
}

/// Calls `body(start, count)` for the pieces of an axis.
template <class Body>
void for_each_piece(index_t extent, index_t piece, Body body) {
  for (index_t start = 0; start < extent; start += piece)
    body(start, std::min(piece, extent - start));
}

void multiply_by_blocks(const tensor& out, const operand& a, const operand& b, std::size_t room,
                        executor& on) {
  const index_t m = out.shape(0), n = out.shape(1), k = a.values.shape(1);
  const block_shape blocks = choose_blocks(a, b, static_cast<index_t>(room / item_bytes(a.type)));
  const auto block_of_a = [&](index_t row, index_t rows, index_t first, index_t inner) {
    return a.part(a.values.narrow(0, row, rows).narrow(1, first, inner)).loaded(on);
  };
  const auto block_of_b = [&](index_t first, index_t inner, index_t column, index_t columns) {
    return b.part(b.values.narrow(0, first, inner).narrow(1, column, columns)).loaded(on);
  };
  const auto multiply_blocks = [&](index_t row, index_t column, index_t first, const tensor& left,
                                   const tensor& right) {
    multiply_in_memory(out.narrow(0, row, left.shape(0)).narrow(1, column, right.shape(1)), left,
                       right, first == 0 ? product::replaces : product::adds, on);
  };
  if (blocks.a_stays) {
    for_each_piece(m, blocks.rows, [&](index_t row, index_t rows) {
      for_each_piece(k, blocks.inner, [&](index_t first, index_t inner) {
        const tensor left = block_of_a(row, rows, first, inner);
        for_each_piece(n, blocks.columns, [&](index_t column, index_t columns) {
          multiply_blocks(row, column, first, left, block_of_b(first, inner, column, columns));
        });
      });
    });
  } else {
    for_each_piece(n, blocks.columns, [&](index_t column, index_t columns) {
      for_each_piece(k, blocks.inner, [&](index_t first, index_t inner) {
        const tensor right = block_of_b(first, inner, column, columns);
        for_each_piece(m, blocks.rows, [&](index_t row, index_t rows) {
          multiply_blocks(row, column, first, block_of_a(row, rows, first, inner), right);
        });
      });
    });
  }
}

/// Multiplies as many matrices of a batch at once as memory allows. A single matrix that does not
/// fit is multiplied by blocks.
void multiply_in_parts(const tensor& out, const operand& a, const operand& b, std::size_t room,
                       executor& on) {
  const std::size_t needed = a.room_bytes() + b.room_bytes();
  if (needed <= room) {
    multiply_in_memory(out, a.loaded(on), b.loaded(on), product::replaces, on);
    return;
  }
  if (out.rank() == 2) return multiply_by_blocks(out, a, b, room, on);
  const index_t extent = out.shape(0);
  const auto together = static_cast<index_t>(std::max<double>(
      1, static_cast<double>(extent) * static_cast<double>(room) / static_cast<double>(needed)));
  for_each_piece(extent, together, [&](index_t start, index_t count) {
    const auto piece = [&](const tensor& batch) {
      return count == 1 ? batch.select(0, start) : batch.narrow(0, start, count);
    };
    multiply_in_parts(piece(out), a.part(piece(a.values)), b.part(piece(b.values)), room, on);
  });
}

/// Rounds the elements to `type`.
tensor narrowed_to(dtype type, const tensor& wide, executor& on) {
  const tensor narrow = tensor::empty(wide.shape(), type, &on.pool());
  parallel::copy_elements_by(find_cast(wide.dtype(), type), narrow, wide, on);
  return narrow;
}

}  // namespace

dims product_shape(const dims& a, const dims& b) {
  if (a.empty() || b.empty())
    throw error(
        errc::invalid_argument, "matmul needs operands of rank 1 or more",
        {"got shapes " + to_string(a) + " and " + to_string(b), "multiply by a number with `*`"});
  const index_t inner_a = a[a.size() - 1];
  const index_t inner_b = b[std::max<index_t>(b.size() - 2, 0)];
  if (inner_a != inner_b)
    throw error(
        errc::invalid_argument, "matmul: inner extents differ",
        {"got shapes " + to_string(a) + " and " + to_string(b) + ": " + std::to_string(inner_a) +
             " columns against " + std::to_string(inner_b) + " rows",
         "transpose one of them, or check which operand comes first"});
  dims shape = broadcast_shapes(batch_of(a), batch_of(b));
  if (a.size() > 1) shape.push_back(a[a.size() - 2]);
  if (b.size() > 1) shape.push_back(b[b.size() - 1]);
  return shape;
}

dtype product_dtype(dtype a, dtype b) {
  for (const dtype type : {a, b})
    if (!computes(type))
      throw error(errc::invalid_argument, "float8 types store and convert, but do not compute",
                  {"got " + std::string(name(type)), "cast to float16 or wider first"});
  return promote(a, b);
}

void multiply_matrices(const tensor& out, const tensor& a, const tensor& b, executor& on) {
  const operand left(a, out.dtype()), right(b, out.dtype());
  const std::size_t room = std::max(on.memory_bytes() / 2, block_room_min);
  if (left.readable_bytes() + right.readable_bytes() <= room) {
    multiply_in_memory(out, left.readable(on), right.readable(on), product::replaces, on);
    return;
  }
  const parallel::held_tokens tokens(parallel::state_of(on).tokens, room);
  multiply_in_parts(out, left, right, room, on);
}

tensor multiplied(const tensor& a, const tensor& b, executor& on) {
  const dims shape = product_shape(a.shape(), b.shape());
  const dtype type = product_dtype(a.dtype(), b.dtype());
  const tensor left = a.rank() == 1 ? a.expand_dims(0) : a;
  const tensor right = b.rank() == 1 ? b.expand_dims(1) : b;
  const dims batch = broadcast_shapes(batch_of(left.shape()), batch_of(right.shape()));
  const index_t m = left.shape(-2), k = left.shape(-1), n = right.shape(-1);

  const dtype compute = detail::widened(type);
  tensor out = with_context(
      [&] {
        return "multiply " + to_string(a.shape()) + " by " + to_string(b.shape()) + " into " +
               std::string(name(compute));
      },
      [&] { return tensor::empty(with_matrix(batch, m, n), compute, &on.pool()); });
  if (out.size() != 0) {
    multiply_matrices(out, left.broadcast_to(with_matrix(batch, m, k)),
                      right.broadcast_to(with_matrix(batch, k, n)), on);
    a.storage().check();
    b.storage().check();
  }
  if (compute != type) out = narrowed_to(type, out, on);
  auto& count = parallel::state_of(on).count;
  count.read(a.size_bytes() + b.size_bytes());
  count.written(out.size_bytes());
  return out.view(shape);
}

}  // namespace shale::ops
