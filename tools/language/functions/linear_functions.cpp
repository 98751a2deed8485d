#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "language/functions/function_tables.hpp"
#include "language/functions/seeded.hpp"
#include "language/values/arguments.hpp"
#include "language/values/value.hpp"
#include "shale/decompositions.hpp"
#include "shale/error.hpp"
#include "shale/least_squares.hpp"
#include "shale/linear_systems.hpp"
#include "shale/low_rank.hpp"
#include "shale/matrix_functions.hpp"
#include "shale/spectra.hpp"
#include "shale/tall_qr.hpp"

namespace shale::tools {

namespace {

template <tensor (*function)(const expr&)>
value of_matrix(arguments& from) {
  return {expr(function(from.array("a")))};
}

triangle triangle_argument(arguments& from) {
  return from.flag("upper", false) ? triangle::upper : triangle::lower;
}

template <tensor (*function)(const expr&, triangle)>
value of_triangle(arguments& from) {
  const expr a = from.array("a");
  return {expr(function(a, triangle_argument(from)))};
}

// Results of several arrays are tuples, as in svd(a)[1].
value tuple_of(const std::vector<expr>& parts) {
  std::vector<value> elements;
  elements.reserve(parts.size());
  for (const expr& part : parts) elements.emplace_back(part);
  return {value::tuple(std::move(elements))};
}

value slogdet(arguments& from) {
  const slogdet_result found = shale::slogdet(from.array("a"));
  return tuple_of({found.sign, found.logabsdet});
}

value lu(arguments& from) {
  const lu_result found = shale::lu(from.array("a"));
  return tuple_of({found.p, found.l, found.u});
}

value qr(arguments& from) {
  const expr a = from.array("a");
  constexpr std::pair<std::string_view, qr_columns> modes[] = {{"reduced", qr_columns::reduced},
                                                               {"complete", qr_columns::complete}};
  const qr_result found = shale::qr(a, from.choice("mode", modes));
  return tuple_of({found.q, found.r});
}

value eigh(arguments& from) {
  const expr a = from.array("a");
  const eigh_result found = shale::eigh(a, triangle_argument(from));
  return tuple_of({found.eigenvalues, found.eigenvectors});
}

value eig(arguments& from) {
  const eig_result found = shale::eig(from.array("a"));
  return tuple_of({found.eigenvalues, found.eigenvectors});
}

value svd(arguments& from) {
  const expr a = from.array("a");
  const bool is_full = from.flag("full_matrices", true);
  const svd_result found = shale::svd(a, is_full ? svd_vectors::full : svd_vectors::reduced);
  return tuple_of({found.u, found.s, found.vh});
}

value lstsq(arguments& from) {
  const expr a = from.array("a");
  const expr b = from.array("b");
  const lstsq_result found = shale::lstsq(a, b, from.optional_real("rtol"));
  return tuple_of({found.x, found.residuals, found.rank, found.singular_values});
}

value cholesky_solve(arguments& from) {
  const expr factor = from.array("factor");
  const expr b = from.array("b");
  return {expr(shale::cholesky_solve(factor, b, triangle_argument(from)))};
}

value cholesky_inverse(arguments& from) {
  const expr factor = from.array("factor");
  return {expr(shale::cholesky_inverse(factor, triangle_argument(from)))};
}

template <tensor (*function)(const expr&, std::optional<double>)>
value with_tolerance(arguments& from) {
  const expr a = from.array("a");
  return {expr(function(a, from.optional_real("rtol")))};
}

value solve(arguments& from) {
  const expr a = from.array("a");
  return {expr(shale::solve(a, from.array("b")))};
}

value triangular_solve(arguments& from) {
  const expr a = from.array("a");
  const expr b = from.array("b");
  return {expr(shale::triangular_solve(a, b, {.part = triangle_argument(from)}))};
}

// q is lazy, so only the parts that an expression uses are computed.
value tsqr(arguments& from) {
  const tsqr_result found = shale::tsqr(from.array("a"));
  return tuple_of({found.q, found.r});
}

lowrank_options lowrank_arguments(arguments& from) {
  const lowrank_options usual;
  const index_t oversampling = from.index("oversampling", usual.oversampling);
  return {.oversampling = oversampling, .iterations = from.index("iterations", usual.iterations)};
}

value svd_lowrank(arguments& from) {
  const expr a = from.array("a");
  const index_t rank = from.index("rank");
  const lowrank_options options = lowrank_arguments(from);
  generator source = seeded(from);
  const lowrank_result found = shale::svd_lowrank(source, a, rank, options);
  return tuple_of({found.u, found.s, found.vh});
}

value pca(arguments& from) {
  const expr samples = from.array("samples");
  const index_t count = from.index("count");
  const lowrank_options options = lowrank_arguments(from);
  generator source = seeded(from);
  const pca_result found = shale::pca(source, samples, count, options);
  return tuple_of({found.mean, found.components, found.explained_variance,
                   found.explained_variance_ratio, found.singular_values});
}

value matrix_power(arguments& from) {
  const expr a = from.array("a");
  return {expr(shale::matrix_power(a, from.index("n")))};
}

matrix_order order_argument(arguments& from) {
  const std::optional<value> ord = from.optional("ord");
  if (!ord || ord->is<none_t>()) return matrix_order::frobenius;
  if (ord->is<std::string>()) {
    if (ord->as<std::string>() == "fro") return matrix_order::frobenius;
    if (ord->as<std::string>() == "nuc") return matrix_order::nuclear;
  } else if (ord->is_number()) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::pair<double, matrix_order> orders[] = {
        {1, matrix_order::largest_column_sum},     {-1, matrix_order::smallest_column_sum},
        {2, matrix_order::largest_singular_value}, {-2, matrix_order::smallest_singular_value},
        {infinity, matrix_order::largest_row_sum}, {-infinity, matrix_order::smallest_row_sum}};
    for (const auto& [number, order] : orders)
      if (to_double(*ord) == number) return order;
  }
  throw error(errc::invalid_argument,
              "matrix_norm: 'ord' must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf");
}

value matrix_norm(arguments& from) {
  const expr a = from.array("a");
  const keepdims keep = from.flag("keepdims", false) ? keepdims::yes : keepdims::no;
  return {expr(shale::matrix_norm(a, order_argument(from), keep))};
}

}  // namespace

