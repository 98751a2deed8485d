#include "shale/scans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;

namespace {

expr scanned(scan kind, const expr& a, std::optional<index_t> axis) {
  return detail::allocating([&] {
    const expr along = axis ? a : a.ravel();
    return expr_of(make_scan(node_of(along), kind, axis.value_or(0)));
  });
}

// Each time adds a node to the expression.
constexpr index_t diff_times_max = 1000;

}  // namespace

expr cumulative_sum(const expr& a, std::optional<index_t> axis) {
  return scanned(scan::sum, a, axis);
}
expr cumulative_prod(const expr& a, std::optional<index_t> axis) {
  return scanned(scan::product, a, axis);
}
expr cummin(const expr& a, std::optional<index_t> axis) { return scanned(scan::minimum, a, axis); }
expr cummax(const expr& a, std::optional<index_t> axis) { return scanned(scan::maximum, a, axis); }

expr diff(const expr& a, index_t n, index_t axis) {
  return detail::allocating([&] {
    if (n < 0)
      throw error(errc::invalid_argument, "diff cannot be taken a negative number of times",
                  {"got n = " + std::to_string(n)});
    const index_t along = normalize_axis(axis, a.rank());
    if (n > diff_times_max && n < a.shape(along))
      throw error(errc::unsupported, fmt::format("diff is taken {} times at most", diff_times_max),
                  {fmt::format("got n = {}", n)});
    // If n is not less than the extent, the result is empty. One difference of a single element
    // gives that without n nodes.
    const bool is_empty = n >= a.shape(along) && n > 0;
    expr result = is_empty ? a.narrow(along, 0, std::min<index_t>(a.shape(along), 1)) : a;
    for (index_t k = std::min(n, result.shape(along)); k > 0; --k) {
      const index_t left = result.shape(along) - 1;
      const expr after = result.narrow(along, 1, left);
      const expr before = result.narrow(along, 0, left);
      result = a.dtype() == dtype::boolean ? after != before : after - before;
    }
    return result;
  });
}

}  // namespace shale
