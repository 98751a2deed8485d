#include "shale/snapshot.hpp"

#include <fmt/format.h>

#include "array/handles/array_implementation.hpp"
#include "array/handles/container_implementation.hpp"
#include "array/handles/read_attribute.hpp"
#include "array/specification/close_names.hpp"
#include "array/specification/level_records.hpp"
#include "core/allocating.hpp"
#include "core/held.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"

namespace shale {

snapshot::implementation& snapshot::state() const {
  return detail::held(implementation_, "snapshot");
}

std::uint64_t snapshot::generation() const { return state().view.generation(); }

std::optional<array> snapshot::find(std::string_view name) const {
  const auto& self = state();
  return detail::reporting(
      [&] { return fmt::format("find {} in {}", detail::in_quotes(name), self.path); },
      [&]() -> std::optional<array> {
        auto record = self.view.find(name);
        if (!record || arrays::is_level_record(*record)) return std::nullopt;
        return array(std::make_shared<array::implementation>(self.path, std::move(*record),
                                                             self.view, self.owner));
      });
}

array snapshot::at(std::string_view name) const {
  const auto& self = state();
  return detail::allocating([&] {
    if (auto found = find(name)) return *std::move(found);
    const std::vector<std::string> first = names({}, {}, arrays::names_compared_max);
    // The catalog's own count includes the attributes of levels, so it is used only if there are
    // more names than were listed.
    const bool are_all = first.size() < arrays::names_compared_max;
    error failure(errc::not_found,
                  fmt::format("no array {} in {}", detail::in_quotes(name), self.path),
                  {fmt::format("generation {} holds {} arrays", generation(),
                               are_all ? first.size() : self.view.array_count())});
    arrays::suggest_names(failure, name, first);
    throw failure;
  });
}

std::vector<std::string> snapshot::close_names(std::string_view name) const {
  return detail::allocating(
      [&] { return arrays::close_names(name, names({}, {}, arrays::names_compared_max)); });
}

std::vector<std::string> snapshot::names(std::string_view prefix, std::string_view after,
                                         std::size_t limit) const {
  const auto& view = state().view;
  return detail::allocating([&] { return arrays::array_names(view, prefix, after, limit); });
}

std::vector<level_entry> snapshot::children(std::string_view level, std::string_view after,
                                            std::size_t limit) const {
  const auto& view = state().view;
  return detail::allocating([&] { return arrays::array_children(view, level, after, limit); });
}

std::optional<format::array_record> snapshot::implementation::find_level(
    std::string_view level) const {
  return detail::reporting([&] { return "read attributes of " + label(level); },
                           [&]() -> std::optional<format::array_record> {
                             auto record = view.find(arrays::level_record_name(level));
                             if (record && !arrays::is_level_record(*record)) return std::nullopt;
                             return record;
                           });
}

std::string snapshot::implementation::label(std::string_view level) const {
  return level.empty() ? path : fmt::format("level {} in {}", detail::in_quotes(level), path);
}

std::vector<std::pair<std::string, std::string>> snapshot::attributes(
    std::string_view level) const {
  auto record = state().find_level(level);
  if (!record) return {};
  return std::move(record->attributes);
}

std::optional<attribute_value> snapshot::typed_attribute(std::string_view key,
                                                         std::string_view level) const {
  const auto& self = state();
  const auto record = self.find_level(level);
  if (!record) return std::nullopt;
  return arrays::read_attribute<attribute_value>(
      *record, key, [&] { return self.label(level); },
      [](const attribute_value& value) { return value; });
}

template <attribute_type T>
std::optional<T> snapshot::attribute_as(std::string_view key, std::string_view level) const {
  const auto& self = state();
  const auto record = self.find_level(level);
  if (!record) return std::nullopt;
  return arrays::read_attribute<T>(
      *record, key, [&] { return self.label(level); },
      [](const attribute_value& value) { return value.as<T>(); });
}

template std::optional<bool> snapshot::attribute_as(std::string_view, std::string_view) const;
template std::optional<std::int64_t> snapshot::attribute_as(std::string_view,
                                                            std::string_view) const;
template std::optional<std::uint64_t> snapshot::attribute_as(std::string_view,
                                                             std::string_view) const;
template std::optional<double> snapshot::attribute_as(std::string_view, std::string_view) const;
template std::optional<std::string> snapshot::attribute_as(std::string_view,
                                                           std::string_view) const;
template std::optional<std::vector<bool>> snapshot::attribute_as(std::string_view,
                                                                 std::string_view) const;
template std::optional<std::vector<std::int64_t>> snapshot::attribute_as(std::string_view,
                                                                         std::string_view) const;
template std::optional<std::vector<std::uint64_t>> snapshot::attribute_as(std::string_view,
                                                                          std::string_view) const;
template std::optional<std::vector<double>> snapshot::attribute_as(std::string_view,
                                                                   std::string_view) const;
template std::optional<std::vector<std::string>> snapshot::attribute_as(std::string_view,
                                                                        std::string_view) const;

std::vector<std::string> snapshot::levels_with_attributes() const {
  const auto& view = state().view;
  return detail::allocating([&] {
    std::vector<std::string> levels;
    std::vector<std::string> names;
    std::string last;
    do {
      names = view.list({}, last, 4096);
      for (const std::string& name : names) {
        if (!arrays::holds_level(view, name)) continue;
        std::string level(arrays::level_of_record(name));
        // Names of other programs may have empty levels, which nobody can ask for.
        if (arrays::level_record_name(level) == name) levels.push_back(std::move(level));
      }
      if (!names.empty()) last = names.back();
    } while (!names.empty());
    return levels;
  });
}

}  // namespace shale
