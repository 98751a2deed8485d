// Units and coordinates: attributes that are texts, and arrays that are found by the names of
// dimensions.
#include "shale/coordinates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/allocating.hpp"
#include "core/printable.hpp"
#include "shale/dimension_names.hpp"
#include "shale/error.hpp"
#include "shale/logical_arrays.hpp"

namespace shale {

namespace {

constexpr std::string_view blanks = " \t\n\r";

// The part of a name up to and including its last '/'; empty if there is none.
std::string_view level_of(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash + 1);
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return names;
    const std::size_t end = std::min(text.find_first_of(blanks, first), text.size());
    names.emplace_back(text.substr(first, end - first));
    text.remove_prefix(end);
  }
}

[[noreturn]] void throw_unfit(const array& stored, const array& coordinates, std::string problem) {
  throw error(errc::corrupt, "coordinates do not fit their array",
              {fmt::format("array {}, coordinates {}", detail::in_quotes(stored.name()),
                           detail::in_quotes(coordinates.name())),
               std::move(problem)});
}

std::string extents_of(std::string_view dimension, index_t own, index_t wanted) {
  return fmt::format("dimension {}: got extent {}, the array has {}", detail::in_quotes(dimension),
                     own, wanted);
}

std::optional<array> variable_of(const snapshot& generation, const array& stored, index_t axis,
                                 const std::string& dimension) {
  // With a '/', it would be the name of an array in another level.
  if (dimension.find('/') != std::string::npos) return std::nullopt;
  auto found = generation.find(std::string(level_of(stored.name())) + dimension);
  if (!found || found->rank() != 1) return std::nullopt;
  const auto own = dimension_names(*found);
  if (own && own->front() != dimension) return std::nullopt;
  if (found->shape()[0] != stored.shape()[axis])
    throw_unfit(stored, *found, extents_of(dimension, found->shape()[0], stored.shape()[axis]));
  return found;
}

// Each axis of `coordinates` that has a name must be one of the array's.
void require_axes(const array& stored, const array_coordinates& of, const array& coordinates) {
  const auto names = dimension_names(coordinates);
  // The characters of texts lie along an axis of their own, which the other array need not have.
  const auto logical = logical_dtype_of(coordinates);
  const index_t rank =
      logical ? logical_shape(*logical, coordinates.shape()).size() : coordinates.rank();
  for (index_t axis = 0; names && axis < rank; ++axis) {
    const std::string& dimension = (*names)[static_cast<std::size_t>(axis)];
    const index_t extent = coordinates.shape()[axis];
    std::string problem =
        fmt::format("dimension {}: the array does not have it", detail::in_quotes(dimension));
    bool fits = false;
    for (index_t other = 0; other < stored.rank(); ++other) {
      if (of.axes[static_cast<std::size_t>(other)].dimension != dimension) continue;
      fits = fits || stored.shape()[other] == extent;
      problem = extents_of(dimension, extent, stored.shape()[other]);
    }
    if (!fits) throw_unfit(stored, coordinates, std::move(problem));
  }
}

array other_of(const snapshot& generation, const array& stored, std::string_view name) {
  const std::string full = name.front() == '/' ? std::string(name.substr(1))
                                               : std::string(level_of(stored.name())).append(name);
  auto found = generation.find(full);
  if (!found)
    throw error(errc::not_found, "no array " + detail::in_quotes(full),
                {fmt::format("array {} names it in its attribute '{}'",
                             detail::in_quotes(stored.name()), coordinates_key)});
  return *std::move(found);
}

}  // namespace

std::optional<std::string> units(const array& stored) {
  return stored.attribute_as<std::string>(units_key);
}

void set_units(transaction& change, std::string_view array, std::string_view text) {
  change.set_attribute(array, units_key, attribute_value(text));
}

std::vector<std::string> coordinate_names(const array& stored) {
  const auto text = stored.attribute_as<std::string>(coordinates_key);
  return detail::allocating([&] { return names_in(text.value_or(std::string())); });
}

void set_coordinate_names(transaction& change, std::string_view array,
                          const std::vector<std::string>& names) {
  const auto value = detail::allocating([&] {
    std::string text;
    for (const std::string& name : names) {
      if (name.empty() || name.find_first_of(blanks) != std::string::npos)
        throw error(errc::invalid_argument, "not a name for coordinates",
                    {"got " + detail::in_quotes(name),
                     "blanks separate the names, so none has a blank or is empty"});
      text += (text.empty() ? "" : " ") + name;
    }
    return attribute_value(text);
  });
  change.set_attribute(array, coordinates_key, value);
}

array_coordinates find_coordinates(const snapshot& generation, std::string_view name) {
  return detail::allocating([&] {
    const array stored = generation.at(name);
    array_coordinates result;
    const auto names = dimension_names(stored);
    for (index_t axis = 0; axis < stored.rank(); ++axis) {
      axis_coordinates found;
      if (names) found.dimension = (*names)[static_cast<std::size_t>(axis)];
      if (!found.dimension.empty())
        found.variable = variable_of(generation, stored, axis, found.dimension);
      result.axes.push_back(std::move(found));
    }
    for (const std::string& other : coordinate_names(stored)) {
      result.others.push_back(other_of(generation, stored, other));
      if (names) require_axes(stored, result, result.others.back());
    }
    return result;
  });
}

}  // namespace shale
