#include "language/indexing.hpp"

#include <fmt/format.h>

namespace shale::tools {

namespace {

index_entry to_entry(const value& entry) {
  if (entry.is<slice>()) return entry.as<slice>();
  if (entry.is<none_t>()) return newaxis;
  if (entry.is<ellipsis_t>()) return ellipsis;
  if (entry.is<expr>())
    throw error(errc::invalid_argument, "an array cannot be an index here",
                {"where(condition, a, b) chooses elements by a condition"});
  if (entry.is<bool>()) throw error(errc::invalid_argument, "a bool cannot be an index here");
  if (entry.is<value::tuple>() && entry.as<value::tuple>().kind() == sequence_kind::list)
    throw error(errc::invalid_argument, "lists of indices are not supported",
                {"what is evenly spaced is a slice, as in a[:, 1:7:2]; other parts can be joined: "
                 "concat((a[:, 1:2], a[:, 5:6]), axis=1)"});
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

value index_value(const value& object, const std::vector<value>& entries) {
  if (object.is<value::tuple>()) return element(object.as<value::tuple>().elements(), entries);
  if (!object.is<expr>())
    throw error(errc::invalid_argument, fmt::format("{} cannot be indexed", object.description()));
  std::vector<index_entry> converted;
  converted.reserve(entries.size());
  for (const value& entry : entries) converted.push_back(to_entry(entry));
  return {object.as<expr>().index(converted)};
}

}  // namespace shale::tools