// They are evaluated where they are parsed: an error about a matrix is an error of the call.
std::vector<function> linear_functions() {
  return {
      {"solve", solve, "solve(a, b)"},
      {"triangular_solve", triangular_solve, "triangular_solve(a, b, upper=False)"},
      {"inv", of_matrix<shale::inv>, "inv(a)"},
      {"det", of_matrix<shale::det>, "det(a)"},
      {"cholesky", of_triangle<shale::cholesky>, "cholesky(a, upper=False)"},
      {"cholesky_solve", cholesky_solve, "cholesky_solve(factor, b, upper=False)"},
      {"cholesky_inverse", cholesky_inverse, "cholesky_inverse(factor, upper=False)"},
      {"slogdet", slogdet, "slogdet(a)"},
      {"lu", lu, "lu(a)"},
      {"qr", qr, "qr(a, mode='reduced')"},
      {"eigh", eigh, "eigh(a, upper=False)"},
      {"eig", eig, "eig(a)"},
      {"svd", svd, "svd(a, full_matrices=True)"},
      {"tsqr", tsqr, "tsqr(a)"},
      {"svd_lowrank", svd_lowrank, "svd_lowrank(a, rank, oversampling=10, iterations=2, *, seed)"},
      {"pca", pca, "pca(samples, count, oversampling=10, iterations=2, *, seed)"},
      {"lstsq", lstsq, "lstsq(a, b, rtol=None)"},
      {"pinv", with_tolerance<shale::pinv>, "pinv(a, rtol=None)"},
      {"matrix_rank", with_tolerance<shale::matrix_rank>, "matrix_rank(a, rtol=None)"},
      {"cond", of_matrix<shale::cond>, "cond(a)"},
      {"svdvals", of_matrix<shale::svdvals>, "svdvals(a)"},
      {"eigvalsh", of_triangle<shale::eigvalsh>, "eigvalsh(a, upper=False)"},
      {"eigvals", of_matrix<shale::eigvals>, "eigvals(a)"},
      {"matrix_norm", matrix_norm, "matrix_norm(a, keepdims=False, ord='fro')"},
      {"matrix_power", matrix_power, "matrix_power(a, n)"},
      {"expm", of_matrix<shale::expm>, "expm(a)"},
  };
}

}  // namespace shale::tools
