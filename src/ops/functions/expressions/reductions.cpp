#include "shale/reductions.hpp"

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"

namespace shale {

using namespace ops;

namespace {

expr reduced(reduction kind, const expr& a, const axes_option& axes, keepdims keep,
             double parameter = 0) {
  return detail::allocating([&] {
    return expr_of(
        make_reduction(node_of(a), kind, axes.of_rank(a.rank()), keep == keepdims::yes, parameter));
  });
}

axes_option one_or_all(std::optional<index_t> axis) {
  return axis ? axes_option{*axis} : axes_option{};
}

}  // namespace

dims axes_option::of_rank(index_t rank) const {
  if (axes_) return *axes_;
  dims all;
  for (index_t axis = 0; axis < rank; ++axis) all.push_back(axis);
  return all;
}

expr sum(const expr& a, const axes_option& axes, keepdims keep) {
  return reduced(reduction::sum, a, axes, keep);
}
expr prod(const expr& a, const axes_option& axes, keepdims keep) {
  return reduced(reduction::product, a, axes, keep);
}
expr mean(const expr& a, const axes_option& axes, keepdims keep) {
  return reduced(reduction::mean, a, axes, keep);
}
expr var(const expr& a, const axes_option& axes, keepdims keep, double correction) {
  return reduced(reduction::variance, a, axes, keep, correction);
}
expr stddev(const expr& a, const axes_option& axes, keepdims keep, double correction) {
  return reduced(reduction::deviation, a, axes, keep, correction);
}
expr min(const expr& a, const axes_option& axes, keepdims keep) {
  return reduced(reduction::minimum, a, axes, keep);
}
expr max(const expr& a, const axes_option& axes, keepdims keep) {
  return reduced(reduction::maximum, a, axes, keep);
}
expr argmin(const expr& a, std::optional<index_t> axis, keepdims keep) {
  return reduced(reduction::arg_minimum, a, one_or_all(axis), keep);
}
expr argmax(const expr& a, std::optional<index_t> axis, keepdims keep) {
  return reduced(reduction::arg_maximum, a, one_or_all(axis), keep);
}
expr any(const expr& a, const axes_option& axes, keepdims keep) {
  return reduced(reduction::any, a, axes, keep);
}
expr all(const expr& a, const axes_option& axes, keepdims keep) {
  return reduced(reduction::all, a, axes, keep);
}
expr count_nonzero(const expr& a, const axes_option& axes, keepdims keep) {
  return reduced(reduction::count_nonzero, a, axes, keep);
}

}  // namespace shale
