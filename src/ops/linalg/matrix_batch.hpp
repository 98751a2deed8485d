// Batches of matrices for LAPACK: how their elements get into column-major memory and back, and the
// parallel loop over them.
//
// Invariants
//   batch.1  one thread computes a matrix, from a column-major copy of its elements. So results
//            depend neither on the number of threads nor on the strides of the operands
//   batch.2  if matrices fail, the error is about the first of them in row-major order
#pragma once

#include <cstddef>
#include <optional>

#include "ops/linalg/lapack.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// The matrices of the last two axes of a tensor of rank 2 or more. They are numbered row-major
/// over the axes in front.
class matrix_batch {
 public:
  explicit matrix_batch(const tensor& matrices);

  index_t count() const noexcept { return count_; }
  lapack::integer rows() const noexcept { return rows_; }
  lapack::integer columns() const noexcept { return columns_; }

  /// The first element of a matrix.
  std::byte* at(index_t number) const noexcept;
  template <class T>
  T* at(index_t number) const noexcept {
    return reinterpret_cast<T*>(at(number));
  }

  /// Copies a matrix into column-major memory without gaps, converted to T.
  template <class T>
  void load(index_t number, T* to) const {
    load_as(dtype_of<T>(), number, reinterpret_cast<std::byte*>(to), rows_);
  }

  /// Copies it into the first rows of a matrix whose columns are `leading` elements apart.
  template <class T>
  void load(index_t number, T* to, index_t leading) const {
    load_as(dtype_of<T>(), number, reinterpret_cast<std::byte*>(to), leading);
  }

  /// Copies column-major memory, whose columns are `leading` elements apart, into a matrix that has
  /// elements of type T.
  template <class T>
  void store(index_t number, const T* from, index_t leading) const {
    store_as(number, reinterpret_cast<const std::byte*>(from), leading);
  }
  template <class T>
  void store(index_t number, const T* from) const {
    store(number, from, rows_);
  }

 private:
  void load_as(dtype type, index_t number, std::byte* to, index_t leading) const;
  void store_as(index_t number, const std::byte* from, index_t leading) const;

  tensor matrices_;
  index_t count_;
  lapack::integer rows_;
  lapack::integer columns_;
};

/// A new tensor of column-major matrices without gaps in memory of the executor's pool, for `at`.
/// Throws   out_of_memory
tensor empty_columns(const dims& batch, index_t rows, index_t columns, dtype type, executor& on);

/// The axes in front of the last two; no axes for a shape with fewer than two.
dims batch_of(const dims& shape);

/// The shape of a batch of matrices, or of vectors.
dims with_matrix(dims batch, index_t rows, index_t columns);
dims with_vector(dims batch, index_t length);

// ---- work memory --------------------------------------------------------------------------------

/// The parts of the work memory of a matrix. Each begins at a multiple of 64 bytes.
class work_parts {
 public:
  /// Adds room for `count` elements, and returns where it begins, in bytes.
  /// Throws   out_of_memory (more bytes than there can be)
  template <class T>
  std::size_t add(index_t count) {
    return add_bytes(count, sizeof(T));
  }

  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t add_bytes(index_t count, std::size_t item);

  std::size_t bytes_ = 0;
};

/// A part as elements.
template <class T>
T* part_at(std::byte* work, std::size_t begin) {
  return reinterpret_cast<T*>(work + begin);
}

// ---- the loop -----------------------------------------------------------------------------------

/// A matrix that cannot be computed, and what LAPACK says about it.
struct failed_matrix {
  index_t number;
  lapack::integer info;
};

/// The work of a batch.
struct batch_work {
  index_t count;             ///< the number of matrices
  std::size_t bytes;         ///< the work memory for one matrix
  double multiplications;    ///< the multiplications for one matrix, roughly
  std::uint64_t read_bytes;  ///< the bytes of all matrices, for progress and statistics
};

/// Calls `body(context, number, work)` for every matrix of a batch, in parallel. Each thread
/// holds a blas_buffer while it calls `body`. A result other than 0 is a failure: matrices with
/// larger numbers may then stay uncomputed. A thread does not take part if the budget has no room
/// for its work memory.
/// Returns  the first matrix that failed
/// Throws   exceptions of `body`, out_of_memory, unsupported (as check_blas_kernels), cancelled
std::optional<failed_matrix> run_matrices(const batch_work& work, executor& on,
                                          lapack::integer (*body)(void*, index_t, std::byte*),
                                          void* context);

/// As run_matrices, with a callable `body(number, work)`.
template <class Body>
std::optional<failed_matrix> for_each_matrix(const batch_work& work, executor& on, Body&& body) {
  return run_matrices(
      work, on,
      [](void* context, index_t number, std::byte* memory) {
        return (*static_cast<std::remove_reference_t<Body>*>(context))(number, memory);
      },
      &body);
}

}  // namespace shale::ops
