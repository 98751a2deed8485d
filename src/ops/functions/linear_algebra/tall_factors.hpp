// QR factors of matrices that are read by blocks of rows: of a matrix itself, or of its product
// with a matrix in memory.
//
// Invariants
//   tall.1  blocks depend on the shapes alone, and a block is computed by one thread; so the bits
//           of results depend neither on threads nor on the budget nor on the layout
//   tall.2  if there are several blocks, a block with fewer rows than columns is extended by rows
//           of zeros; so their triangles are all square
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "ops/evaluation/operand_parts.hpp"
#include "ops/functions/linear_algebra/row_blocks.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/triangle_tree.hpp"
#include "shale/executor.hpp"
#include "shale/expr.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

/// A matrix that is read by blocks of rows, again and again.
class tall_matrix {
 public:
  /// Computes what the elements depend on as a whole.
  /// Throws   as `eval`
  tall_matrix(const expr& elements, const row_blocks& cut, const char* function);

  const row_blocks& cut() const noexcept { return cut_; }
  const char* function() const noexcept { return function_; }

  /// The depth that a source has if its loads read the matrix (nested_source.hpp).
  int source_depth() const noexcept { return source_depth_; }

  /// The rows of some blocks.
  /// Throws   as `eval`
  /// Threads  any
  tensor held(index_t first_block, index_t count) const;

  /// The executor of the calling thread, for one pass over all blocks.
  executor& begin_pass() const;

  /// How many blocks are held at once: those that a quarter of the budget has room for, at least 1.
  index_t held_at_once(const executor& on) const;

  /// The bytes that a pass reads of these elements, besides those that evaluations count.
  std::uint64_t bytes_read(const tensor& elements) const noexcept {
    return is_in_place_ ? elements.size_bytes() : 0;
  }

 private:
  row_blocks cut_;
  const char* function_;
  operand_parts elements_;
  int source_depth_;
  bool is_in_place_;
};

/// Whether no element is NaN or infinite.
template <class T>
bool has_only_finite(const T* elements, index_t count) {
  return std::all_of(elements, elements + count, [](const T& element) {
    return std::isfinite(std::real(element)) && std::isfinite(std::imag(element));
  });
}

/// What happens to elements that are NaN or infinite.
enum class not_finite_elements : bool { spread, refused };

template <class T>
struct block_memory;

/// The QR factors of a matrix, or of the matrix times a projection. For T in lapack::types.
template <class T>
class tall_factors {
 public:
  /// Reads the matrix once. `projection`, if given, is column-major without gaps, of T, and has a
  /// row for each column of the matrix.
  /// Throws   as for_each_matrix, triangle_tree and `eval`; invalid_argument (a block with elements
  ///          that are refused)
  tall_factors(std::shared_ptr<const tall_matrix> matrix, std::optional<tensor> projection,
               leaf_factors keep, not_finite_elements treatment, executor& on);

  /// The triangle, row-major.
  const tensor& r() const noexcept { return r_; }
  const row_blocks& cut() const noexcept { return matrix_->cut(); }
  int source_depth() const noexcept { return matrix_->source_depth(); }

  /// The adjoint of the matrix, times q. Requires that factors were kept. Reads the matrix once.
  /// Shape    (columns of the matrix, columns of q); column-major without gaps
  /// Throws   as the constructor
  tensor adjoint_times_q(executor& on) const;

  /// Stores the rows of q that belong to one block in `values`. If `turned` is given, they are
  /// multiplied by it first; it is a column-major matrix in memory. Requires that factors were
  /// kept. Reads that block of the matrix.
  /// Throws   as `eval`
  /// Threads  any
  void store_q(index_t number, const std::optional<tensor>& turned, const tensor& values) const;

 private:
  void compute_r(leaf_factors keep, not_finite_elements treatment, executor& on);
  bool factor_block(index_t number, const tensor& elements, not_finite_elements treatment,
                    const block_memory<T>& at, std::byte* memory) const;
  T* q_of_block(index_t number, const std::optional<tensor>& turned, const block_memory<T>& at,
                std::byte* memory) const;

  std::shared_ptr<const tall_matrix> matrix_;
  std::optional<tensor> projection_;
  std::optional<triangle_tree<T>> tree_;
  tensor r_;
};

/// Makes a tile source of q, or of q times a column-major matrix in memory if one is given. A tile
/// is a block of rows, which is computed when a pass loads it. q has at least one column.
template <class T>
std::shared_ptr<const tile_source> make_tall_q(std::shared_ptr<const tall_factors<T>> factors,
                                               std::optional<tensor> turned);

}  // namespace shale::ops
