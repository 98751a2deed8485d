#include "language/values/array_literal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "language/tokens/tokens.hpp"

namespace shale::tools {

namespace {

// The shape of nested lists, by their first elements.
dims shape_of(const value& list) {
  dims shape;
  for (const value* inner = &list; inner->is<value::tuple>();) {
    const auto& elements = inner->as<value::tuple>().elements();
    shape.push_back(static_cast<index_t>(elements.size()));
    if (elements.empty()) break;
    inner = &elements.front();
  }
  return shape;
}

// Lists share what they contain, so a short text may mean many lists, also lists of nothing.
void require_few(const dims& shape) {
  double lists = 1;
  for (const index_t extent : shape) lists *= static_cast<double>(std::max<index_t>(extent, 1));
  if (lists <= static_cast<double>(expression_bytes_max)) return;
  throw error(errc::invalid_argument, "the lists of an array are too long",
              {fmt::format("got shape {}, at most {} elements are possible", to_string(shape),
                           expression_bytes_max)});
}

struct literal {
  std::vector<value> numbers;  // in row-major order
  bool has_floats = false;
  bool has_bools_alone = true;
};

// Lists nest at most expression_depth_max deep.
void append_numbers(const value& list, const dims& shape, index_t axis, literal& all) {
  const auto& elements = list.as<value::tuple>().elements();
  const bool is_last = axis == shape.size() - 1;
  bool fits = static_cast<index_t>(elements.size()) == shape[axis];
  for (const value& element : elements) fits = fits && element.is<value::tuple>() != is_last;
  if (!fits)
    throw error(errc::invalid_argument, "the lists of an array differ in length or depth",
                {"the first ones have shape " + to_string(shape)});
  for (const value& element : elements) {
    if (!is_last) {
      append_numbers(element, shape, axis + 1, all);
      continue;
    }
    if (!element.is_number())
      throw error(errc::invalid_argument,
                  fmt::format("a list of numbers contains {}", element.description()));
    all.has_floats = all.has_floats || element.is<double>();
    all.has_bools_alone = all.has_bools_alone && element.is<bool>();
    all.numbers.push_back(element);
  }
}

template <class T, class Convert>
tensor filled(const dims& shape, const std::vector<value>& numbers, Convert convert) {
  const tensor made = tensor::empty(shape, dtype_of<T>());
  std::transform(numbers.begin(), numbers.end(), made.elements<T>().begin(), convert);
  return made;
}

}  // namespace

tensor to_array(const value& list) {
  const dims shape = shape_of(list);
  require_few(shape);
  literal all;
  append_numbers(list, shape, 0, all);
  if (all.has_floats) return filled<double>(shape, all.numbers, to_double);
  if (all.has_bools_alone && !all.numbers.empty())
    return filled<bool>(shape, all.numbers, [](const value& number) { return number.as<bool>(); });
  return filled<std::int64_t>(shape, all.numbers, [](const value& number) {
    return std::int64_t{to_index(number, "an integer in a list")};
  });
}

expr to_operand(const value& given) {
  const bool is_list =
      given.is<value::tuple>() && given.as<value::tuple>().kind() == sequence_kind::list;
  return is_list ? expr(to_array(given)) : to_expr(given);
}

}  // namespace shale::tools
