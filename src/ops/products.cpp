#include "ops/products.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>

#include "ops/gemm.hpp"
#include "ops/kernels.hpp"
#include "parallel/executor_state.hpp"
#include "parallel/operands.hpp"
#include "parallel/tile_loop.hpp"
#include "shale/error.hpp"

namespace shale::ops {

namespace {

/// Rows and columns of one tile of a product; fixed, so that results do not depend on threads.
constexpr index_t tile_extent = 512;

/// Small matrices of a batch share a tile until it has about this many multiplications.
constexpr index_t tile_work = index_t{1} << 20;

/// Fewer bytes than this are not worth cutting into blocks.
constexpr std::size_t block_room_min = std::size_t{1} << 20;

/// Matrix `number` of a batch, counted row-major over the axes before the last two.
matrix matrix_of_batch(const tensor& batch, index_t number) {
  const index_t axes = batch.rank() - 2;
  index_t offset = 0;
  for (index_t axis = axes - 1; axis >= 0; --axis) {
    const index_t extent = batch.shape()[axis];
    offset += number % extent * batch.strides()[axis];
    number /= extent;
  }
  auto* first = const_cast<std::byte*>(batch.data());
  return {first + offset * static_cast<index_t>(batch.item_bytes()), batch.shape()[axes],
          batch.shape()[axes + 1], batch.strides()[axes], batch.strides()[axes + 1]};
}

/// Operands that `multiply` reads where they lie.
void multiply_in_memory(const tensor& out, const tensor& a, const tensor& b, product how,
                        executor& on) {
  const index_t rank = out.rank();
  const index_t m = out.shape()[rank - 2], n = out.shape()[rank - 1], k = a.shape()[rank - 1];
  const index_t batches = out.size() / (m * n);
  const index_t tile_rows = ceil_div(m, tile_extent), tile_columns = ceil_div(n, tile_extent);
  const index_t tiles = tile_rows * tile_columns;
  const std::size_t item = out.item_bytes();
  if (tiles > 1) {
    parallel::for_each_tile(on, batches * tiles, [&](index_t tile, int) {
      const index_t row = tile % tiles / tile_columns * tile_extent;
      const index_t column = tile % tile_columns * tile_extent;
      const index_t rows = std::min(tile_extent, m - row);
      const index_t columns = std::min(tile_extent, n - column);
      const index_t batch = tile / tiles;
      multiply(out.dtype(), matrix_of_batch(out, batch).block(row, rows, column, columns, item),
               matrix_of_batch(a, batch).block(row, rows, 0, k, item),
               matrix_of_batch(b, batch).block(0, k, column, columns, item), how);
    });
    return;
  }
  const index_t work = m * n * std::min(k, tile_work) + 1;
  const index_t together = std::max<index_t>(1, tile_work / work);
  parallel::for_each_tile(on, ceil_div(batches, together), [&](index_t tile, int) {
    const index_t end = std::min(batches, (tile + 1) * together);
    for (index_t batch = tile * together; batch < end; ++batch)
      multiply(out.dtype(), matrix_of_batch(out, batch), matrix_of_batch(a, batch),
               matrix_of_batch(b, batch), how);
  });
}

// ---- operands that are brought into memory -------------------------------------------------------

/// Every matrix of a batch once.
tensor distinct(const tensor& values) {
  tensor once = values;
  for (index_t axis = 0; axis < values.rank() - 2; ++axis)
    if (values.strides()[axis] == 0 && values.shape()[axis] > 1) once = once.narrow(axis, 0, 1);
  return once;
}

/// Whether the columns of its matrices lie denser than the rows.
bool lies_turned(const tensor& values) {
  return std::abs(values.stride(-2)) < std::abs(values.stride(-1));
}

/// The same values as `type` in memory that `multiply` reads, matrices lying as they did.
tensor brought_in(const tensor& values, dtype type, executor& on) {
  const tensor from = distinct(values);
  const index_t rank = from.rank();
  dims shape = from.shape();
  const bool turned = lies_turned(from);
  if (turned) std::swap(shape[rank - 2], shape[rank - 1]);
  tensor made = tensor::empty(shape, type, &on.pool());
  if (turned) made = made.transpose(-2, -1);
  const parallel::loop_operand operands[] = {{made, true}, {from, false}};
  const parallel::kernel convert = find_cast(from.dtype(), type);
  parallel::for_each_block(
      parallel::make_plan(operands), operands, on,
      [convert](std::byte* const* data, const index_t* strides, index_t inner, index_t outer,
                auto&&...) { convert(data, strides, inner, outer); },
      0, parallel::streams_if::mapped);
  return made.expand(values.shape());
}

/// One side of a product, and how it comes into memory.
struct operand {
  tensor values;
  dtype type;      // that the product is computed in
  bool copied;     // because `multiply` cannot read it
  bool in_memory;  // there is nothing to bring in

