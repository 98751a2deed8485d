#include <fmt/format.h>

#include <algorithm>

#include "array/elements/chunk_part.hpp"
#include "array/handles/array_implementation.hpp"
#include "array/handles/container_implementation.hpp"
#include "array/specification/specification.hpp"
#include "array/transaction/shape_change.hpp"
#include "core/allocating.hpp"
#include "core/held.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "tensor/parts.hpp"

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
    made.implementation_->owner->discard(*made.implementation_->written);
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

writable_array transaction::resize(std::string_view name, const dims& shape) {
  const auto& state = begun().state;
  return detail::reporting(
      [&] { return fmt::format("resize {} to {}", state->label(name), to_string(shape)); },
      [&] {
        // Nothing that can fail comes after `resize`.
        const auto made = std::make_shared<writable_array::implementation>(
            writable_array::implementation{state, nullptr});
        made->written = state->resize(name, shape);
        return writable_array(made);
      });
}

namespace {

// Evaluates `values` into the new part of an array. The part is cut where a chunk begins, since the
// last chunks along the axis have old elements too.
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
    arrays::chunk_part target(tiles, piece, executor::current());
    eval_into(target, length == count ? values : values.narrow(axis, first, length));
  };
  write_piece(0, in_old_chunks);
  write_piece(in_old_chunks, count - in_old_chunks);
}

}  // namespace

writable_array transaction::append(std::string_view name, const expr& values, index_t axis) {
  const auto& state = begun().state;
  const auto frame = [&] { return fmt::format("append to {}", state->label(name)); };
  std::optional<arrays::running_append> running;
  std::shared_ptr<writable_array::implementation> made;
  detail::reporting(frame, [&] {
    made = std::make_shared<writable_array::implementation>(
        writable_array::implementation{state, nullptr});
    running.emplace(*state, name, values.shape(), axis);
    made->written = running->array();
  });
  // Errors of the caller's tile sources pass unchanged.
  with_context(frame, [&] {
    if (made->is_dense())
      made->write(detail::narrowed(parallel::axis_map::identity(made->written->record.shape),
                                   running->part()),
                  values);
    else write_new_part(*running, state->tiles_of(*made->written), values);
    running->finish();
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
