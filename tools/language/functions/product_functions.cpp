#include <fmt/format.h>

#include <string>

#include "language/functions/function_tables.hpp"
#include "language/values/arguments.hpp"
#include "language/values/value.hpp"
#include "shale/functions.hpp"

namespace shale::tools {

namespace {

value kron(arguments& from) {
  const expr a = from.array("a");
  return {shale::kron(a, from.array("b"))};
}

value cross(arguments& from) {
  const expr a = from.array("a");
  const expr b = from.array("b");
  return {shale::cross(a, b, from.index("axis", -1))};
}

value vecdot(arguments& from) {
  const expr a = from.array("x1");
  const expr b = from.array("x2");
  return {shale::vecdot(a, b, from.index("axis", -1))};
}

value tensordot(arguments& from) {
  constexpr std::string_view subject = "tensordot: 'axes'";
  const expr a = from.array("a");
  const expr b = from.array("b");
  const std::optional<value> axes = from.optional("axes");
  if (!axes) return {shale::tensordot(a, b)};
  if (axes->is_integer()) return {shale::tensordot(a, b, to_index(*axes, subject))};
  if (!axes->is<value::tuple>() || axes->as<value::tuple>().elements().size() != 2)
    throw error(errc::invalid_argument,
                fmt::format("{} must be a number, or the axes of both", subject));
  const auto& both = axes->as<value::tuple>().elements();
  return {shale::tensordot(a, b, to_dims(both.front(), subject), to_dims(both.back(), subject))};
}

value einsum(arguments& from) {
  const value subscripts = from.required("subscripts");
  if (!subscripts.is<std::string>())
    throw error(errc::invalid_argument,
                fmt::format("einsum: 'subscripts' must be a string, as in 'ij,jk->ik', got {}",
                            subscripts.description()));
  std::vector<expr> operands;
  while (from.positional_left() > 0) operands.push_back(from.array("operands"));
  return {shale::einsum(subscripts.as<std::string>(), operands)};
}

value cdist(arguments& from) {
  const expr a = from.array("XA");
  const expr b = from.array("XB");
  return {shale::cdist(a, b, from.real("p", 2))};
}

value dist(arguments& from) {
  const expr a = from.array("a");
  const expr b = from.array("b");
  return {shale::dist(a, b, from.real("p", 2))};
}

value renorm(arguments& from) {
  const expr a = from.array("a");
  const double order = from.real("p", 2);
  const index_t axis = from.index("axis", 0);
  return {shale::renorm(a, axis, from.real("maxnorm", 1), order)};
}

}  // namespace

std::vector<function> product_functions() {
  return {
      {"vecdot", vecdot, "vecdot(x1, x2, axis=-1)"},
      {"tensordot", tensordot, "tensordot(a, b, axes=2)"},
      {"einsum", einsum, "einsum(subscripts, a1, a2, …)"},
      {"kron", kron, "kron(a, b)"},
      {"cdist", cdist, "cdist(XA, XB, p=2)"},
      {"dist", dist, "dist(a, b, p=2)"},
      {"renorm", renorm, "renorm(a, p=2, axis=0, maxnorm=1)"},
      {"cross", cross, "cross(a, b, axis=-1)"},
  };
}

}  // namespace shale::tools
