#include "shale/distances.hpp"

#include <string>

#include "core/allocating.hpp"
#include "core/widened.hpp"
#include "ops/linalg/products.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/linalg.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

// The dtypes of distances. Integers are converted to the float dtype of their square root.
struct distance_dtypes {
  dtype differences;  // the dtype of differences
  dtype compute;      // the dtype in which they are computed
  dtype result;       // the dtype of their norms

  explicit distance_dtypes(dtype subtracted)
      : differences(sqrt(zeros_of(subtracted)).dtype()),
        compute(detail::widened(differences)),
        result(abs(zeros_of(differences)).dtype()) {}

 private:
  static expr zeros_of(dtype type) { return astype(expr(0), type); }
};

}  // namespace

expr cdist(const expr& a, const expr& b, double order) {
  return allocating([&] {
    if (a.rank() < 2 || b.rank() < 2 || a.shape(-1) != b.shape(-1))
      throw error(errc::invalid_argument, "cdist needs two matrices with rows of one length",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape())});
    const distance_dtypes types(product_dtype(a.dtype(), b.dtype()));
    const expr from = astype(a, types.compute).expand_dims(a.rank() - 1);
    const expr to = astype(b, types.compute).expand_dims(b.rank() - 2);
    return astype(vector_norm(from - to, order, {-1}), types.result);
  });
}

expr dist(const expr& a, const expr& b, double order) {
  return allocating([&] {
    const distance_dtypes types((a * b).dtype());  // numbers adapt to tensors there
    return astype(vector_norm(astype(a, types.compute) - astype(b, types.compute), order),
                  types.result);
  });
}

expr renorm(const expr& a, index_t axis, double norm_max, double order) {
  return allocating([&] {
    if (!(norm_max >= 0))
      throw error(errc::invalid_argument, "renorm needs a largest norm of 0 or more",
                  {"got " + std::to_string(norm_max)});
    const index_t along = normalize_axis(axis, a.rank());
    const distance_dtypes types(product_dtype(a.dtype(), a.dtype()));
    const expr values = astype(a, types.compute);
    dims others;
    for (index_t k = 0; k < a.rank(); ++k)
      if (k != along) others.push_back(k);
    const expr norms = vector_norm(values, order, others, keepdims::yes);
    const expr scaled = values * (norm_max / norms);
    return astype(where(norms > norm_max, scaled, values), types.differences);
  });
}

}  // namespace shale
