// Reduces the triangles of the QR factors of many blocks of rows to one triangle (TSQR). Eight
// triangles, one below the other, are factored again; so are the triangles of those, and so on:
//
//   level 0   r0 r1 … r7   r8 r9 … r15   r16        the triangles of the blocks
//   level 1       s0            s1        s2 = r16  an only child moves up unchanged
//   level 2              r                          the triangle of the whole matrix
//
// The q of each factorization has one block for each child. The product of the blocks on the path
// from a node to the root is the *factor* of the node. A block of rows is its own q times the
// factor of its leaf times r.
//
// Invariants
//   triangle_tree.1  node j of a level has the children 8 j to 8 j + 7; the shape depends on the
//                    number of leaves alone, so the bits of results depend neither on threads nor
//                    on how many leaves are added at a time
//   triangle_tree.2  the diagonal of the last triangle is real and not negative: the signs of its
//                    rows are moved to the factor of the root
//
// Source   J. Demmel, L. Grigori, M. Hoemmen, J. Langou, Communication-optimal parallel and
//          sequential QR and LU factorizations, SIAM Journal on Scientific Computing 34 (2012)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/linalg/kept_matrices.hpp"
#include "ops/linalg/lapack.hpp"
#include "shale/executor.hpp"
#include "shale/storage.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// Whether the factors of leaves are wanted, or the triangle alone.
enum class leaf_factors : std::uint8_t { dropped, kept };

/// For T in lapack::types.
template <class T>
class triangle_tree {
 public:
  /// Prepares a tree of `leaves` leaves, at least one. Their triangles have `rows` rows and
  /// `columns` columns; if there are several leaves, the triangles are square. Neither extent is 0.
  /// Throws   as kept_matrices, if factors are kept
  triangle_tree(index_t leaves, lapack::integer rows, lapack::integer columns, leaf_factors keep,
                executor& on);

  /// Adds the triangles of the next leaves: column-major without gaps, with zeros below the
  /// diagonal.
  /// Cost     a QR factorization of each eight triangles that are complete, in parallel
  /// Throws   as for_each_matrix and kept_matrices::write
  void add(const std::vector<storage>& triangles, executor& on);

  /// The last triangle, after all leaves were added. Called once.
  /// Shape    (rows, columns)
  /// Cost     if factors are kept, a product of two matrices for each of them, in parallel
  /// Throws   out_of_memory, and as for_each_matrix and kept_matrices
  tensor finish(executor& on);

  /// Copies the factor of a leaf: rows x rows, column-major without gaps. After `finish`.
  /// Throws   as kept_matrices::read
  /// Threads  any
  void factor(index_t leaf, T* to) const { read(0, leaf, to); }

 private:
  struct group;
  void merge(std::size_t level, index_t groups, executor& on);
  void merge_group(const group& merged, std::byte* memory);
  void pass_down(std::size_t level, executor& on);
  bool is_only_child(std::size_t level, index_t node) const;
  void read(std::size_t level, index_t node, T* to) const;
  void write(std::size_t level, index_t node, const T* from);

  const lapack::integer rows_, columns_;
  std::vector<index_t> counts_;  // of the nodes of each level
  std::vector<index_t> firsts_;  // the number of each level's first matrix in factors_
  std::vector<index_t> merged_;  // how many nodes of each level have been merged
  std::vector<std::vector<storage>> waiting_;  // the triangles of the next nodes
  std::optional<kept_matrices> factors_;
};

}  // namespace shale::ops
