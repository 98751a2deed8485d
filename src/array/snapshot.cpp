#include <fmt/format.h>

#include "array/array_state.hpp"
#include "array/close_names.hpp"
#include "array/container_state.hpp"
#include "shale/error.hpp"

namespace shale {

std::uint64_t snapshot::generation() const noexcept { return implementation_->view.generation(); }

std::optional<array> snapshot::find(std::string_view name) const {
  const auto& self = *implementation_;
  return with_context([&] { return fmt::format("find '{}' in {}", name, self.path); },
                      [&]() -> std::optional<array> {
                        auto record = self.view.find(name);
                        if (!record) return std::nullopt;
                        return array(std::make_shared<array::implementation>(
                            self.path, std::move(*record), self.view));
                      });
}

array snapshot::at(std::string_view name) const {
  if (auto found = find(name)) return *std::move(found);
  const auto& self = *implementation_;
  error failure(
      errc::not_found, fmt::format("no array '{}' in {}", name, self.path),
      {fmt::format("generation {} holds {} arrays", generation(), self.view.array_count())});
  arrays::suggest_names(failure, name, names({}, {}, arrays::names_compared_max));
  throw failure;
}

std::vector<std::string> snapshot::names(std::string_view prefix, std::string_view after,
                                         std::size_t limit) const {
  return implementation_->view.list(prefix, after, limit);
}

}  // namespace shale