  operand(const tensor& of, dtype computed) : values(of), type(computed) {
    const index_t rank = of.rank();
    copied =
        of.dtype() != type || !readable_in_place({nullptr, of.shape(rank - 2), of.shape(rank - 1),
                                                  of.stride(rank - 2), of.stride(rank - 1)});
    in_memory = !copied && of.storage().kind() != storage_kind::file;
  }

  operand part(const tensor& of) const {
    operand result = *this;
    result.values = of;
    return result;
  }

  /// Bytes that bringing it in takes.
  std::size_t room_bytes() const {
    return in_memory ? 0 : static_cast<std::size_t>(distinct(values).size()) * item_bytes(type);
  }

  /// Bytes that become resident where `readable` is read: of a mapped file up to the whole span.
  std::size_t readable_bytes() const {
    const auto span = values.geometry().extent();
    if (copied || in_memory || !span) return room_bytes();
    return static_cast<std::size_t>(span->last - span->first + 1) * values.item_bytes();
  }

  tensor loaded(executor& on) const { return in_memory ? values : brought_in(values, type, on); }

  /// As `loaded`, but what can be read in a mapped file is left there.
  tensor readable(executor& on) const { return copied ? brought_in(values, type, on) : values; }
};

// ---- block by block ------------------------------------------------------------------------------

/// A matrix is read in pieces of its rows or columns, whichever lie side by side; what of a gap
/// between pieces is smaller than this is read too.
constexpr double gap_bytes = 65536;

/// Bytes read to bring all blocks of `rows` x `columns` of an operand in once.
double read_bytes(const operand& of, index_t rows, index_t columns) {
  if (of.in_memory) return 0;
  const bool turned = lies_turned(of.values);
  const auto item = static_cast<double>(of.values.item_bytes());
  const double whole = item * static_cast<double>(of.values.shape(turned ? 0 : 1));
  const double piece = item * static_cast<double>(turned ? rows : columns);
  return item * static_cast<double>(of.values.size()) * std::min(whole, piece + gap_bytes) / piece;
}

/// The extents of the blocks. Blocks of one operand are brought in once and stay while all blocks
/// of the other pass that they meet.
struct block_shape {
  bool a_stays;
  index_t rows;     // of a and the result
  index_t inner;    // columns of a, rows of b
  index_t columns;  // of b and the result
};

/// The shape that reads the fewest bytes with `room` elements for a block of each operand.
block_shape choose_blocks(const operand& a, const operand& b, index_t room) {
  const index_t m = a.values.shape(0), k = a.values.shape(1), n = b.values.shape(1);
  block_shape best{};
  double fewest = std::numeric_limits<double>::infinity();
  for (const bool a_stays : {true, false}) {
    const bool alone = a_stays ? b.in_memory : a.in_memory;
    const index_t staying = alone ? room : room / 4 * 3;
    const index_t passing = (a_stays ? a : b).in_memory ? room : room / 4;
    for (index_t inner = k;; inner = ceil_div(inner, index_t{2})) {
      const auto fitting = [&](const operand& of, index_t elements, index_t extent) {
        return of.in_memory ? extent : std::clamp<index_t>(elements / inner, 1, extent);
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

/// Along the batch, as many matrices at once as there is room for.
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
    const auto piece = [&](const tensor& of) {
      return count == 1 ? of.select(0, start) : of.narrow(0, start, count);
    };
    multiply_in_parts(piece(out), a.part(piece(a.values)), b.part(piece(b.values)), room, on);
  });
}

dims batch_of(const dims& shape) {
  return shape.size() < 2 ? dims() : dims(shape.begin(), shape.end() - 2);
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
  for (const dtype each : {a, b})
    if (!computes(each))
      throw error(errc::invalid_argument, "float8 types store and convert, but do not compute",
                  {"got " + std::string(name(each)), "cast to float16 or wider first"});
  return promote(a, b);
}

dtype multiplied_as(dtype type) noexcept {
  return type == dtype::float16 || type == dtype::bfloat16 ? dtype::float32 : type;
}

void multiply_matrices(const tensor& out, const tensor& a, const tensor& b, executor& on) {
  const operand left(a, out.dtype()), right(b, out.dtype());
  const std::size_t room = std::max(on.memory_bytes() / 2, block_room_min);
  if (left.readable_bytes() + right.readable_bytes() <= room) {
    multiply_in_memory(out, left.readable(on), right.readable(on), product::replaces, on);
    return;
  }
  const parallel::held_tokens tokens(on.state().tokens, room);
  multiply_in_parts(out, left, right, room, on);
}

}  // namespace shale::ops
