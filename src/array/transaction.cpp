#include <fmt/format.h>

#include "array/array_state.hpp"
#include "array/container_state.hpp"
#include "array/specification.hpp"
#include "shale/error.hpp"

namespace shale {

transaction::transaction(std::unique_ptr<implementation> made) noexcept
    : implementation_(std::move(made)) {}

transaction::transaction(transaction&&) noexcept = default;
transaction& transaction::operator=(transaction&&) noexcept = default;
transaction::~transaction() = default;

std::uint64_t transaction::generation() const noexcept {
  return implementation_->state->generation();
}

writable_array transaction::create(std::string_view name, const array_spec& spec) {
  const auto& state = implementation_->state;
  return with_context([&] { return fmt::format("create {}", state->label(name)); },
                      [&] {
                        auto made = state->create(arrays::make_record(name, spec));
                        return writable_array(std::make_shared<writable_array::implementation>(
                            writable_array::implementation{state, std::move(made)}));
                      });
}

writable_array transaction::update(std::string_view name) {
  const auto& state = implementation_->state;
  return with_context([&] { return fmt::format("update {}", state->label(name)); },
                      [&] {
                        return writable_array(std::make_shared<writable_array::implementation>(
                            writable_array::implementation{state, state->update(name)}));
                      });
}

std::optional<array> transaction::find(std::string_view name) const {
  const auto& state = implementation_->state;
  return with_context(
      [&] { return fmt::format("find {}", state->label(name)); },
      [&]() -> std::optional<array> {
        auto found = state->find(name);
        if (!found) return std::nullopt;
        return array(std::make_shared<array::implementation>(*state, std::move(*found)));
      });
}

void transaction::remove(std::string_view name) {
  const auto& state = implementation_->state;
  with_context([&] { return fmt::format("remove {}", state->label(name)); },
               [&] { state->remove(name); });
}

void transaction::rename(std::string_view from, std::string_view to) {
  const auto& state = implementation_->state;
  with_context([&] { return fmt::format("rename {} to '{}'", state->label(from), to); },
               [&] { state->rename(from, to); });
}

void transaction::set_attribute(std::string_view array, std::string_view key,
                                std::string_view value) {
  const auto& state = implementation_->state;
  with_context([&] { return fmt::format("set attribute '{}' of {}", key, state->label(array)); },
               [&] { state->set_attribute(array, key, value); });
}

void transaction::remove_attribute(std::string_view array, std::string_view key) {
  const auto& state = implementation_->state;
  with_context([&] { return fmt::format("remove attribute '{}' of {}", key, state->label(array)); },
               [&] { state->remove_attribute(array, key); });
}

std::uint64_t transaction::commit() { return implementation_->state->commit(); }

void transaction::abort() noexcept { implementation_->state->abort(); }

std::uint64_t transaction::metadata_bytes_written() const noexcept {
  return implementation_->state->metadata_bytes_written();
}

}  // namespace shale
