#include "language/functions/functions.hpp"

#include "language/functions/function_tables.hpp"

namespace shale::tools {

namespace {

std::vector<function> all_functions() {
  std::vector<function> all = math_functions();
  for (const std::vector<function>& table :
       {reductions(), order_functions(), linear_functions(), product_functions(), array_functions(),
        arrangement_functions(), random_functions()})
    all.insert(all.end(), table.begin(), table.end());
  return all;
}

// A name of NumPy or another library for a function that has another name in the array API
// standard.
struct synonym {
  std::string_view name;
  std::string_view standard_name;
};

constexpr synonym synonym_table[] = {{"absolute", "abs"},
                                     {"amax", "max"},
                                     {"amin", "min"},
                                     {"arccos", "acos"},
                                     {"arccosh", "acosh"},
                                     {"arcsin", "asin"},
                                     {"arcsinh", "asinh"},
                                     {"arctan", "atan"},
                                     {"arctan2", "atan2"},
                                     {"arctanh", "atanh"},
                                     {"bitwise_not", "bitwise_invert"},
                                     {"cast", "astype"},
                                     {"clamp", "clip"},
                                     {"concatenate", "concat"},
                                     {"conjugate", "conj"},
                                     {"cumprod", "cumulative_prod"},
                                     {"cumsum", "cumulative_sum"},
                                     {"deg2rad", "radians"},
                                     {"invert", "bitwise_invert"},
                                     {"left_shift", "bitwise_left_shift"},
                                     {"lognormal", "log_normal"},
                                     {"mod", "remainder"},
                                     {"power", "pow"},
                                     {"rad2deg", "degrees"},
                                     {"right_shift", "bitwise_right_shift"},
                                     {"rint", "round"},
                                     {"transpose", "permute_dims"}};

}  // namespace

const std::vector<function>& functions() {
  static const std::vector<function> all = all_functions();
  return all;
}

std::vector<std::string_view> synonyms_of(std::string_view name) {
  std::vector<std::string_view> names;
  for (const synonym& other : synonym_table)
    if (other.standard_name == name) names.push_back(other.name);
  return names;
}

const function* find_function(std::string_view name) {
  for (const synonym& other : synonym_table)
    if (other.name == name) name = other.standard_name;
  for (const function& candidate : functions())
    if (candidate.name == name) return &candidate;
  return nullptr;
}

}  // namespace shale::tools
