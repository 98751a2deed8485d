#include <fmt/format.h>

#include <optional>
#include <string>

#include "language/functions/function_tables.hpp"
#include "language/values/arguments.hpp"
#include "language/values/value.hpp"
#include "shale/histograms.hpp"
#include "shale/order_statistics.hpp"
#include "shale/searching.hpp"
#include "shale/sorting.hpp"

namespace shale::tools {

namespace {

template <tensor (*order)(const expr&, index_t, descending)>
value ordered(arguments& from) {
  const expr a = from.array("a");
  const index_t axis = from.index("axis", -1);
  return {expr(order(a, axis, from.flag("descending", false) ? descending::yes : descending::no))};
}

value median(arguments& from) {
  const expr a = from.array("a");
  return {expr(shale::median(a, from.axis("axis")))};
}

value quantile(arguments& from) {
  const expr a = from.array("a");
  const double q = from.number("q").as<double>();
  return {expr(shale::quantile(a, q, from.axis("axis")))};
}

value searchsorted(arguments& from) {
  const expr sorted = from.array("a");
  const expr values = from.array("v");
  const std::optional<value> side = from.optional("side");
  const std::string name = !side ? "left" : side->is<std::string>() ? side->as<std::string>() : "";
  if (name != "left" && name != "right")
    throw error(errc::invalid_argument, "searchsorted: 'side' must be 'left' or 'right'");
  return {expr(shale::searchsorted(sorted, values,
                                   name == "left" ? search_side::left : search_side::right))};
}

value digitize(arguments& from) {
  const expr x = from.array("x");
  const expr edges = from.array("bins");
  const bool right = from.flag("right", false);
  return {expr(shale::digitize(x, edges, right ? search_side::right : search_side::left))};
}

value unique_values(arguments& from) { return {expr(shale::unique_values(from.array("x")))}; }

value bincount(arguments& from) {
  const expr x = from.array("x");
  const std::optional<value> weights = from.optional("weights");
  std::optional<expr> each;
  if (weights && !weights->is<none_t>()) each = to_expr(*weights);
  return {expr(shale::bincount(x, each, from.index("minlength", 0)))};
}

}  // namespace

// They are evaluated where they are parsed, because the results of some have shapes that depend on
// the elements.
std::vector<function> order_functions() {
  return {
      {"sort", ordered<shale::sort>, "sort(a, axis=-1, descending=False)"},
      {"argsort", ordered<shale::argsort>, "argsort(a, axis=-1, descending=False)"},
      {"median", median, "median(a, axis=None)"},
      {"quantile", quantile, "quantile(a, q, axis=None)"},
      {"searchsorted", searchsorted, "searchsorted(a, v, side='left')"},
      {"digitize", digitize, "digitize(x, bins, right=False)"},
      {"unique_values", unique_values, "unique_values(x)"},
      {"bincount", bincount, "bincount(x, weights=None, minlength=0)"},
  };
}

}  // namespace shale::tools
