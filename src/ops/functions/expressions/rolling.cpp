#include "shale/rolling.hpp"

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"

namespace shale {

using namespace ops;

namespace {

expr rolling(reduction kind, const expr& a, index_t window, index_t axis) {
  return detail::allocating([&] { return expr_of(make_rolling(node_of(a), kind, window, axis)); });
}

}  // namespace

expr rolling_sum(const expr& a, index_t window, index_t axis) {
  return rolling(reduction::sum, a, window, axis);
}
expr rolling_mean(const expr& a, index_t window, index_t axis) {
  return rolling(reduction::mean, a, window, axis);
}
expr rolling_min(const expr& a, index_t window, index_t axis) {
  return rolling(reduction::minimum, a, window, axis);
}
expr rolling_max(const expr& a, index_t window, index_t axis) {
  return rolling(reduction::maximum, a, window, axis);
}

}  // namespace shale
