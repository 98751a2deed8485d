#include <fmt/format.h>

#include <optional>

#include "language/functions/function_tables.hpp"
#include "language/values/arguments.hpp"
#include "language/values/value.hpp"
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
  // NumPy's name of the parameter, or that of the array API standard.
  const std::optional<double> ddof = from.optional_real("ddof");
  const double correction = ddof ? *ddof : from.real("correction", 0);
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

template <expr (*function)(const expr&, index_t)>
value along_axis(arguments& from) {
  const expr a = from.array("a");
  return {function(a, from.index("axis", -1))};
}

value vector_norm(arguments& from) {
  const expr x = from.array("x");
  const axes_option axes = from.axes("axis");
  const keepdims keep = from.flag("keepdims", false) ? keepdims::yes : keepdims::no;
  return {shale::vector_norm(x, from.real("ord", 2), axes, keep)};
}

template <expr (*rolled)(const expr&, index_t, index_t)>
value roll_along(arguments& from) {
  const expr a = from.array("a");
  const index_t window = from.index("window");
  return {rolled(a, window, from.index("axis", -1))};
}

value diff(arguments& from) {
  const expr a = from.array("a");
  const index_t times = from.index("n", 1);
  return {shale::diff(a, times, from.index("axis", -1))};
}

// Without an axis, the derivatives along all axes, as a tuple if there are several.
value gradient(arguments& from) {
  const expr f = from.array("f");
  const double spacing = from.real("spacing", 1);
  // In NumPy, a further argument is the spacing of the second axis.
  if (from.positional_left() > 0)
    throw error(errc::invalid_argument, "gradient: 'axis' is given by its name, as in axis=1");
  if (const std::optional<index_t> axis = from.axis("axis"))
    return {shale::gradient(f, spacing, *axis)};
  if (f.rank() == 1) return {shale::gradient(f, spacing)};
  std::vector<value> all;
  for (index_t axis = 0; axis < f.rank(); ++axis)
    all.emplace_back(shale::gradient(f, spacing, axis));
  return {value::tuple(std::move(all))};
}

}  // namespace

std::vector<function> reductions() {
  return {
      {"sum", reduce<shale::sum>, "sum(a, axis=None, keepdims=False)", true},
      {"prod", reduce<shale::prod>, "prod(a, axis=None, keepdims=False)", true},
      {"mean", reduce<shale::mean>, "mean(a, axis=None, keepdims=False)", true},
      {"var", reduce_moment<shale::var>,
       "var(a, axis=None, keepdims=False, ddof=0, *, correction=0)", true},
      {"std", reduce_moment<shale::stddev>,
       "std(a, axis=None, keepdims=False, ddof=0, *, correction=0)", true},
      {"min", reduce_extremum<shale::min>, "min(a, axis=None, keepdims=False)", true},
      {"max", reduce_extremum<shale::max>, "max(a, axis=None, keepdims=False)", true},
      {"argmin", find_extremum<shale::argmin>, "argmin(a, axis=None, keepdims=False)", true},
      {"argmax", find_extremum<shale::argmax>, "argmax(a, axis=None, keepdims=False)", true},
      {"any", reduce<shale::any>, "any(a, axis=None, keepdims=False)", true},
      {"all", reduce<shale::all>, "all(a, axis=None, keepdims=False)", true},
      {"count_nonzero", reduce<shale::count_nonzero>,
       "count_nonzero(a, axis=None, keepdims=False)"},
      {"nansum", reduce<shale::nansum>, "nansum(a, axis=None, keepdims=False)"},
      {"nanprod", reduce<shale::nanprod>, "nanprod(a, axis=None, keepdims=False)"},
      {"nanmean", reduce<shale::nanmean>, "nanmean(a, axis=None, keepdims=False)"},
      {"nanvar", reduce_moment<shale::nanvar>,
       "nanvar(a, axis=None, keepdims=False, ddof=0, *, correction=0)"},
      {"nanstd", reduce_moment<shale::nanstd>,
       "nanstd(a, axis=None, keepdims=False, ddof=0, *, correction=0)"},
      {"nanmin", reduce<shale::nanmin>, "nanmin(a, axis=None, keepdims=False)"},
      {"nanmax", reduce<shale::nanmax>, "nanmax(a, axis=None, keepdims=False)"},
      {"nanargmin", find_extremum<shale::nanargmin>, "nanargmin(a, axis=None, keepdims=False)"},
      {"nanargmax", find_extremum<shale::nanargmax>, "nanargmax(a, axis=None, keepdims=False)"},
      {"logsumexp", reduce<shale::logsumexp>, "logsumexp(a, axis=None, keepdims=False)"},
      {"softmax", along_axis<shale::softmax>, "softmax(a, axis=-1)"},
      {"log_softmax", along_axis<shale::log_softmax>, "log_softmax(a, axis=-1)"},
      {"vector_norm", vector_norm, "vector_norm(x, axis=None, keepdims=False, ord=2)"},
      {"cumulative_sum", scan_axis<shale::cumulative_sum>, "cumulative_sum(a, axis=None)"},
      {"cumulative_prod", scan_axis<shale::cumulative_prod>, "cumulative_prod(a, axis=None)"},
      {"cummin", scan_axis<shale::cummin>, "cummin(a, axis=None)"},
      {"cummax", scan_axis<shale::cummax>, "cummax(a, axis=None)"},
      {"rolling_sum", roll_along<shale::rolling_sum>, "rolling_sum(a, window, axis=-1)"},
      {"rolling_mean", roll_along<shale::rolling_mean>, "rolling_mean(a, window, axis=-1)"},
      {"rolling_min", roll_along<shale::rolling_min>, "rolling_min(a, window, axis=-1)"},
      {"rolling_max", roll_along<shale::rolling_max>, "rolling_max(a, window, axis=-1)"},
      {"diff", diff, "diff(a, n=1, axis=-1)"},
      {"gradient", gradient, "gradient(f, spacing=1, *, axis=None)"},
  };
}

}  // namespace shale::tools
