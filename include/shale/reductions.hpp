// Reductions of expressions along axes. (`reduce` in reduce.hpp and
// `reduce_axes` in fold_axes.hpp take your own functions.)
// Throws   invalid_argument (axes that do not exist or occur twice, dtypes for which the reduction
//          is not defined), out_of_memory
// Cost     a node of the expression; nothing is computed before it is evaluated
#pragma once

#include <initializer_list>
#include <optional>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The axes that a reduction folds. `{}` means all axes, `dims{}` none, and a list means its
/// entries, which may be negative.
class axes_option {
 public:
  axes_option() = default;

  /// The given axes. An empty optional means all of them.
  /// Throws   invalid_argument for more than rank_max entries
  axes_option(std::initializer_list<index_t> axes) : axes_(dims(axes)) {}
  axes_option(const dims& axes) : axes_(axes) {}
  axes_option(const std::optional<dims>& axes) : axes_(axes) {}

  /// The axes of an operand of that rank, as they were given.
  /// Throws   invalid_argument for a rank above rank_max
  dims of_rank(index_t rank) const;

 private:
  std::optional<dims> axes_;
};

/// Whether the result keeps folded axes, with length 1.
enum class keepdims : bool { no, yes };

/// Sum and product. Integers and bool give int64 or uint64, which wrap. Float sums are at least as
/// accurate as pairwise summation. The result has the same bits for any number of threads.
expr sum(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);
expr prod(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);

/// The arithmetic mean. Integers give float64.
expr mean(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);

/// Variance and standard deviation: the sum of squared distances is divided by n - correction. The
/// result is NaN if that is <= 0. Integers give float64.
expr var(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no,
         double correction = 0);
expr stddev(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no,
            double correction = 0);

/// The smallest, or largest, element. NaN if any element is NaN. Not for complex.
/// Throws   invalid_argument also if a folded axis has length 0 and the result has elements
expr min(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);
expr max(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);

/// The index of the smallest or largest element along `axis` (int64). Without an axis, it is the
/// row-major index in `a`. Among equal elements, the first one counts. If there is a NaN, the first
/// NaN counts. -0 and +0 are equal. Not for complex.
/// Throws   invalid_argument also if the axis has length 0 and the result has elements
expr argmin(const expr& a, std::optional<index_t> axis = std::nullopt,
            keepdims keep = keepdims::no);
expr argmax(const expr& a, std::optional<index_t> axis = std::nullopt,
            keepdims keep = keepdims::no);

/// Whether any element is not zero (bool), whether no element is zero (bool), and how many elements
/// are not zero (int64).
expr any(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);
expr all(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);
expr count_nonzero(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);

}  // namespace shale
