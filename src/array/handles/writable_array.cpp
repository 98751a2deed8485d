#include <fmt/format.h>

#include <optional>

#include "array/elements/carried_chunks.hpp"
#include "array/elements/chunk_places.hpp"
#include "array/elements/part_write.hpp"
#include "array/handles/array_implementation.hpp"
#include "array/transaction/changes/dense_resize.hpp"
#include "array/transaction/changes/running_write.hpp"
#include "core/allocating.hpp"
#include "core/held.hpp"
#include "parallel/executor/executor_state.hpp"
#include "shale/error.hpp"
#include "shale/layout.hpp"
#include "shale/writable_array.hpp"
#include "storage/blocks/backing.hpp"
#include "tensor/parts.hpp"

namespace shale {

std::string writable_array::implementation::frame(const std::string& doing) const {
  return fmt::format("{} {}", doing, owner->label(written->name));
}

tensor writable_array::implementation::dense() const {
  const arrays::dense_writer writes(*owner, *written);
  return tensor(owner->bytes_of(*written), written->record.dtype, layout(written->record.shape));
}

tensor writable_array::implementation::part(const parallel::axis_map& view) const {
  const auto type = written->record.dtype;
  const layout wanted = view.applied_to(layout(written->record.shape));
  const auto [bytes, first] = owner->part_of(*written, wanted);
  const auto start = static_cast<index_t>(first / item_bytes(type));
  return tensor(bytes, type,
                wanted.empty() ? layout(wanted.shape())
                               : layout(wanted.shape(), wanted.strides(), wanted.offset() - start));
}

writable_array::writable_array(std::shared_ptr<implementation> made) noexcept
    : implementation_(std::move(made)) {}

writable_array::implementation& writable_array::state() const {
  return detail::held(implementation_, "writable array");
}

const std::string& writable_array::name() const { return state().written->name; }

dtype writable_array::dtype() const { return state().written->record.dtype; }

const dims& writable_array::shape() const { return state().written->record.shape; }

index_t writable_array::size() const { return element_count(shape()); }

array_kind writable_array::kind() const {
  return state().is_dense() ? array_kind::dense : array_kind::chunked;
}

const dims& writable_array::chunk_shape() const {
  const auto& record = state().written->record;
  return record.is_dense() ? record.shape : record.chunked().chunk_shape;
}

tensor writable_array::map() const {
  const auto& self = state();
  return detail::reporting([&] { return self.frame("map"); },
                           [&] {
                             self.require_writable();
                             if (!self.is_dense())
                               throw error(errc::invalid_argument,
                                           "a chunked array cannot be mapped",
                                           {"write regions or expressions into it"});
                             return self.dense();
                           });
}

namespace {

// A bool tensor may hold any byte (see view_as), but a file must hold 0 or 1, so bools are compared
// with false first. The encoder of chunks does this too.
expr without_odd_bools(dtype type, const expr& values) {
  return type == dtype::boolean && values.dtype() == dtype::boolean ? values != expr(false)
                                                                    : values;
}

}  // namespace

// If another process truncates the file, bytes of the mapping are lost, and its storage is marked
// as failed. The mapping may end with this call, and the mark with it. So this call must note it in
// the transaction.
void writable_array::implementation::store_in_mapped(const tensor& into, const expr& values) const {
  try {
    eval_into(into, without_odd_bools(into.dtype(), values));
  } catch (...) {
    if (into.storage().failed()) owner->note_lost_bytes(*written);
    throw;
  }
  if (!into.storage().failed()) return;
  owner->note_lost_bytes(*written);
  owner->require_writable(*written);  // a removed array has no bytes
  into.storage().check();
}

// Errors of the caller's tile sources pass unchanged.
void writable_array::implementation::write(const parallel::axis_map& view,
                                           const expr& values) const {
  const expr fitted = values.shape() == view.shape ? values : values.broadcast_to(view.shape);
  if (is_dense()) {
    const arrays::dense_writer writes(*owner, *written);
    store_in_mapped(detail::allocating([&] { return part(view); }), fitted);
  } else if (view == parallel::axis_map::identity(written->record.shape)) {
    eval_into(*owner->tiles_of(*written), fitted);
  } else {
    arrays::write_part(*owner->tiles_of(*written), view, fitted, executor::current());
  }
}

bool writable_array::implementation::has_chunks() const {
  const auto found = owner->find(written->name);
  return found && !found->record.is_dense() && found->record.chunked().chunk_count > 0;
}

void writable_array::implementation::write_new_part(const region& added, const expr& values) const {
  const arrays::dense_writer writes(*owner, *written, arrays::dense_writer::purpose::append);
  const auto view = detail::narrowed(parallel::axis_map::identity(written->record.shape), added);
  store_in_mapped(detail::allocating([&] { return part(view); }), values);
}

void writable_array::write(const region& part, const tensor& values) const {
  const auto& self = state();
  detail::reporting([&] { return self.frame("write " + to_string(part) + " of"); },
                    [&] {
                      const arrays::running_write running(*self.owner);
                      self.require_writable();
                      require_inside(part, shape());
                      const tensor fitted =
                          values.shape() == part.shape ? values : values.broadcast_to(part.shape);
                      if (self.is_dense()) {
                        self.write(detail::narrowed(parallel::axis_map::identity(shape()), part),
                                   expr(fitted));
                      } else if (part.shape == shape() && detail::is_mapped(fitted.storage())) {
                        // A mapped file may be larger than memory: the engine reads its pages in
                        // and drops them again.
                        eval_into(*self.owner->tiles_of(*self.written), expr(fitted));
                      } else {
                        self.owner->tiles_of(*self.written)
                            ->write(arrays::chunk_places(part), fitted, executor::current());
                      }
                      self.owner->require_not_aborted();
                    });
}

void writable_array::write(const expr& values) const {
  const auto& self = state();
  with_context([&] { return self.frame("write"); },
               [&] {
                 const arrays::running_write running(*self.owner);
                 self.require_writable();
                 self.write(parallel::axis_map::identity(shape()), values);
                 self.owner->require_not_aborted();
               });
}

void writable_array::write(const region& part, const expr& values) const {
  const auto& self = state();
  with_context([&] { return self.frame("write " + to_string(part) + " of"); },
               [&] {
                 const arrays::running_write running(*self.owner);
                 self.require_writable();
                 require_inside(part, shape());
                 self.write(detail::narrowed(parallel::axis_map::identity(shape()), part), values);
                 self.owner->require_not_aborted();
               });
}

void writable_array::write_at(std::span<const index_entry> entries, const expr& values) const {
  const auto& self = state();
  with_context([&] { return self.frame("write a part of"); },
               [&] {
                 const arrays::running_write running(*self.owner);
                 self.require_writable();
                 self.write(parallel::axis_map::identity(shape()).index(entries), values);
                 self.owner->require_not_aborted();
               });
}

std::uint64_t writable_array::copy_from(const array& from) const {
  const auto& self = state();
  const auto& source = from.state();
  return with_context(
      [&] { return self.frame("copy " + source.label() + " to"); },
      [&]() -> std::uint64_t {
        const arrays::running_write running(*self.owner);
        executor& on = executor::current();
        const auto carried = detail::allocating([&]() -> std::optional<std::uint64_t> {
          self.require_writable();
          if (from.shape() != shape())
            throw error(
                errc::invalid_argument, "an array is copied to one of its shape",
                {fmt::format("got {}, wanted {}", to_string(from.shape()), to_string(shape()))});
          if (!source.view || !arrays::stored_alike(source.record, self.written->record) ||
              self.has_chunks())
            return std::nullopt;
          return arrays::carry_chunks({*source.view, source.record, source.label()},
                                      *self.owner->tiles_of(*self.written), on);
        });
        if (!carried) {
          const executor::scope comparing(on.with_checksums(checksum_use::compared));
          self.write(parallel::axis_map::identity(shape()), expr(from));
        }
        self.owner->require_not_aborted();
        return carried.value_or(0);
      });
}

std::shared_ptr<tile_source> writable_array::tiles() const {
  return state().owner->tiles_of(*state().written);
}

}  // namespace shale
