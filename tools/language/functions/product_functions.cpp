#include "language/values/arguments.hpp"
#include "language/functions/function_tables.hpp"
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

}  // namespace

std::vector<function> product_functions() {
  return {
      {"kron", kron, "kron(a, b)"},
      {"cross", cross, "cross(a, b, axis=-1)"},
  };
}

}  // namespace shale::tools
