#include "array/transaction/changes/shape_change.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "array/specification/specification.hpp"
#include "array/transaction/changes/array_changes.hpp"
#include "array/transaction/changes/catalog_lookup.hpp"
#include "array/transaction/changes/dense_resize.hpp"
#include "array/transaction/changes/staged_chunks.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
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

std::shared_ptr<written_array> resize_array(transaction_state& owner, std::string_view name,
                                            const dims& shape) {
  const auto changes = owner.locks.lock_changes();
  return shape_change(owner, name).set(shape);
}

shape_change::shape_change(transaction_state& owner, std::string_view name) : owner_(owner) {
  const auto state = owner.locks.lock_state();
  owner.require_active();
  owner.written.require_shape_at_rest(name);
  auto record = existing_record(owner, name);
  if (record.shape.empty())
    throw error(errc::invalid_argument, "an array of rank 0 has no axis that could grow");
  before_ = std::move(record);
  owner.written.begin_shape_change(before_.name);
}

shape_change::~shape_change() {
  // In a forked child, another thread of the parent may hold the lock for ever.
  if (!owner_.locks.are_of_this_process()) return;
  const auto state = owner_.locks.lock_own_state();
  owner_.written.end_shape_change(before_.name);
  for (const auto& old : superseded_) old->readable = false;
  if (pending_) old_->detach_from_file();  // the transaction ends, and knows only the new object
}

void shape_change::require_shape(const dims& shape) const {
  if (shape.size() != before_.shape.size())
    throw error(errc::invalid_argument, "the new shape has another rank than the array",
                {fmt::format("got {}, the array has shape {}", to_string(shape),
                             to_string(before_.shape))});
  require_storable(before_.name, shape, before_.dtype);
}

void shape_change::begin_dense(const dims& shape) {
  {
    const auto state = owner_.locks.lock_state();
    const auto known = owner_.written.find(before_.name);
    is_new_ = known == nullptr;
    old_ = is_new_ ? array_of_base(*owner_.inner->find(before_.name)) : known;
    superseded_.reserve(superseded_.size() + 1);
    made_.reset();
    change_.emplace(owner_, *old_, shape);
    old_->settle();
    if (old_->bytes) old_->bytes.check();  // before bytes are copied for nothing
    dense_resize::close(owner_, *old_);
    pending_ = true;
  }
  try {
    change_->prepare();
    const auto state = owner_.locks.lock_state();
    owner_.require_chunks_active();
    made_ = change_->made(*owner_.inner->find(before_.name));
    array_changes(owner_).enlist(made_);
  } catch (...) {
    restore_dense();
    throw;
  }
}

void shape_change::publish_dense() {
  const auto state = owner_.locks.lock_state();
  owner_.require_chunks_active();
  if (old_->bytes) old_->bytes.check();  // nothing else records bytes that the mapping has lost
  auto stored = *owner_.inner->find(before_.name);
  if (old_->shared && old_->shared->units.has_new_bytes()) {
    // The copied units are entered in the array's record, so that the next record can keep a part
    // of them.
    stored.dense().extents = old_->record.dense().extents;
    owner_.inner->put(stored);
  }
  made_->settle();
  stored.shape = made_->record.shape;
  stored.dense() = made_->record.dense();
  owner_.inner->put(stored);  // nothing that can fail comes after it
  superseded_.push_back(old_);
  old_->detach_from_file();
  pending_ = false;
}

bool shape_change::restore_dense() noexcept {
  if (!owner_.locks.are_of_this_process()) return true;
  const auto state = owner_.locks.lock_own_state();
  if (made_ && made_->was_written) return false;
  if (made_) {
    if (is_new_) owner_.written.erase(before_.name);
    else owner_.written.replace(before_.name, old_);
    made_->resized = true;
    made_->readable = false;
    made_->detach_from_file();
  }
  change_->give_back();
  old_->resized = false;
  pending_ = false;
  return true;
}

// If a step fails, the old array is still there.
std::shared_ptr<written_array> shape_change::set_dense(const dims& shape) {
  begin_dense(shape);
  try {
    publish_dense();
  } catch (...) {
    if (!restore_dense()) owner_.refuse_commit();
    throw;
  }
  return made_;
}

std::shared_ptr<written_array> shape_change::begin(const dims& shape) {
  if (!before_.is_dense()) return set(shape);
  require_shape(shape);
  begin_dense(shape);
  return made_;
}

void shape_change::keep() {
  if (before_.is_dense()) publish_dense();
}

void shape_change::undo() {
  if (before_.is_dense() && (!pending_ || restore_dense())) return;
  // If the executor of the call was cancelled, the old elements come back nevertheless.
  const executor& failed = executor::current();
  const executor alone({.threads = 1, .memory_bytes = failed.memory_bytes()});
  const executor::scope within(alone.with_pool(failed.pool()));
  if (!before_.is_dense()) {
    set(before_.shape);
    return;
  }
  publish_dense();
  set_dense(before_.shape);
}

std::shared_ptr<written_array> shape_change::set(const dims& shape) {
  require_shape(shape);
  if (before_.is_dense()) return set_dense(shape);
  const auto staged = std::make_shared<staged_chunks>(owner_, before_.name);
  format::cut_chunks cut;
  std::shared_ptr<written_array> old;
  format::array_record now;
  {
    const auto state = owner_.locks.lock_state();
    now = *owner_.inner->find(before_.name);
    cut = owner_.inner->chunks_cut_by(before_.name, shape);
    old = owner_.written.find(before_.name);
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
    const auto state = owner_.locks.lock_state();
    owner_.require_chunks_active();
    now.shape = shape;
    now.chunked().grid_capacity =
        format::grown_capacity(now.chunked().grid_capacity, format::chunk_grid(now));
    made = std::make_shared<written_array>(std::move(now));
    array_changes(owner_).enlist(made);
    // The catalog comes last: nothing that can fail comes after it.
    owner_.inner->resize(before_.name, shape, staged->sorted());
    if (old) {
      old->tiles.reset();  // the tiles and the transaction own each other
      // The old handles would look for chunks by their old numbers.
      if (!format::same_numbers(old->record.chunked().grid_capacity,
                                made->record.chunked().grid_capacity))
        old->readable = false;
    }
    return made;
  } catch (...) {
    const auto state = owner_.locks.lock_own_state();
    if (made) {  // another thread may have found it
      made->tiles.reset();
      made->resized = true;
      made->readable = false;
    }
    if (old) owner_.written.replace(before_.name, old);
    else owner_.written.erase(before_.name);
    staged->give_back();
    if (old) superseded_.pop_back();
    if (old) old->resized = false;
    throw;
  }
}

// ---- an append --------------------------------------------------------------------------------

running_append::running_append(transaction_state& owner, std::string_view name, const dims& added,
                               index_t axis)
    : owner_(owner) {
  auto changes = owner.locks.lock_changes();
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
  array_ = change_->begin(longer);
}

void running_append::finish() {
  owner_.require_not_aborted();
  change_->keep();
  finished_ = true;
}

// If the transaction ends anyway, there is nothing to undo.
running_append::~running_append() {
  if (!finished_ && !owner_.operations.abort_asked()) {
    try {
      change_->undo();
    } catch (...) {
      owner_.refuse_commit();
    }
  }
  change_.reset();
  running_.reset();
}

}  // namespace shale::arrays
