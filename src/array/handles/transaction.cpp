#include <fmt/format.h>

#include "array/handles/array_implementation.hpp"
#include "array/handles/container_implementation.hpp"
#include "array/specification/specification.hpp"
#include "core/allocating.hpp"
#include "core/held.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"

namespace shale {

transaction::transaction(std::unique_ptr<implementation> made) noexcept
    : implementation_(std::move(made)) {}

transaction::transaction(transaction&&) noexcept = default;
transaction& transaction::operator=(transaction&&) noexcept = default;
transaction::~transaction() = default;

transaction::implementation& transaction::begun() const {
  return detail::held(implementation_, "transaction");
}

std::uint64_t transaction::generation() const { return begun().state->generation(); }

writable_array transaction::create(std::string_view name, const array_spec& spec) {
  const auto& state = begun().state;
  return detail::reporting([&] { return fmt::format("create {}", state->label(name)); },
                           [&] {
                             // Nothing that can fail comes after `create`.
                             const auto made = std::make_shared<writable_array::implementation>(
                                 writable_array::implementation{state, nullptr});
                             made->written = state->create(arrays::make_record(name, spec));
                             return writable_array(made);
                           });
}

writable_array transaction::create(std::string_view name, const expr& values,
                                   const array_form& form) {
  const writable_array made = create(name, array_spec{.dtype = values.dtype(),
                                                      .shape = values.shape(),
                                                      .kind = form.kind,
                                                      .chunk_shape = form.chunk_shape,
                                                      .codec = form.codec,
                                                      .fill_value = form.fill_value});
  try {
    made.write(values);
  } catch (...) {
    try {
      remove(name);
    } catch (const error& failed) {
      // Usually the array is gone: somebody else has removed it, or the transaction has ended.
      if (failed.code() != errc::not_found && failed.code() != errc::invalid_argument)
        begun().state->refuse_commit();
    }
    throw;
  }
  return made;
}

writable_array transaction::update(std::string_view name) {
  const auto& state = begun().state;
  return detail::reporting([&] { return fmt::format("update {}", state->label(name)); },
                           [&] {
                             return writable_array(std::make_shared<writable_array::implementation>(
                                 writable_array::implementation{state, state->update(name)}));
                           });
}

std::optional<array> transaction::find(std::string_view name) const {
  const auto& state = begun().state;
  return detail::reporting(
      [&] { return fmt::format("find {}", state->label(name)); },
      [&]() -> std::optional<array> {
        auto found = state->find(name);
        if (!found) return std::nullopt;
        return array(std::make_shared<array::implementation>(*state, std::move(*found)));
      });
}

std::vector<std::string> transaction::names(std::string_view prefix, std::string_view after,
                                            std::size_t limit) const {
  const auto& state = begun().state;
  return detail::reporting([&] { return "list the arrays of " + state->path(); },
                           [&] { return state->names(prefix, after, limit); });
}

void transaction::remove(std::string_view name) {
  const auto& state = begun().state;
  detail::reporting([&] { return fmt::format("remove {}", state->label(name)); },
                    [&] { state->remove(name); });
}

void transaction::rename(std::string_view from, std::string_view to) {
  const auto& state = begun().state;
  detail::reporting(
      [&] { return fmt::format("rename {} to {}", state->label(from), detail::in_quotes(to)); },
      [&] { state->rename(from, to); });
}

void transaction::set_attribute(std::string_view array, std::string_view key,
                                std::string_view value) {
  const auto& state = begun().state;
  detail::reporting(
      [&] {
        return fmt::format("set attribute {} of {}", detail::in_quotes(key), state->label(array));
      },
      [&] { state->set_attribute(array, key, value); });
}

void transaction::remove_attribute(std::string_view array, std::string_view key) {
  const auto& state = begun().state;
  detail::reporting(
      [&] {
        return fmt::format("remove attribute {} of {}", detail::in_quotes(key),
                           state->label(array));
      },
      [&] { state->remove_attribute(array, key); });
}

std::uint64_t transaction::commit() {
  const auto& state = begun().state;
  return detail::allocating([&] { return state->commit(); });
}

void transaction::replace_by(const std::string& other) {
  const auto& state = begun().state;
  detail::reporting([&] { return fmt::format("replace {} by {}", state->path(), other); },
                    [&] { state->replace_by(other); });
}

void transaction::abort() noexcept {
  if (implementation_ != nullptr) implementation_->state->abort();
}

}  // namespace shale
