#include <fmt/format.h>

#include <algorithm>

#include "array/elements/appended_part.hpp"
#include "array/handles/array_implementation.hpp"
#include "array/handles/container_implementation.hpp"
#include "array/specification/specification.hpp"
#include "array/transaction/changes/array_changes.hpp"
#include "array/transaction/changes/attribute_changes.hpp"
#include "array/transaction/changes/running_write.hpp"
#include "array/transaction/changes/shape_change.hpp"
#include "array/transaction/changes/transaction_end.hpp"
#include "core/allocating.hpp"
#include "core/held.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"

namespace shale {

transaction::transaction(std::unique_ptr<implementation> made) noexcept
    : implementation_(std::move(made)) {}

transaction::transaction(transaction&&) noexcept = default;
transaction& transaction::operator=(transaction&&) noexcept = default;
transaction::~transaction() = default;

transaction::implementation& transaction::begun() const {
  return detail::held(implementation_, "transaction");
}

std::uint64_t transaction::generation() const { return begun().state->generation; }

writable_array transaction::create(std::string_view name, const array_spec& spec) {
  const auto& state = begun().state;
  return detail::reporting(
      [&] { return fmt::format("create {}", state->label(name)); },
      [&] {
        // Nothing that can fail comes after `create`.
        const auto made = std::make_shared<writable_array::implementation>(state);
        made->written = arrays::array_changes(*state).create(arrays::make_record(name, spec));
        return writable_array(made);
      });
}

namespace {

array_spec spec_of(const expr& values, const array_form& form) {
  return {.dtype = values.dtype(),
          .shape = values.shape(),
          .kind = form.kind,
          .chunk_shape = form.chunk_shape,
          .codec = form.codec,
          .fill_value = form.fill_value};
}

}  // namespace

writable_array transaction::create(std::string_view name, const expr& values,
                                   const array_form& form) {
  const auto state = begun().state;
  const arrays::running_write running(*state);
  const writable_array made = create(name, spec_of(values, form));
  try {
    made.write(values);
  } catch (...) {
    arrays::array_changes(*state).discard(*made.implementation_->written);
    throw;
  }
  return made;
}

writable_array transaction::create_copy(std::string_view name, const array& from) {
  array_spec spec{.dtype = from.dtype(), .shape = from.shape(), .kind = from.kind()};
  if (spec.kind == array_kind::chunked) {
    spec.chunk_shape = from.chunk_shape();
    spec.codec = from.codec();
    spec.fill_value = from.fill_value();
  }
  const auto state = begun().state;
  const arrays::running_write running(*state);
  const writable_array made = create(name, spec);
  try {
    // The attributes come first: once a commit has begun, while chunks are copied, `set_attribute`
    // throws.
    for (const auto& [key, value] : from.attributes()) set_attribute(name, key, value);
    made.copy_from(from);
  } catch (...) {
    arrays::array_changes(*state).discard(*made.implementation_->written);
    throw;
  }
  return made;
}

// Makes an array under a free name, fills it, and gives it `name` last, all in one running write.
// Errors of the caller's tile sources pass unchanged, except that they name the array as the caller
// knows it.
template <class Fill>
writable_array transaction::replace(std::string_view name, const array_spec& spec, Fill&& fill) {
  const auto state = begun().state;
  const arrays::running_write running(*state);
  const auto frame = [&] { return fmt::format("create or replace {}", state->label(name)); };
  std::shared_ptr<writable_array::implementation> made;
  std::string shown;
  detail::reporting(frame, [&] {
    shown = detail::printable(name);
    made = std::make_shared<writable_array::implementation>(state);
    made->written = arrays::array_changes(*state).create_unnamed(arrays::make_record(name, spec));
  });
  const writable_array filled(made);
  try {
    with_context(frame, [&] {
      fill(filled);
      detail::allocating([&] { arrays::array_changes(*state).take_name(made->written, name); });
    });
  } catch (error& failure) {
    failure.replace_in_text(made->written->name, shown);
    arrays::array_changes(*state).discard(*made->written);
    throw;
  } catch (...) {
    arrays::array_changes(*state).discard(*made->written);
    throw;
  }
  return filled;
}

writable_array transaction::create_or_replace(std::string_view name, const array_spec& spec) {
  return replace(name, spec, [](const writable_array&) {});
}

writable_array transaction::create_or_replace(std::string_view name, const expr& values,
                                              const array_form& form) {
  return replace(name, spec_of(values, form),
                 [&](const writable_array& made) { made.write(values); });
}

writable_array transaction::update(std::string_view name) {
  const auto& state = begun().state;
  return detail::reporting([&] { return fmt::format("update {}", state->label(name)); },
                           [&] {
                             return writable_array(std::make_shared<writable_array::implementation>(
                                 state, arrays::array_changes(*state).update(name)));
                           });
}

writable_array transaction::resize(std::string_view name, const dims& shape) {
  const auto& state = begun().state;
  return detail::reporting(
      [&] { return fmt::format("resize {} to {}", state->label(name), to_string(shape)); },
      [&] {
        // Nothing that can fail comes after `resize`.
        const auto made = std::make_shared<writable_array::implementation>(state);
        made->written = arrays::resize_array(*state, name, shape);
        return writable_array(made);
      });
}

namespace {

// Evaluates `values` into the new part of an array. The part is cut in two where a new chunk
// begins, because the last old chunks along the axis get new elements too.
void write_new_part(const arrays::running_append& append,
                    const std::shared_ptr<arrays::chunk_tiles>& tiles, const expr& values) {
  const index_t axis = append.axis();
  const index_t start = append.part().start[axis];
  const index_t count = append.part().shape[axis];
  const index_t chunk = tiles->tile_shape()[axis];
  const index_t in_old_chunks = start % chunk == 0 ? 0 : std::min(count, chunk - start % chunk);
  const auto write_piece = [&](index_t first, index_t length) {
    region piece = append.part();
    piece.start[axis] += first;
    piece.shape[axis] = length;
    if (element_count(piece.shape) == 0) return;
    arrays::appended_part target(tiles, piece, executor::current());
    eval_into(target, length == count ? values : values.narrow(axis, first, length));
  };
  write_piece(0, in_old_chunks);
  write_piece(in_old_chunks, count - in_old_chunks);
}

}  // namespace

writable_array transaction::append(std::string_view name, const expr& values, index_t axis) {
  // A callback of the write may destroy the transaction, so these two outlive the append.
  const auto state = begun().state;
  std::shared_ptr<writable_array::implementation> made;
  const auto frame = [&] { return fmt::format("append to {}", state->label(name)); };
  std::optional<arrays::running_append> running;
  detail::reporting(frame, [&] {
    made = std::make_shared<writable_array::implementation>(state);
    running.emplace(*state, name, values.shape(), axis);
    made->written = running->array();
  });
  // Errors of the caller's tile sources pass unchanged.
  with_context(frame, [&] {
    if (made->is_dense()) made->write_new_part(running->part(), values);
    else write_new_part(*running, state->tiles_of(*made->written), values);
    detail::allocating([&] { running->finish(); });
  });
  return writable_array(made);
}

std::optional<array> transaction::find(std::string_view name) const {
  const auto& state = begun().state;
  return detail::reporting(
      [&] { return fmt::format("find {}", state->label(name)); },
      [&]() -> std::optional<array> {
        auto found = state->find(name);
        if (!found) return std::nullopt;
        return array(std::make_shared<array::implementation>(state, std::move(*found)));
      });
}

std::vector<std::string> transaction::names(std::string_view prefix, std::string_view after,
                                            std::size_t limit) const {
  const auto& state = begun().state;
  return detail::reporting([&] { return "list the arrays of " + state->path(); },
                           [&] { return state->names(prefix, after, limit); });
}

std::vector<level_entry> transaction::children(std::string_view level, std::string_view after,
                                               std::size_t limit) const {
  const auto& state = begun().state;
  return detail::reporting([&] { return "list the arrays of " + state->path(); },
                           [&] { return state->children(level, after, limit); });
}

void transaction::remove(std::string_view name) {
  const auto& state = begun().state;
  detail::reporting([&] { return fmt::format("remove {}", state->label(name)); },
                    [&] { arrays::array_changes(*state).remove(name); });
}

void transaction::rename(std::string_view from, std::string_view to) {
  const auto& state = begun().state;
  detail::reporting(
      [&] { return fmt::format("rename {} to {}", state->label(from), detail::in_quotes(to)); },
      [&] { arrays::array_changes(*state).rename(from, to); });
}

void transaction::set_attribute(std::string_view array, std::string_view key,
                                std::string_view value) {
  const auto& state = begun().state;
  detail::reporting(
      [&] {
        return fmt::format("set attribute {} of {}", detail::in_quotes(key), state->label(array));
      },
      [&] { arrays::attribute_changes(*state).set(array, key, value); });
}

void transaction::set_attribute(std::string_view array, std::string_view key,
                                const attribute_value& value) {
  static_cast<void>(begun());
  set_attribute(array, key, std::string_view(value.stored()));
}

void transaction::remove_attribute(std::string_view array, std::string_view key) {
  const auto& state = begun().state;
  detail::reporting(
      [&] {
        return fmt::format("remove attribute {} of {}", detail::in_quotes(key),
                           state->label(array));
      },
      [&] { arrays::attribute_changes(*state).remove(array, key); });
}

namespace {

std::string label_of_level(const arrays::shared_transaction& state, std::string_view level) {
  return level.empty() ? state.path() : "level " + state.label(level);
}

}  // namespace

void transaction::set_level_attribute(std::string_view level, std::string_view key,
                                      std::string_view value) {
  const auto& state = begun().state;
  detail::reporting(
      [&] {
        return fmt::format("set attribute {} of {}", detail::in_quotes(key),
                           label_of_level(*state, level));
      },
      [&] { arrays::attribute_changes(*state).set_of_level(level, key, value); });
}

void transaction::set_level_attribute(std::string_view level, std::string_view key,
                                      const attribute_value& value) {
  static_cast<void>(begun());
  set_level_attribute(level, key, std::string_view(value.stored()));
}

void transaction::remove_level_attribute(std::string_view level, std::string_view key) {
  const auto& state = begun().state;
  detail::reporting(
      [&] {
        return fmt::format("remove attribute {} of {}", detail::in_quotes(key),
                           label_of_level(*state, level));
      },
      [&] { arrays::attribute_changes(*state).remove_of_level(level, key); });
}

std::vector<std::pair<std::string, std::string>> transaction::level_attributes(
    std::string_view level) const {
  const auto& state = begun().state;
  return detail::reporting([&] { return "read attributes of " + label_of_level(*state, level); },
                           [&]() -> std::vector<std::pair<std::string, std::string>> {
                             auto record = arrays::attribute_changes(*state).find_level(level);
                             if (!record) return {};
                             return std::move(record->attributes);
                           });
}

std::uint64_t transaction::commit() {
  const auto& state = begun().state;
  return detail::allocating([&] { return arrays::transaction_end(*state).commit(); });
}

pending_commit transaction::commit_async() {
  const auto& state = begun().state;
  return detail::allocating([&] {
    // Nothing that can fail comes after the commit.
    const auto made = std::make_shared<pending_commit::implementation>();
    made->state = arrays::transaction_end(*state).commit_async();
    return pending_commit(made);
  });
}

// ---- what was committed without waiting -------------------------------------------------------

pending_commit::pending_commit(std::shared_ptr<const implementation> made) noexcept
    : implementation_(std::move(made)) {}

std::uint64_t pending_commit::generation() const {
  return detail::held(implementation_, "pending_commit").state->generation();
}

bool pending_commit::durable() const {
  return detail::held(implementation_, "pending_commit").state->durable();
}

void pending_commit::wait() const {
  const auto& self = detail::held(implementation_, "pending_commit");
  detail::allocating([&] { self.state->wait(); });
}

void transaction::replace_by(const std::string& other) {
  const auto& state = begun().state;
  detail::reporting([&] { return fmt::format("replace {} by {}", state->path(), other); },
                    [&] { arrays::transaction_end(*state).replace_by(other); });
}

void transaction::abort() noexcept {
  if (implementation_ != nullptr) arrays::transaction_end(*implementation_->state).abort();
}

}  // namespace shale
