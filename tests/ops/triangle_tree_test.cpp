// Tests the tree of triangles by what defines it: factors times the last triangle are the triangles
// of the leaves, and the factors below one another are orthonormal. Sums are in long double.
#include "ops/linalg/triangle_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "ops/linalg/kept_matrices.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"
#include "support/element_types.hpp"
#include "support/oracle_matrices.hpp"

namespace shale {
namespace {

using ops::leaf_factors;
using ops::triangle_tree;
using test::distance;
using test::epsilon_of;
using test::matrices_of;
using test::number;
using test::oracle_matrix;
using test::random_choices;

/// Column-major elements as a matrix of the oracle.
template <class T>
oracle_matrix from_columns(const T* elements, index_t rows, index_t columns) {
  oracle_matrix made(rows, columns);
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) made(i, j) = number(elements[j * rows + i]);
  return made;
}

template <class T>
T random_element(random_choices& choose) {
  const auto fraction = [&] { return static_cast<double>(choose(-1000, 1000)) / 1000; };
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(fraction());
  } else {
    using R = typename T::value_type;
    const auto real_part = static_cast<R>(fraction());
    return T(real_part, static_cast<R>(fraction()));
  }
}

/// Random triangles of leaves.
template <class T>
struct leaves {
  index_t rows, columns;
  std::vector<storage> triangles;

  leaves(random_choices& choose, index_t count, index_t row_count, index_t column_count)
      : rows(row_count), columns(column_count) {
    triangles.reserve(static_cast<std::size_t>(count));
    for (index_t leaf = 0; leaf < count; ++leaf) {
      const auto bytes = static_cast<std::size_t>(rows * columns) * sizeof(T);
      triangles.push_back(storage::allocate(bytes));
      T* const elements = reinterpret_cast<T*>(triangles.back().data());
      for (index_t j = 0; j < columns; ++j)
        for (index_t i = 0; i < rows; ++i)
          elements[j * rows + i] = i <= j ? random_element<T>(choose) : T(0);
    }
  }

  oracle_matrix triangle(std::size_t leaf) const {
    return from_columns(reinterpret_cast<const T*>(triangles[leaf].data()), rows, columns);
  }
};

/// The bits of a tree: the last triangle and the factors of all leaves.
template <class T>
struct reduced {
  tensor r;
  std::vector<std::vector<T>> factors;

  reduced(const leaves<T>& from, std::size_t together, executor& on) {
    const auto count = from.triangles.size();
    triangle_tree<T> tree(static_cast<index_t>(count), static_cast<std::int32_t>(from.rows),
                          static_cast<std::int32_t>(from.columns), leaf_factors::kept, on);
    for (std::size_t first = 0; first < count; first += together) {
      const auto begin = from.triangles.begin() + static_cast<std::ptrdiff_t>(first);
      const auto some = static_cast<std::ptrdiff_t>(std::min(together, count - first));
      tree.add(std::vector<storage>(begin, begin + some), on);
    }
    r = tree.finish(on);
    factors.reserve(count);
    for (std::size_t leaf = 0; leaf < count; ++leaf) {
      factors.emplace_back(static_cast<std::size_t>(from.rows * from.rows));
      tree.factor(static_cast<index_t>(leaf), factors.back().data());
    }
  }
};

template <class T>
bool same_bits_of(const reduced<T>& a, const reduced<T>& b) {
  bool same = equal_bits(a.r, b.r) && a.factors.size() == b.factors.size();
  for (std::size_t leaf = 0; same && leaf < a.factors.size(); ++leaf)
    same = std::memcmp(a.factors[leaf].data(), b.factors[leaf].data(),
                       a.factors[leaf].size() * sizeof(T)) == 0;
  return same;
}

