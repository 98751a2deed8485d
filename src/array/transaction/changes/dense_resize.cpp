#include "array/transaction/changes/dense_resize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "array/elements/copied_units.hpp"
#include "parallel/pass/copy.hpp"
#include "shale/error.hpp"
#include "shale/layout.hpp"
#include "shale/region.hpp"
#include "storage/mapped/mapped_extents.hpp"
#include "storage/system/pages.hpp"
#include "tensor/parts.hpp"

namespace shale::arrays {

using format::byte_interval;

namespace {

std::uint64_t bytes_of(const format::array_record& record, const dims& shape) {
  format::array_record other = record;
  other.shape = shape;
  return format::array_bytes(other);
}

}  // namespace

// ---- writers ----------------------------------------------------------------------------------

dense_writer::dense_writer(transaction_state& owner, written_array& array, purpose of)
    : owner_(owner), array_(array) {
  const auto state = owner.locks.lock_state();
  owner.require_active();
  array.require_there();
  ++array.writers;
  if (of == purpose::write) array.was_written = true;
}

dense_writer::~dense_writer() {
  // In a forked child, another thread of the parent may hold the lock for ever.
  if (!owner_.locks.are_of_this_process()) return;
  const auto state = owner_.locks.lock_own_state();
  --array_.writers;
  std::erase_if(array_.windows, [](const storage& window) { return window.use_count() == 1; });
}

// The caller holds the state lock.
void dense_resize::close(transaction_state& owner, written_array& array) {
  if (array.writers > 0 || (array.shared && !array.shared->in_work.empty()))
    throw error(errc::busy, "another call writes the array",
                {owner.label(array.name), "the shape of a dense array changes when nobody does"});
  array.resized = true;
}

// ---- the change -------------------------------------------------------------------------------

dense_resize::dense_resize(transaction_state& owner, written_array& array, const dims& shape)
    : owner_(owner),
      array_(array),
      shape_(shape),
      bytes_before_(format::array_bytes(array.record)),
      bytes_after_(bytes_of(array.record, shape)),
      label_(owner.label(array.name)) {
  for (index_t axis = 1; axis < shape.size(); ++axis)
    same_rows_ = same_rows_ && shape[axis] == array.record.shape[axis];
  if (array.shared && array.shared->sums) sums_ = array.shared->sums;
}

void dense_resize::allocate(std::uint64_t bytes, std::uint64_t copied) {
  const auto state = owner_.locks.lock_state();
  fresh_ = owner_.inner->allocate(bytes, copied);
  owner_.inner->prepare_mapped_write(fresh_);
}

void dense_resize::give_back() noexcept {
  try {
    if (fresh_.bytes != 0) owner_.inner->release(fresh_);
  } catch (...) {
    // Commit gives back what no record names.
  }
}

void dense_resize::prepare() {
  if (bytes_before_ == 0 || bytes_after_ == 0) return allocate(bytes_after_);
  if (array_.shared && !sums_)
    sums_ = std::make_shared<const std::vector<std::uint64_t>>(
        owner_.base.view()->dense_checksums(array_.record));
  const bool in_place = same_rows_ && (!array_.shared || array_.shared->can_be_cut) &&
                        can_be_cut(array_.record.dense(), bytes_before_);
  if (!in_place) return copy_all();
  if (bytes_after_ > bytes_before_) extend();
  else cut();
}

void dense_resize::extend() {
  kept_ = kept_by_append(array_.record.dense(), bytes_before_, bytes_after_);
  if (kept_ % unit_bytes != 0) divided_at_ = kept_;
  compare({kept_, bytes_before_});
  allocate(bytes_after_ - kept_, bytes_before_ - kept_);
  copy_tail(bytes_before_);
}

// A segment that the new end cuts through gets a new checksum, so its unit is copied, unless the
// transaction has written the bytes of that segment itself.
void dense_resize::cut() {
  kept_ = bytes_after_;
  if (array_.shared && array_.shared->divided_at < kept_) divided_at_ = array_.shared->divided_at;
  const byte_interval ending{shale::detail::align_down(bytes_after_, format::dense_segment_bytes),
                             bytes_after_};
  if (!array_.shared || array_.shared->units.old_parts(ending).empty()) return;
  kept_ = bytes_after_ / unit_bytes * unit_bytes;
  divided_at_ = 0;
  compare({kept_, bytes_after_});
  allocate(bytes_after_ - kept_, bytes_after_ - kept_);
  copy_tail(bytes_after_);
}

// Compares those segments of the base generation with their checksums that have bytes in a range.
// Of other segments, some bytes are new: these segments were compared when that began.
void dense_resize::compare(const byte_interval& range) const {
  if (!array_.shared) return;
  const byte_interval segments{
      shale::detail::align_down(range.first, format::dense_segment_bytes),
      std::min(bytes_before_, shale::detail::align_up(range.end, format::dense_segment_bytes))};
  std::vector<moved_bytes> compared;
  for (const auto& part : array_.shared->units.old_parts(segments)) compared.push_back({part, {}});
  format::transaction& in = *owner_.inner;
  copy_dense(
      dense_places(array_.record.dense().extents), {*sums_, array_.shared->base_bytes}, label_,
      compared, [&](std::uint64_t offset, format::bytes_span into) { in.read(offset, into); },
      [](std::uint64_t, format::bytes_view) {}, in.descriptor(), executor::current());
}

// Copies bytes [kept_, end) to the new space.
void dense_resize::copy_tail(std::uint64_t end) {
  const moved_bytes moved[] = {{{kept_, end}, fresh_}};
  format::transaction& in = *owner_.inner;
  copy_dense(
      dense_places(array_.record.dense().extents), {}, label_, moved,
      [&](std::uint64_t offset, format::bytes_span into) { in.read(offset, into); },
      [&](std::uint64_t offset, format::bytes_view data) { in.write(offset, data); },
      in.descriptor(), executor::current());
}

void dense_resize::copy_all() {
  format::transaction& in = *owner_.inner;
  const dims& before = array_.record.shape;
  kept_ = 0;
  allocate(bytes_after_);
  format::array_record record = array_.record;
  record.shape = shape_;
  record.dense() = {};
  record.dense().extents = {fresh_};
  const auto map = [&](const format::array_record& stored, access wanted) {
    const storage bytes = map_dense(in.descriptor(), stored,
                                    {.access = wanted,
                                     .path = owner_.path(),
                                     .keep_alive = std::make_shared<kept_by_mapping>(
                                         kept_by_mapping{in.descriptor_owner(), std::nullopt}),
                                     .write_back = in.write_back()});
    return tensor(bytes, stored.dtype, layout(stored.shape));
  };
  region both = region::all(shape_);
  for (index_t axis = 0; axis < shape_.size(); ++axis)
    both.shape[axis] = std::min(shape_[axis], before[axis]);
  compare({0, bytes_before_});
  const tensor into = map(record, access::read_write);
  const tensor from = map(array_.record, access::read_only);
  // copy_elements calls no progress sink. A progress sink could call this transaction.
  parallel::copy_elements(detail::narrowed(into, both), detail::narrowed(from, both),
                          executor::current());
  from.storage().check();
  into.storage().check();
}

std::shared_ptr<written_array> dense_resize::made(const format::array_record& stored) const {
  format::array_record record = stored;
  record.shape = shape_;
  // A long extent that is not the last one has to hold whole units, so one that reaches into the
  // last unit is divided there.
  const std::uint64_t whole = std::min(kept_, bytes_after_ / unit_bytes * unit_bytes);
  const dense_places places(array_.record.dense().extents);
  record.dense().extents = places.pieces(0, whole);
  for (const auto& piece : places.pieces(whole, kept_ - whole))
    record.dense().extents.push_back(piece);
  if (fresh_.bytes != 0) record.dense().extents.push_back(fresh_);
  record.dense().checksums = {};
  record.dense().checksums_checksum = {};
  auto result = std::make_shared<written_array>(std::move(record));
  if (!array_.shared || kept_ == 0) return result;
  std::vector<byte_interval> fresh;
  for (const auto& [first, end] : array_.shared->units.new_parts())
    if (first < kept_) fresh.push_back({first, std::min(end, kept_)});
  if (kept_ < bytes_after_) fresh.push_back({kept_, bytes_after_});
  shared_bytes& shared = result->shared.emplace();
  shared.units = unit_table(result->record.dense().extents, fresh);
  shared.sums = sums_;
  shared.base_bytes = array_.shared->base_bytes;
  shared.divided_at = divided_at_;
  shared.reshaped = true;
  return result;
}

}  // namespace shale::arrays
