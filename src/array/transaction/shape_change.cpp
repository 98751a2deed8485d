#include "array/transaction/shape_change.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "array/specification/specification.hpp"
#include "array/transaction/dense_resize.hpp"
#include "array/transaction/staged_chunks.hpp"
#include "core/printable.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "shale/error.hpp"
#include "shale/layout.hpp"

namespace shale::arrays {

namespace {

dims shorter_of(const dims& a, const dims& b) {
  dims shorter = a;
  for (index_t axis = 0; axis < a.size(); ++axis) shorter[axis] = std::min(a[axis], b[axis]);
  return shorter;
}

// The shape after an append along `axis`.
dims longer_shape(const dims& shape, const dims& added, index_t axis) {
  const auto refuse = [&](std::string advice) {
    throw error(errc::invalid_argument, "the values do not fit the array",
                {fmt::format("got shape {}, to append along axis {} of shape {}", to_string(added),
                             axis, to_string(shape)),
                 std::move(advice)});
  };
  if (added.size() != shape.size())
    refuse(fmt::format("they need rank {}: `expand_dims` adds an axis", shape.size()));
  dims longer = shape;
  for (index_t i = 0; i < shape.size(); ++i) {
    if (i != axis && added[i] != shape[i])
      refuse(fmt::format("their extent along axis {} must be {}", i, shape[i]));
  }
  const auto sum = checked_add(shape[axis], added[axis]);
  if (!sum) refuse("the array would be longer than 2^63 - 1");
  longer[axis] = *sum;
  return longer;
}

}  // namespace

// ---- the transaction --------------------------------------------------------------------------

// The caller holds `state_lock_`.
void shared_transaction::require_shape_at_rest(std::string_view name) const {
  if (changing_shape_.contains(name))
    throw error(errc::busy, fmt::format("{} is being resized", detail::in_quotes(name)),
                {"another call appends to it or changes its shape: wait for its end"});
}

std::shared_ptr<written_array> shared_transaction::resize(std::string_view name,
                                                          const dims& shape) {
  const auto changes = lock(changes_lock_);
  return shape_change(*this, name).set(shape);
}

// ---- a change of a shape ----------------------------------------------------------------------

shape_change::shape_change(shared_transaction& owner, std::string_view name) : owner_(owner) {
  const auto state = owner.lock(owner.state_lock_);
  owner.require_active();
  owner.require_shape_at_rest(name);
  auto record = owner.inner_->find(name);
  if (!record) owner.throw_no_array(name);
  if (record->shape.empty())
    throw error(errc::invalid_argument, "an array of rank 0 has no axis that could grow");
  before_ = std::move(*record);
  owner.changing_shape_.insert(before_.name);
}

shape_change::~shape_change() {
  // In a forked child, another thread of the parent may hold the lock for ever.
  if (!owner_.is_of_this_process()) return;
  const std::lock_guard lock(owner_.state_lock_);
  owner_.changing_shape_.erase(before_.name);
  for (const auto& old : superseded_) old->readable = false;
}

void shape_change::require_shape(const dims& shape) const {
  if (shape.size() != before_.shape.size())
    throw error(errc::invalid_argument, "the new shape has another rank than the array",
                {fmt::format("got {}, the array has shape {}", to_string(shape),
                             to_string(before_.shape))});
  require_storable(before_.name, shape, before_.dtype);
}

// Whatever fails, the array before is still there.
std::shared_ptr<written_array> shape_change::set_dense(const dims& shape) {
  std::shared_ptr<written_array> old;
  std::optional<dense_resize> change;
  bool is_new = false;
  {
    const auto state = owner_.lock(owner_.state_lock_);
    const auto known = owner_.written_.find(before_.name);
    is_new = known == owner_.written_.end();
    old = is_new ? shared_transaction::updated(*owner_.inner_->find(before_.name)) : known->second;
    superseded_.reserve(superseded_.size() + 1);
    change.emplace(owner_, *old, shape);
    dense_resize::close(owner_, *old);
  }
  std::shared_ptr<written_array> made;
  try {
    change->prepare();
    const auto state = owner_.lock(owner_.state_lock_);
    owner_.require_active(owner_.chunks_);
    if (old->bytes) old->bytes.check();  // nobody else remembers what it lost
    auto stored = *owner_.inner_->find(before_.name);
    if (old->shared && !old->shared->copied.empty()) {
      // Copied units become the array's, so that the next record can keep a part of them.
      stored.dense().extents = old->record.dense().extents;
      owner_.inner_->put(stored);
    }
    made = change->made(stored);
    owner_.enlist(made);
    owner_.inner_->put(made->record);  // nothing that can fail comes after it
    superseded_.push_back(old);
    old->detach_from_file();
    return made;
  } catch (...) {
    const std::lock_guard state(owner_.state_lock_);
    if (made && is_new) owner_.written_.erase(before_.name);
    if (made && !is_new) owner_.written_.find(before_.name)->second = old;
    change->give_back();
    old->resized = false;
    throw;
  }
}

std::shared_ptr<written_array> shape_change::set(const dims& shape) {
  require_shape(shape);
  if (before_.is_dense()) return set_dense(shape);
  const auto staged = std::make_shared<staged_chunks>(owner_, before_.name);
  format::cut_chunks cut;
  std::shared_ptr<written_array> old;
  format::array_record now;
  {
    const auto state = owner_.lock(owner_.state_lock_);
    now = *owner_.inner_->find(before_.name);
    cut = owner_.inner_->chunks_cut_by(before_.name, shape);
    if (const auto known = owner_.written_.find(before_.name); known != owner_.written_.end())
      old = known->second;
    if (old) superseded_.push_back(old);
    if (old) old->resized = true;
  }
  std::shared_ptr<written_array> made;
  try {
    if (!cut.across.empty()) {
      format::array_record kept = now;
      kept.shape = shorter_of(now.shape, shape);
      chunk_tiles(owner_.label(before_.name), kept, staged)
          .store_again(cut.across, executor::current());
    }
    const auto state = owner_.lock(owner_.state_lock_);
    owner_.require_active(owner_.chunks_);
    now.shape = shape;
    now.chunked().grid_capacity =
        format::grown_capacity(now.chunked().grid_capacity, format::chunk_grid(now));
    made = std::make_shared<written_array>(std::move(now));
    owner_.enlist(made);
    // The catalog comes last: nothing that can fail comes after it.
    owner_.inner_->resize(before_.name, shape, staged->sorted());
    if (old) {
      old->tiles.reset();  // the tiles and the transaction own each other
      // The old handles would look for chunks by their old numbers.
      if (!format::same_numbers(old->record.chunked().grid_capacity,
                                made->record.chunked().grid_capacity))
        old->readable = false;
    }
    return made;
  } catch (...) {
    const std::lock_guard state(owner_.state_lock_);
    if (made) made->tiles.reset();
    if (old) owner_.written_.find(before_.name)->second = old;
    else owner_.written_.erase(before_.name);
    staged->give_back();
    if (old) superseded_.pop_back();
    if (old) old->resized = false;
    throw;
  }
}

// ---- an append --------------------------------------------------------------------------------

running_append::running_append(shared_transaction& owner, std::string_view name, const dims& added,
                               index_t axis)
    : owner_(owner) {
  auto changes = owner.lock(owner.changes_lock_);
  // A commit closes the transaction while it holds that lock, so it waits for this write or refuses
  // it.
  running_.emplace(owner);
  try {
    begin(name, added, axis);
  } catch (...) {
    change_.reset();
    changes.unlock();  // the end of the write may end the transaction, which takes the lock
    running_.reset();
    throw;
  }
}

void running_append::begin(std::string_view name, const dims& added, index_t axis) {
  change_.emplace(owner_, name);
  const dims& shape = change_->before().shape;
  axis_ = normalize_axis(axis, shape.size());
  const dims longer = longer_shape(shape, added, axis_);
  part_ = {dims::filled(shape.size(), 0), added};
  part_.start[axis_] = shape[axis_];
  array_ = change_->set(longer);
}

void running_append::finish() {
  owner_.require_not_aborted();
  finished_ = true;
}

// If the transaction ends anyway, there is nothing to undo.
running_append::~running_append() {
  if (!finished_ && !owner_.abort_asked_) {
    try {
      change_->set(change_->before().shape);
    } catch (...) {
      owner_.refuse_commit();
    }
  }
  change_.reset();
  running_.reset();
}

}  // namespace shale::arrays
