#include "shale/tall_qr.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "core/allocating.hpp"
#include "core/widened.hpp"
#include "ops/functions/linear_algebra/matrix_operands.hpp"
#include "ops/functions/linear_algebra/tall_factors.hpp"
#include "ops/linalg/lapack.hpp"
#include "shale/elementwise.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

/// Calls `take` with the tall_factors of a matrix that has elements.
template <class Take>
auto with_tall_factors(const expr& a, const char* function, leaf_factors keep, const Take& take) {
  const row_blocks cut(a.shape(0), a.shape(1), a.shape(1));
  const auto matrix = std::make_shared<const tall_matrix>(a, cut, function);
  executor& on = matrix->begin_pass();
  const dtype computed = detail::widened(matrix_dtype(a.dtype(), function));
  return visit(computed, lapack::types{}, [&]<class T>(std::type_identity<T>) {
    return take(std::make_shared<const tall_factors<T>>(matrix, std::nullopt, keep,
                                                        not_finite_elements::spread, on),
                on);
  });
}

/// The triangle of a matrix without elements.
tensor triangle_of_nothing(const expr& a, dtype type) {
  return tensor::zeros({std::min(a.shape(0), a.shape(1)), a.shape(1)}, type,
                       &executor::current().pool());
}

}  // namespace

tsqr_result tsqr(const expr& a) {
  return allocating([&] {
    require_one_matrix(a.shape(), "tsqr");
    const dtype type = matrix_dtype(a.dtype(), "tsqr");
    if (a.size() == 0)
      return tsqr_result{tensor::zeros({a.shape(0), 0}, type, &executor::current().pool()),
                         triangle_of_nothing(a, type)};
    return with_tall_factors(
        a, "tsqr", leaf_factors::kept,
        [&]<class T>(const std::shared_ptr<const tall_factors<T>>& factors, executor& on) {
          return tsqr_result{astype(expr(make_tall_q(factors, std::nullopt)), type),
                             rounded(factors->r(), type, on)};
        });
  });
}

tensor tsqr_r(const expr& a) {
  return allocating([&] {
    require_one_matrix(a.shape(), "tsqr_r");
    const dtype type = matrix_dtype(a.dtype(), "tsqr_r");
    if (a.size() == 0) return triangle_of_nothing(a, type);
    return with_tall_factors(
        a, "tsqr_r", leaf_factors::dropped,
        [&]<class T>(const std::shared_ptr<const tall_factors<T>>& factors, executor& on) {
          return rounded(factors->r(), type, on);
        });
  });
}

}  // namespace shale
