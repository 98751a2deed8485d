#include "language/values/indexing.hpp"

#include <fmt/format.h>

#include "language/values/array_literal.hpp"
#include "shale/functions.hpp"

namespace shale::tools {

namespace {

// A tuple inside an index is an index array like a list, as in NumPy.
bool is_sequence(const value& entry) { return entry.is<value::tuple>(); }

// A list of bools is a mask.
tensor to_index_tensor(const value& list) {
  const tensor made = to_array(list);
  if (is_inexact(made.dtype()))
    throw error(errc::invalid_argument, "an index in a list must be an integer, got a float");
  return made;
}

expr_index_entry to_entry(const value& entry) {
  if (entry.is<slice>()) return entry.as<slice>();
  if (entry.is<none_t>()) return newaxis;
  if (entry.is<ellipsis_t>()) return ellipsis;
  if (entry.is<expr>()) return entry.as<expr>();
  if (entry.is<bool>()) return expr(scalar(entry.as<bool>()));
  if (is_sequence(entry)) return to_index_tensor(entry);
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
  return is_sequence(given) ? expr(to_index_tensor(given)) : to_expr(given);
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
