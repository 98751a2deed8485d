#include "shale/tensor_products.hpp"

#include <algorithm>
#include <string>

#include "core/allocating.hpp"
#include "ops/leaves/rearranged.hpp"
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

// The vectors along the last axis, with their elements moved to the front by one and by two places:
// (y, z, x) and (z, x, y). Both are views of a tiling, so nothing is copied.
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

}  // namespace

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
    return rearranged(left, shape, none, divisor) * rearranged(right, shape, right.shape(), ones);
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
