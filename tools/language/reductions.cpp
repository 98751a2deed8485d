#include <fmt/format.h>

#include <optional>

#include "language/arguments.hpp"
#include "language/function_tables.hpp"
#include "language/value.hpp"
#include "shale/functions.hpp"

namespace shale::tools {

namespace {

using reduction = expr (*)(const expr&, const axes_option&, keepdims);

template <reduction fold>
value reduce(arguments& from) {
  const expr a = from.array("a");
  const axes_option axes = from.axes("axis");
  const keepdims keep = from.flag("keepdims", false) ? keepdims::yes : keepdims::no;
  return {fold(a, axes, keep)};
}

template <expr (*fold)(const expr&, const axes_option&, keepdims, double)>
value reduce_moment(arguments& from) {
  const expr a = from.array("a");
  const axes_option axes = from.axes("axis");
  const keepdims keep = from.flag("keepdims", false) ? keepdims::yes : keepdims::no;
  const std::optional<value> ddof = from.optional("ddof");
  const double correction = ddof ? to_double(*ddof) : from.real("correction", 0);
  return {fold(a, axes, keep, correction)};
}

// Users who write min(a, b), as in C, mean minimum(a, b) of NumPy.
template <reduction fold>
value reduce_extremum(arguments& from) {
  if (from.positional_left() == 2) {
    arguments copy = from;
    copy.required("a");
    if (copy.required("axis").is<expr>())
      throw error(errc::invalid_argument,
                  fmt::format("{}: 'axis' cannot be an array", from.function()),
                  {"minimum(a, b) and maximum(a, b) compare two arrays"});
  }
  return reduce<fold>(from);
}

template <expr (*position)(const expr&, std::optional<index_t>, keepdims)>
value find_extremum(arguments& from) {
  const expr a = from.array("a");
  const std::optional<index_t> axis = from.axis("axis");
  const keepdims keep = from.flag("keepdims", false) ? keepdims::yes : keepdims::no;
  return {position(a, axis, keep)};
}

template <expr (*scan)(const expr&, std::optional<index_t>)>
value scan_axis(arguments& from) {
  const expr a = from.array("a");
  return {scan(a, from.axis("axis"))};
}

value diff(arguments& from) {
  const expr a = from.array("a");
  const index_t times = from.index("n", 1);
  return {shale::diff(a, times, from.index("axis", -1))};
}

}  // namespace

std::vector<function> reductions() {
  return {
      {"sum", reduce<shale::sum>, "sum(a, axis=None, keepdims=False)", true},
      {"prod", reduce<shale::prod>, "prod(a, axis=None, keepdims=False)", true},
      {"mean", reduce<shale::mean>, "mean(a, axis=None, keepdims=False)", true},
      {"var", reduce_moment<shale::var>, "var(a, axis=None, keepdims=False, ddof=0)", true},
      {"std", reduce_moment<shale::stddev>, "std(a, axis=None, keepdims=False, ddof=0)", true},
      {"min", reduce_extremum<shale::min>, "min(a, axis=None, keepdims=False)", true},
      {"max", reduce_extremum<shale::max>, "max(a, axis=None, keepdims=False)", true},
      {"argmin", find_extremum<shale::argmin>, "argmin(a, axis=None, keepdims=False)", true},
      {"argmax", find_extremum<shale::argmax>, "argmax(a, axis=None, keepdims=False)", true},
      {"any", reduce<shale::any>, "any(a, axis=None, keepdims=False)", true},
      {"all", reduce<shale::all>, "all(a, axis=None, keepdims=False)", true},
      {"count_nonzero", reduce<shale::count_nonzero>,
       "count_nonzero(a, axis=None, keepdims=False)"},
      {"cumulative_sum", scan_axis<shale::cumulative_sum>, "cumulative_sum(a, axis=None)"},
      {"cumulative_prod", scan_axis<shale::cumulative_prod>, "cumulative_prod(a, axis=None)"},
      {"cummin", scan_axis<shale::cummin>, "cummin(a, axis=None)"},
      {"cummax", scan_axis<shale::cummax>, "cummax(a, axis=None)"},
      {"diff", diff, "diff(a, n=1, axis=-1)"},
  };
}

}  // namespace shale::tools
