#include "shale/snapshot.hpp"

#include <fmt/format.h>

#include "array/handles/array_implementation.hpp"
#include "array/handles/container_implementation.hpp"
#include "array/specification/close_names.hpp"
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
        if (!record) return std::nullopt;
        return array(
            std::make_shared<array::implementation>(self.path, std::move(*record), self.view));
      });
}

array snapshot::at(std::string_view name) const {
  const auto& self = state();
  return detail::allocating([&] {
    if (auto found = find(name)) return *std::move(found);
    error failure(
        errc::not_found, fmt::format("no array {} in {}", detail::in_quotes(name), self.path),
        {fmt::format("generation {} holds {} arrays", generation(), self.view.array_count())});
    arrays::suggest_names(failure, name, names({}, {}, arrays::names_compared_max));
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
  return detail::allocating([&] { return view.list(prefix, after, limit); });
}

std::vector<level_entry> snapshot::children(std::string_view level, std::string_view after,
                                            std::size_t limit) const {
  const auto& view = state().view;
  return detail::allocating([&] { return view.children(level, after, limit); });
}

}  // namespace shale