template <class T>
class TriangleTree : public testing::Test {
 protected:
  void expect_reduced(const leaves<T>& from, const reduced<T>& found) const {
    const auto count = static_cast<index_t>(from.triangles.size());
    const long double limit = 100 * epsilon_of(dtype_of<T>()) *
                              static_cast<long double>(from.rows + from.columns) *
                              std::sqrt(static_cast<long double>(count));
    const oracle_matrix r = matrices_of(found.r)[0];
    EXPECT_EQ(distance(r, r.upper()), 0);
    for (index_t i = 0; i < from.rows; ++i) {
      EXPECT_GE(r(i, i).real(), 0);
      EXPECT_EQ(r(i, i).imag(), 0);
    }
    oracle_matrix gram(from.rows, from.rows);
    for (std::size_t leaf = 0; leaf < found.factors.size(); ++leaf) {
      const oracle_matrix factor = from_columns(found.factors[leaf].data(), from.rows, from.rows);
      EXPECT_LE(distance(factor * r, from.triangle(leaf)), limit) << leaf;
      const oracle_matrix squares = factor.adjoint() * factor;
      for (std::size_t i = 0; i < gram.elements.size(); ++i)
        gram.elements[i] += squares.elements[i];
    }
    EXPECT_LE(distance(gram, oracle_matrix::identity(from.rows)), limit);
  }

  executor on_{{.threads = 2, .memory_bytes = std::size_t{64} << 20}};
};
using lapack_types = test::element_types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(TriangleTree, lapack_types);

// triangle_tree.2
TYPED_TEST(TriangleTree, FactorsTimesTheLastTriangleAreThoseOfTheLeaves) {
  random_choices choose(1);
  for (const index_t count : {1, 2, 7, 8, 9, 10, 16, 17, 64, 65, 66, 72, 73, 130})
    for (const index_t n : {1, 2, 5}) {
      SCOPED_TRACE(std::to_string(count) + " leaves of " + std::to_string(n));
      const leaves<TypeParam> from(choose, count, n, n);
      this->expect_reduced(from, {from, 3, this->on_});
    }
  // One leaf may have more columns than rows.
  const leaves<TypeParam> wide(choose, 1, 2, 4);
  this->expect_reduced(wide, {wide, 1, this->on_});
}

// triangle_tree.1
TYPED_TEST(TriangleTree, HasTheSameBitsForAnyThreadsAndParts) {
  random_choices choose(2);
  const leaves<TypeParam> from(choose, 75, 4, 4);
  const reduced<TypeParam> wanted(from, 75, this->on_);
  for (const int threads : {1, 2, 4})
    for (const std::size_t together : {1, 5, 8, 70}) {
      executor on({.threads = threads, .memory_bytes = std::size_t{64} << 20});
      EXPECT_TRUE(same_bits_of(reduced<TypeParam>(from, together, on), wanted)) << together;
    }
  // Factors that lie in a file.
  executor small({.threads = 2, .memory_bytes = 1000});
  EXPECT_TRUE(same_bits_of(reduced<TypeParam>(from, 11, small), wanted));
}

TYPED_TEST(TriangleTree, HasTheSameTriangleWithoutFactors) {
  random_choices choose(3);
  const leaves<TypeParam> from(choose, 19, 3, 3);
  triangle_tree<TypeParam> tree(19, 3, 3, leaf_factors::dropped, this->on_);
  tree.add(from.triangles, this->on_);
  EXPECT_TRUE(equal_bits(tree.finish(this->on_), reduced<TypeParam>(from, 19, this->on_).r));
}

TEST(KeptMatrices, AreReadAsTheyWereWritten) {
  for (const std::size_t budget : {std::size_t{100}, std::size_t{1} << 20}) {
    executor on({.threads = 1, .memory_bytes = budget});
    ops::kept_matrices kept(24, 9, on);
    for (index_t i = 8; i >= 0; --i) {
      const std::vector<std::byte> bytes(24, static_cast<std::byte>(i));
      kept.write(i, bytes.data());
    }
    for (index_t i = 0; i < 9; ++i) {
      std::vector<std::byte> found(24);
      kept.read(i, found.data());
      EXPECT_EQ(found, std::vector<std::byte>(24, static_cast<std::byte>(i)));
    }
  }
}

}  // namespace
}  // namespace shale
