#include "language/values/indexing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "language/tokens/tokens.hpp"
#include "shale/evaluate.hpp"
#include "shale/functions.hpp"

namespace shale::tools {

namespace {

// A tuple inside an index is an index array like a list, as in NumPy.
bool is_sequence(const value& entry) { return entry.is<value::tuple>(); }

// The shape of nested lists, by their first elements.
dims shape_of(const value& list) {
  dims shape;
  for (const value* inner = &list; is_sequence(*inner);) {
    const auto& elements = inner->as<value::tuple>().elements();
    shape.push_back(static_cast<index_t>(elements.size()));
    if (elements.empty()) break;
    inner = &elements.front();
  }
  return shape;
}

// Appends the numbers of nested lists in row-major order. Lists nest at most expression_depth_max
// deep.
void append_numbers(const value& list, const dims& shape, index_t axis,
                    std::vector<std::int64_t>& numbers, bool& are_bools) {
  const auto& elements = list.as<value::tuple>().elements();
  const bool is_last = axis == shape.size() - 1;
  bool fits = static_cast<index_t>(elements.size()) == shape[axis];
  for (const value& element : elements) fits = fits && is_sequence(element) != is_last;
  if (!fits) throw error(errc::invalid_argument, "the lists of an index differ in length or depth");
  for (const value& element : elements) {
    if (!is_last) {
      append_numbers(element, shape, axis + 1, numbers, are_bools);
      continue;
    }
    numbers.push_back(to_index(element, "an index in a list"));
    are_bools = are_bools && element.is<bool>();
  }
}

// A list of bools is a mask; bools beside integers are 0 and 1, as in NumPy.
tensor to_array(const value& list) {
  const dims shape = shape_of(list);
  // Lists share what they contain, so a short text may mean many lists, also lists of nothing.
  double lists = 1;
  for (const index_t extent : shape) lists *= static_cast<double>(std::max<index_t>(extent, 1));
  if (lists > static_cast<double>(expression_bytes_max))
    throw error(errc::invalid_argument, "the lists of an index are too long",
                {fmt::format("got shape {}, at most {} elements are possible", to_string(shape),
                             expression_bytes_max)});
  std::vector<std::int64_t> numbers;
  bool are_bools = element_count(shape) > 0;
  append_numbers(list, shape, 0, numbers, are_bools);
  const tensor made = tensor::empty(shape, dtype::int64);
  std::copy(numbers.begin(), numbers.end(), made.elements<std::int64_t>().begin());
  return are_bools ? eval(astype(made, dtype::boolean)) : made;
}

expr_index_entry to_entry(const value& entry) {
  if (entry.is<slice>()) return entry.as<slice>();
  if (entry.is<none_t>()) return newaxis;
  if (entry.is<ellipsis_t>()) return ellipsis;
  if (entry.is<expr>()) return entry.as<expr>();
  if (entry.is<bool>()) return expr(scalar(entry.as<bool>()));
  if (is_sequence(entry)) return to_array(entry);
  return to_index(entry, "an index");
}

value element(const std::vector<value>& elements, const std::vector<value>& entries) {
  if (entries.size() != 1 || entries.front().is<slice>())
    throw error(errc::invalid_argument, "a tuple is indexed by one integer");
  const index_t length = static_cast<index_t>(elements.size());
  const index_t index = to_index(entries.front(), "a tuple's index");
  if (index < -length || index >= length)
    throw error(errc::invalid_argument,
                fmt::format("index {} lies outside a tuple of {}", index, length));
  return elements[static_cast<std::size_t>(index < 0 ? index + length : index)];
}

}  // namespace

expr to_index_array(const value& given) {
  return is_sequence(given) ? expr(to_array(given)) : to_expr(given);
}

value index_value(const value& object, const std::vector<value>& entries) {
  if (object.is<value::tuple>()) return element(object.as<value::tuple>().elements(), entries);
  if (!object.is<expr>())
    throw error(errc::invalid_argument, fmt::format("{} cannot be indexed", object.description()));
  std::vector<expr_index_entry> converted;
  converted.reserve(entries.size());
  for (const value& entry : entries) converted.push_back(to_entry(entry));
  return {object.as<expr>().index(converted)};
}

}  // namespace shale::tools
