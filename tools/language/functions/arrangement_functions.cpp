#include <fmt/format.h>

#include <string>

#include "language/functions/function_tables.hpp"
#include "language/values/arguments.hpp"
#include "language/values/value.hpp"
#include "shale/functions.hpp"

namespace shale::tools {

namespace {

// NumPy's forms: one number, (before, after) for all axes, or such a pair for each axis.
std::vector<pad_width> widths_argument(arguments& from) {
  constexpr std::string_view subject = "pad: 'pad_width'";
  const value given = from.required("pad_width");
  const auto pair_of = [&](const value& one) {
    const dims width = to_dims(one, subject);
    if (width.empty() || width.size() > 2)
      throw error(errc::invalid_argument,
                  fmt::format("{} must have one or two numbers for an axis", subject));
    return pad_width{width.front(), width.back()};
  };
  if (!given.is<value::tuple>()) return {pair_of(given)};
  const auto& entries = given.as<value::tuple>().elements();
  if (entries.empty() || !entries.front().is<value::tuple>()) return {pair_of(given)};
  std::vector<pad_width> widths;
  widths.reserve(entries.size());
  for (const value& entry : entries) widths.push_back(pair_of(entry));
  return widths;
}

value pad(arguments& from) {
  constexpr std::pair<std::string_view, pad_mode> modes[] = {{"constant", pad_mode::constant},
                                                             {"edge", pad_mode::edge},
                                                             {"reflect", pad_mode::reflect},
                                                             {"symmetric", pad_mode::symmetric},
                                                             {"wrap", pad_mode::wrap}};
  const expr a = from.array("array");
  const std::vector<pad_width> widths = widths_argument(from);
  pad_options options{.mode = from.choice("mode", modes)};
  options.value = from.optional_number("constant_values").value_or(std::int64_t{0});
  return {shale::pad(a, widths, options)};
}

value rot90(arguments& from) {
  const expr a = from.array("m");
  const index_t times = from.index("k", 1);
  const std::optional<dims> axes = from.axes("axes");
  if (axes && axes->size() != 2)
    throw error(errc::invalid_argument,
                fmt::format("rot90: 'axes' must be two axes, got {}", to_string(*axes)));
  return {axes ? shale::rot90(a, times, axes->front(), axes->back()) : shale::rot90(a, times)};
}

// The result is a tuple, as in meshgrid(x, y)[0].
value meshgrid(arguments& from) {
  std::vector<expr> arrays;
  while (from.positional_left() > 0) arrays.push_back(from.array("xi"));
  constexpr std::pair<std::string_view, grid_indexing> orders[] = {{"xy", grid_indexing::xy},
                                                                   {"ij", grid_indexing::ij}};
  std::vector<value> grids;
  for (const expr& grid : shale::meshgrid(arrays, from.choice("indexing", orders)))
    grids.emplace_back(grid);
  return {value::tuple(std::move(grids))};
}

}  // namespace

std::vector<function> arrangement_functions() {
  return {
      {"pad", pad, "pad(array, pad_width, mode='constant', constant_values=0)"},
      {"rot90", rot90, "rot90(m, k=1, axes=(0, 1))"},
      {"meshgrid", meshgrid, "meshgrid(x1, x2, …, indexing='xy')"},
  };
}

}  // namespace shale::tools
