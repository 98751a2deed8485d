#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "language/functions/function_tables.hpp"
#include "language/values/arguments.hpp"
#include "language/values/array_literal.hpp"
#include "language/values/value.hpp"
#include "shale/histograms.hpp"
#include "shale/masks.hpp"
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

template <tensor (*middle)(const expr&, std::optional<index_t>)>
value median(arguments& from) {
  const expr a = from.array("a");
  return {expr(middle(a, from.axis("axis")))};
}

template <tensor (*find)(const expr&, double, std::optional<index_t>, quantile_method)>
value quantile(arguments& from) {
  const expr a = from.array("a");
  const double q = from.number("q").as<double>();
  return {expr(find(a, q, from.axis("axis"), quantile_method::linear))};
}

value searchsorted(arguments& from) {
  const expr sorted = from.array("a");
  const expr values = from.array("v");
  constexpr std::pair<std::string_view, search_side> sides[] = {{"left", search_side::left},
                                                                {"right", search_side::right}};
  return {expr(shale::searchsorted(sorted, values, from.choice("side", sides)))};
}

value digitize(arguments& from) {
  const expr x = from.array("x");
  const expr edges = from.array("bins");
  const bool right = from.flag("right", false);
  return {expr(shale::digitize(x, edges, right ? search_side::right : search_side::left))};
}

value pair_of(const tensor& first, const tensor& second) {
  return {value::tuple({value(expr(first)), value(expr(second))})};
}

value unique_values(arguments& from) { return {expr(shale::unique_values(from.array("x")))}; }

template <auto find>
value unique(arguments& from) {
  const auto found = find(from.array("x"));
  if constexpr (requires { found.indices; })
    return {value::tuple({value(expr(found.values)), value(expr(found.indices)),
                          value(expr(found.inverse_indices)), value(expr(found.counts))})};
  else if constexpr (requires { found.counts; }) return pair_of(found.values, found.counts);
  else return pair_of(found.values, found.inverse_indices);
}

value argwhere(arguments& from) { return {expr(shale::argwhere(from.array("a")))}; }

value nonzero(arguments& from) {
  std::vector<value> coordinates;
  for (const tensor& along : shale::nonzero(from.array("a"))) coordinates.emplace_back(expr(along));
  return {value::tuple(std::move(coordinates))};
}

value bincount(arguments& from) {
  const expr x = from.array("x");
  const std::optional<expr> weights = from.optional_array("weights");
  return {expr(shale::bincount(x, weights, from.index("minlength", 0)))};
}

value pair_of(const ranked_elements& found) { return pair_of(found.values, found.indices); }

value topk(arguments& from) {
  const expr x = from.array("x");
  const index_t k = from.index("k");
  const index_t axis = from.index("axis", -1);
  return pair_of(shale::topk(x, k, axis, from.flag("largest", true) ? largest::yes : largest::no));
}

value kthvalue(arguments& from) {
  const expr x = from.array("x");
  const index_t k = from.index("k");
  return pair_of(shale::kthvalue(x, k, from.index("axis", -1)));
}

value mode(arguments& from) {
  const expr x = from.array("x");
  return pair_of(shale::mode(x, from.index("axis", -1)));
}

// `bins` is a number of equal bins, or an array of edges.
value histogram(arguments& from) {
  const expr a = from.array("a");
  const value bins = from.optional("bins").value_or(value(std::int64_t{10}));
  histogram_options options;
  if (const std::optional<value> range = from.optional("range"); range && !range->is<none_t>()) {
    if (!range->is<value::tuple>() || range->as<value::tuple>().elements().size() != 2 ||
        !range->as<value::tuple>().elements().front().is_number() ||
        !range->as<value::tuple>().elements().back().is_number())
      throw error(errc::invalid_argument,
                  fmt::format("histogram: 'range' must be two numbers, as in (0, 1), got {}",
                              range->description()));
    const auto& ends = range->as<value::tuple>().elements();
    options.range = value_range{to_double(ends.front()), to_double(ends.back())};
  }
  options.density = from.flag("density", false);
  options.weights = from.optional_array("weights");
  const auto of_edges = [&] {
    const auto edges =
        with_context([] { return "histogram: 'bins'"; }, [&] { return to_operand(bins); });
    return shale::histogram(a, edges, options);
  };
  const binned_counts found =
      bins.is_integer() ? shale::histogram(a, to_index(bins, "histogram: 'bins'"), options)
                        : of_edges();
  return pair_of(found.counts, found.edges);
}

}  // namespace

// They are evaluated where they are parsed, because the results of some have shapes that depend on
// the elements.
std::vector<function> order_functions() {
  return {
      {"sort", ordered<shale::sort>, "sort(a, axis=-1, descending=False)"},
      {"argsort", ordered<shale::argsort>, "argsort(a, axis=-1, descending=False)"},
      {"median", median<shale::median>, "median(a, axis=None)"},
      {"quantile", quantile<shale::quantile>, "quantile(a, q, axis=None)"},
      {"nanmedian", median<shale::nanmedian>, "nanmedian(a, axis=None)"},
      {"nanquantile", quantile<shale::nanquantile>, "nanquantile(a, q, axis=None)"},
      {"topk", topk, "topk(x, k, axis=-1, largest=True)"},
      {"kthvalue", kthvalue, "kthvalue(x, k, axis=-1)"},
      {"mode", mode, "mode(x, axis=-1)"},
      {"searchsorted", searchsorted, "searchsorted(a, v, side='left')"},
      {"digitize", digitize, "digitize(x, bins, right=False)"},
      {"unique_values", unique_values, "unique_values(x)"},
      {"unique_counts", unique<shale::unique_counts>, "unique_counts(x)"},
      {"unique_inverse", unique<shale::unique_inverse>, "unique_inverse(x)"},
      {"unique_all", unique<shale::unique_all>, "unique_all(x)"},
      {"argwhere", argwhere, "argwhere(a)"},
      {"nonzero", nonzero, "nonzero(a)"},
      {"histogram", histogram, "histogram(a, bins=10, range=None, density=False, weights=None)"},
      {"bincount", bincount, "bincount(x, weights=None, minlength=0)"},
  };
}

}  // namespace shale::tools
