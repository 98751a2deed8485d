#include "data/conventions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "notation/address.hpp"
#include "shale/coordinates.hpp"
#include "shale/dimension_names.hpp"
#include "shale/logical_arrays.hpp"

namespace shale::tools {

namespace {

// Runs `read`. Attributes of other programs can cause errors; the first one becomes the problem.
template <class Read>
void read_convention(conventions& into, Read&& read) {
  try {
    read();
  } catch (const error& failure) {
    const errc code = failure.code();
    if (code != errc::invalid_argument && code != errc::not_found && code != errc::corrupt &&
        code != errc::unsupported)
      throw;
    if (!into.problem) into.problem = failure;
  }
}

void read_coordinates(conventions& into, const snapshot& generation, const array& stored) {
  // Most arrays have neither, so there is nothing to search for.
  if (into.dimensions.empty() && !stored.attribute(coordinates_key)) return;
  const array_coordinates found = find_coordinates(generation, stored.name());
  std::vector<std::string> axes;
  for (const axis_coordinates& axis : found.axes)
    axes.push_back(axis.variable ? axis.variable->name() : std::string());
  if (std::any_of(axes.begin(), axes.end(), [](const auto& name) { return !name.empty(); }))
    into.axes = std::move(axes);
  for (const array& other : found.others) into.others.push_back(other.name());
}

std::string comma_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + text;
  return list;
}

}  // namespace

conventions conventions_of(const snapshot& generation, const array& stored) {
  conventions result;
  read_convention(result, [&] {
    if (auto names = dimension_names(stored)) result.dimensions = *std::move(names);
  });
  read_convention(result, [&] { result.units = units(stored); });
  read_convention(result, [&] { result.logical = logical_dtype_of(stored); });
  read_convention(result, [&] { read_coordinates(result, generation, stored); });
  return result;
}

bool conventions::shows(std::string_view key) const {
  return (key == dimension_names_key && !dimensions.empty()) || (key == units_key && units) ||
         (key == coordinates_key && !others.empty()) || (key == logical_dtype_key && logical);
}

std::string conventions::named(const dims& shape) const {
  if (static_cast<index_t>(dimensions.size()) != shape.size()) return to_string(shape);
  std::vector<std::string> parts;
  for (std::size_t axis = 0; axis < dimensions.size(); ++axis) {
    const index_t extent = shape[static_cast<index_t>(axis)];
    parts.push_back(dimensions[axis].empty() ? fmt::format("{}", extent)
                                             : fmt::format("{}: {}", dimensions[axis], extent));
  }
  return "(" + comma_list(parts) + ")";
}

void conventions::add_to(facts& list) const {
  if (!dimensions.empty()) list.add("dimensions", comma_list(dimensions));
  if (units) list.add("units", *units);
  std::string_view key = "coordinates";
  const auto add = [&](const std::string& text) {
    list.add(key, text);
    key = {};  // continues the value above
  };
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    if (!axes[axis].empty())
      add(fmt::format("{}: {}", dimensions[axis], name_in_address(axes[axis])));
  std::vector<std::string> typed;
  for (const std::string& other : others) typed.push_back(name_in_address(other));
  if (!typed.empty()) add("also " + comma_list(typed));
  if (problem)
    list.add("conventions", fmt::format("{} [{}]", problem->message(), name(problem->code())));
}

void conventions::add_to(nlohmann::json& json) const {
  if (!dimensions.empty()) json["dimensions"] = dimensions;
  if (units) json["units"] = *units;
  if (!axes.empty() || !others.empty()) {
    nlohmann::json of_axes = nlohmann::json::array();
    for (const std::string& axis : axes)
      of_axes.push_back(axis.empty() ? nlohmann::json() : nlohmann::json(axis));
    json["coordinates"] = {{"axes", of_axes}, {"others", others}};
  }
  if (problem) json["conventions_problem"] = problem->what();
}

}  // namespace shale::tools
