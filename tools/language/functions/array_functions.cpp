#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "language/functions/function_tables.hpp"
#include "language/values/arguments.hpp"
#include "language/values/array_literal.hpp"
#include "language/values/value.hpp"
#include "shale/functions.hpp"

namespace shale::tools {

namespace {

value arange(arguments& from) {
  std::optional<scalar> start = from.optional_number("start");
  std::optional<scalar> stop = from.optional_number("stop");
  if (!stop) std::swap(start, stop);  // a single number is the stop
  if (!stop)
    throw error(errc::invalid_argument, fmt::format("{}: 'stop' is missing", from.function()));
  const std::optional<scalar> step = from.optional_number("step");
  return {shale::arange(start.value_or(std::int64_t{0}), *stop, step.value_or(std::int64_t{1}),
                        from.type("dtype"))};
}

value full(arguments& from) {
  const dims shape = from.shape("shape");
  const scalar filled = from.number("fill_value");
  return {shale::full(shape, filled, from.type("dtype"))};
}

template <expr (*make)(const dims&, dtype)>
value filled(arguments& from) {
  const dims shape = from.shape("shape");
  return {make(shape, from.type("dtype").value_or(dtype::float64))};
}

value full_like(arguments& from) {
  const expr a = from.array("a");
  const scalar filled = from.number("fill_value");
  return {shale::full_like(a, filled, from.type("dtype"))};
}

// The trace over the first two axes, as in NumPy.
value trace(arguments& from) {
  const expr a = from.array("a");
  const index_t offset = from.index("offset", 0);
  return {shale::trace(a.rank() < 2 ? a : a.moveaxis(1, -1).moveaxis(0, -2), offset)};
}

template <expr (*make)(const expr&, std::optional<dtype>)>
value filled_like(arguments& from) {
  const expr a = from.array("a");
  return {make(a, from.type("dtype"))};
}

value linspace(arguments& from) {
  const double start = from.number("start").as<double>();
  const double stop = from.number("stop").as<double>();
  return {shale::linspace(start, stop, from.index("num", 50))};
}

value logspace(arguments& from) {
  const double start = from.number("start").as<double>();
  const double stop = from.number("stop").as<double>();
  const index_t count = from.index("num", 50);
  return {shale::logspace(start, stop, count, from.real("base", 10))};
}

value eye(arguments& from) {
  const index_t rows = from.index("N");
  const std::optional<index_t> columns = from.axis("M");
  const index_t diagonal = from.index("k", 0);
  return {shale::eye(rows, columns, diagonal, from.type("dtype").value_or(dtype::float64))};
}

// A function of matrices with the number of a diagonal.
template <expr (*function)(const expr&, index_t)>
value of_diagonal(arguments& from) {
  const expr a = from.array("a");
  return {function(a, from.index("k", 0))};
}

value roll(arguments& from) {
  const expr a = from.array("a");
  const index_t shift = from.index("shift");
  return {shale::roll(a, shift, from.axes("axis"))};
}

value outer(arguments& from) {
  const expr a = from.array("a");
  return {shale::outer(a, from.array("b"))};
}

value tile(arguments& from) {
  const expr a = from.array("A");
  return {shale::tile(a, from.shape("reps"))};
}

// A count for each position, in an array or a list.
expr counts_of(const value& given) {
  constexpr std::string_view subject = "repeat: 'repeats'";
  if (!given.is<value::tuple>()) return with_context(subject, [&] { return to_expr(given); });
  const auto& elements = given.as<value::tuple>().elements();
  const tensor counts = tensor::empty({static_cast<index_t>(elements.size())}, dtype::int64);
  std::transform(elements.begin(), elements.end(), counts.elements<std::int64_t>().begin(),
                 [&](const value& element) { return to_index(element, subject); });
  return counts;
}

value repeat(arguments& from) {
  const expr a = from.array("a");
  const value times = from.required("repeats");
  const std::optional<value> axis = from.optional("axis");
  const bool is_flat = !axis || axis->is<none_t>();
  const expr repeated = is_flat ? a.reshape({-1}) : a;
  const index_t along = is_flat ? 0 : to_index(*axis, "repeat: 'axis'");
  if (times.is_integer())
    return {shale::repeat(repeated, to_index(times, "repeat: 'repeats'"), along)};
  return {shale::repeat(repeated, counts_of(times), along)};
}

std::vector<expr> array_list(arguments& from) {
  const value list = from.required("arrays");
  if (!list.is<value::tuple>())
    throw error(errc::invalid_argument,
                fmt::format("{}: 'arrays' must be a tuple, as in (a, b), got {}", from.function(),
                            list.description()));
  std::vector<expr> parts;
  for (const value& part : list.as<value::tuple>().elements()) parts.push_back(to_operand(part));
  return parts;
}

value take(arguments& from) {
  const expr a = from.array("a");
  const expr indices = from.index_array("indices");
  return {shale::take(a, indices, from.axis("axis"))};
}

value take_along_axis(arguments& from) {
  const expr a = from.array("arr");
  const expr indices = from.index_array("indices");
  return {shale::take_along_axis(a, indices, from.index("axis", -1))};
}

value concat(arguments& from) {
  const std::vector<expr> parts = array_list(from);
  return {shale::concat(parts, from.index("axis", 0))};
}

value stack(arguments& from) {
  const std::vector<expr> parts = array_list(from);
  return {shale::stack(parts, from.index("axis", 0))};
}

// A function of windows. The defaults of the mode differ as in NumPy; the names of the methods are
// those of SciPy.
template <expr (*function)(const expr&, const expr&, window_mode, window_method)>
value of_windows(arguments& from, window_mode otherwise) {
  constexpr std::pair<std::string_view, window_mode> modes[] = {
      {"valid", window_mode::valid}, {"same", window_mode::same}, {"full", window_mode::full}};
  constexpr std::pair<std::string_view, window_method> methods[] = {
      {"direct", window_method::direct}, {"fft", window_method::fft}};
  const expr a = from.array("a");
  const expr by = from.array("v");
  const window_mode mode = from.choice("mode", modes, otherwise);
  return {function(a, by, mode, from.choice("method", methods))};
}

value correlate(arguments& from) { return of_windows<shale::correlate>(from, window_mode::valid); }

value convolve(arguments& from) { return of_windows<shale::convolve>(from, window_mode::full); }

value reshape(arguments& from) {
  const expr a = from.array("a");
  return {a.reshape(from.integers_or_shape("shape"))};
}

value ravel(arguments& from) { return {from.array("a").ravel()}; }

value expand_dims(arguments& from) {
  const expr a = from.array("a");
  return {a.expand_dims(from.index("axis"))};
}

value squeeze(arguments& from) {
  const expr a = from.array("a");
  const std::optional<dims> axes = from.axes("axis");
  return {axes ? a.squeeze(*axes) : a.squeeze()};
}

// Without axes, the order of all axes is reversed, as NumPy's transpose does.
value permute_dims(arguments& from) {
  const expr a = from.array("a");
  if (from.positional_left() > 1) return {a.permute_dims(from.integers_or_shape("axes"))};
  std::optional<dims> axes = from.axes("axes");
  if (!axes) {
    axes = dims();
    for (index_t i = a.rank(); i-- > 0;) axes->push_back(i);
  }
  return {a.permute_dims(*axes)};
}

value swapaxes(arguments& from) {
  const expr a = from.array("a");
  const index_t first = from.index("axis1");
  return {a.swapaxes(first, from.index("axis2"))};
}

value moveaxis(arguments& from) {
  const expr a = from.array("a");
  const index_t source = from.index("source");
  return {a.moveaxis(source, from.index("destination"))};
}

value diagonal(arguments& from) {
  const expr a = from.array("a");
  const index_t offset = from.index("offset", 0);
  const index_t first = from.index("axis1", 0);
  return {a.diagonal(offset, first, from.index("axis2", 1))};
}

value flip(arguments& from) {
  const expr a = from.array("m");
  const std::optional<dims> axes = from.axes("axis");
  return {axes ? a.flip(*axes) : a.flip()};
}

value broadcast_to(arguments& from) {
  const expr a = from.array("array");
  return {a.broadcast_to(from.shape("shape"))};
}

}  // namespace

std::vector<function> array_functions() {
  return {
      {"arange", arange, "arange([start,] stop[, step], dtype=None)"},
      {"full", full, "full(shape, fill_value, dtype=None)"},
      {"zeros", filled<shale::zeros>, "zeros(shape, dtype=float64)"},
      {"ones", filled<shale::ones>, "ones(shape, dtype=float64)"},
      {"full_like", full_like, "full_like(a, fill_value, dtype=None)"},
      {"zeros_like", filled_like<shale::zeros_like>, "zeros_like(a, dtype=None)"},
      {"ones_like", filled_like<shale::ones_like>, "ones_like(a, dtype=None)"},
      {"linspace", linspace, "linspace(start, stop, num=50)"},
      {"logspace", logspace, "logspace(start, stop, num=50, base=10)"},
      {"eye", eye, "eye(N, M=None, k=0, dtype=float64)"},
      {"tril", of_diagonal<shale::tril>, "tril(a, k=0)"},
      {"triu", of_diagonal<shale::triu>, "triu(a, k=0)"},
      {"trace", trace, "trace(a, offset=0)"},
      {"outer", outer, "outer(a, b)"},
      {"roll", roll, "roll(a, shift, axis=None)"},
      {"tile", tile, "tile(A, reps)"},
      {"repeat", repeat, "repeat(a, repeats, axis=None)", true},
      {"take", take, "take(a, indices, axis=None)", true},
      {"take_along_axis", take_along_axis, "take_along_axis(arr, indices, axis=-1)"},
      {"concat", concat, "concat(arrays=(a1, a2, …), axis=0)"},
      {"stack", stack, "stack(arrays=(a1, a2, …), axis=0)"},
      {"correlate", correlate, "correlate(a, v, mode='valid', method='direct')"},
      {"convolve", convolve, "convolve(a, v, mode='full', method='direct')"},
      {"reshape", reshape, "reshape(a, shape)", true},
      {"ravel", ravel, "ravel(a)", true},
      {"expand_dims", expand_dims, "expand_dims(a, axis)"},
      {"squeeze", squeeze, "squeeze(a, axis=None)", true},
      {"permute_dims", permute_dims, "permute_dims(a, axes=None)", true},
      {"swapaxes", swapaxes, "swapaxes(a, axis1, axis2)", true},
      {"moveaxis", moveaxis, "moveaxis(a, source, destination)"},
      {"diagonal", diagonal, "diagonal(a, offset=0, axis1=0, axis2=1)", true},
      {"flip", flip, "flip(m, axis=None)"},
      {"broadcast_to", broadcast_to, "broadcast_to(array, shape)"},
  };
}

}  // namespace shale::tools
