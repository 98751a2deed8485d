#include "shale/tensor_products.hpp"

#include <algorithm>
#include <string>

#include "core/allocating.hpp"
#include "ops/functions/linear_algebra/contraction.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/leaves/repeated.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/manipulation.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

expr of_rank(expr a, index_t rank) {
  while (a.rank() < rank) a = a.expand_dims(0);
  return a;
}

// The vectors (x, y, z) along the last axis, rotated by one place, (y, z, x), and by two, (z, x,
// y). Both are views of a tiling, so nothing is copied.
struct turned_vectors {
  expr by_one;
  expr by_two;

  explicit turned_vectors(const expr& vectors) : by_one(vectors), by_two(vectors) {
    const expr twice = tile(vectors, {2});
    by_one = twice.narrow(-1, 1, 3);
    by_two = twice.narrow(-1, 2, 3);
  }
};

expr vectors_of(const expr& a, index_t axis) {
  const index_t along = normalize_axis(axis, a.rank());
  if (a.shape(along) != 3)
    throw error(errc::invalid_argument, "cross needs vectors of length 3",
                {"axis " + std::to_string(along) + " of shape " + to_string(a.shape())});
  return a.moveaxis(along, -1);
}

// Axes of `a` that are given, counted from the front. Refuses an axis that is given twice.
dims axes_of(const expr& a, const dims& given) {
  dims axes;
  for (const index_t entry : given) {
    const index_t axis = normalize_axis(entry, a.rank());
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      throw error(errc::invalid_argument, "tensordot: an axis is summed twice",
                  {"axis " + std::to_string(axis) + " of shape " + to_string(a.shape())});
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace

expr vecdot(const expr& a, const expr& b, index_t axis) {
  return allocating([&] {
    const expr left = a.moveaxis(axis, -1), right = b.moveaxis(axis, -1);
    if (left.shape(-1) != right.shape(-1))
      throw error(errc::invalid_argument, "vecdot needs vectors of one length",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) +
                   ", axis " + std::to_string(axis)});
    return sum_of_products(conj(left), right, 1);
  });
}

expr tensordot(const expr& a, const expr& b, const dims& axes_a, const dims& axes_b) {
  return allocating([&] {
    const dims of_a = axes_of(a, axes_a), of_b = axes_of(b, axes_b);
    bool fits = of_a.size() == of_b.size();
    for (index_t k = 0; fits && k < of_a.size(); ++k) fits = a.shape(of_a[k]) == b.shape(of_b[k]);
    if (!fits)
      throw error(errc::invalid_argument, "tensordot: the summed axes have other extents",
                  {"got axes " + to_string(axes_a) + " of shape " + to_string(a.shape()) +
                   " and axes " + to_string(axes_b) + " of shape " + to_string(b.shape())});
    // The axes of `a` are named by their numbers. An axis of `b` that is summed has the name of the
    // axis of `a` that it is summed with.
    const dtype type = promoted_dtype(a, b);
    named_array left{adapted(a, type), {}}, right{adapted(b, type), {}};
    for (index_t axis = 0; axis < a.rank(); ++axis) left.names.push_back(axis);
    for (index_t axis = 0; axis < b.rank(); ++axis) right.names.push_back(rank_max + axis);
    for (index_t k = 0; k < of_b.size(); ++k) right.names[of_b[k]] = of_a[k];
    const name_set kept = (names_of(left) | names_of(right)) & ~(names_of(left) & names_of(right));
    return contracted(left, right, kept).values;
  });
}

expr tensordot(const expr& a, const expr& b, index_t count) {
  return allocating([&] {
    if (count < 0 || count > a.rank() || count > b.rank())
      throw error(errc::invalid_argument, "tensordot: the operands have too few axes",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) +
                   ", and " + std::to_string(count) + " axes to sum"});
    dims last, first;
    for (index_t k = 0; k < count; ++k) {
      last.push_back(a.rank() - count + k);
      first.push_back(k);
    }
    return tensordot(a, b, last, first);
  });
}

expr kron(const expr& a, const expr& b) {
  return allocating([&] {
    if (a.rank() == 0 || b.rank() == 0) return a * b;
    const index_t rank = std::max(a.rank(), b.rank());
    const expr left = of_rank(a, rank), right = of_rank(b, rank);
    dims shape, divisor;
    for (index_t axis = 0; axis < rank; ++axis) {
      const auto extent = checked_mul(left.shape(axis), right.shape(axis));
      if (!extent)
        throw error(errc::invalid_argument, "kron: too many elements",
                    {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape())});
      shape.push_back(*extent);
      divisor.push_back(std::max<index_t>(right.shape(axis), 1));
    }
    element_count(shape);
    const dims none = dims::filled(rank, 0), ones = dims::filled(rank, 1);
    return repeated(left, shape, none, divisor) * repeated(right, shape, right.shape(), ones);
  });
}

expr cross(const expr& a, const expr& b, index_t axis) {
  return allocating([&] {
    const expr left = vectors_of(a, axis), right = vectors_of(b, axis);
    const turned_vectors from_a(left), from_b(right);
    const expr product = from_a.by_one * from_b.by_two - from_a.by_two * from_b.by_one;
    return product.moveaxis(-1, axis);
  });
}

}  // namespace shale
