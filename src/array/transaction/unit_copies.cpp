#include "array/transaction/unit_copies.hpp"

#include <algorithm>
#include <utility>

namespace shale::arrays {

using format::byte_interval;

void unit_copies::require_all() { require({0, format::array_bytes(array_.record)}); }

void unit_copies::require(const byte_interval& units) {
  const std::vector<moved_bytes> moved = claim(units);
  if (moved.empty()) return;
  try {
    fill(moved);
  } catch (...) {
    const std::lock_guard state(owner_.state_lock_);
    give_back(moved);
    end_work(moved);
    throw;
  }
}

// Allocates space for the units that nobody has copied, and marks them as in work. Returns nothing if
// there are none.
std::vector<moved_bytes> unit_copies::claim(const byte_interval& units) {
  auto state = owner_.lock(owner_.state_lock_);
  for (;;) {
    owner_.require_active();
    array_.require_there();
    if (!array_.shared) return {};
    shared_bytes& shared = *array_.shared;
    const byte_interval all{0, format::array_bytes(array_.record)};
    // Each further extent would make every later write look through all of them.
    const bool few_extents = array_.record.dense().extents.size() <= dense_extents_max;
    const std::vector<byte_interval> missing =
        without(shared.can_be_cut && few_extents ? units : all, shared.copied);
    const bool waits = std::any_of(missing.begin(), missing.end(), [&](const byte_interval& range) {
      return std::any_of(shared.in_work.begin(), shared.in_work.end(),
                         [&](const byte_interval& other) {
                           return range.first < other.end && other.first < range.end;
                         });
    });
    if (!waits) {
      shared.in_work.reserve(shared.in_work.size() + missing.size());
      std::vector<moved_bytes> moved = allocate(missing);
      shared.in_work.insert(shared.in_work.end(), missing.begin(), missing.end());
      return moved;
    }
    const std::uint32_t ended = array_.copies_ended;
    state.unlock();
    array_.copies_ended.wait(ended);
    state.lock();
  }
}

// The caller holds the state lock.
std::vector<moved_bytes> unit_copies::allocate(const std::vector<byte_interval>& ranges) {
  std::vector<moved_bytes> moved;
  moved.reserve(ranges.size());
  try {
    for (const byte_interval& range : ranges) {
      moved.push_back({range, owner_.inner_->allocate(range.end - range.first)});
      owner_.inner_->prepare_mapped_write(moved.back().to);
    }
  } catch (...) {
    give_back(moved);
    throw;
  }
  return moved;
}

// The caller holds the state lock.
void unit_copies::give_back(const std::vector<moved_bytes>& unused) noexcept {
  for (const auto& unit : unused) {
    try {
      owner_.inner_->release(unit.to);
    } catch (...) {
      // Commit gives back what no record names.
    }
  }
}

// The caller holds the state lock.
void unit_copies::end_work(const std::vector<moved_bytes>& moved) noexcept {
  auto& in_work = array_.shared->in_work;
  for (const auto& unit : moved)
    in_work.erase(std::find_if(in_work.begin(), in_work.end(), [&](const byte_interval& range) {
      return range.first == unit.range.first;
    }));
  ++array_.copies_ended;
  array_.copies_ended.notify_all();
}

void unit_copies::copy(const format::array_record& source, const std::string& label,
                       const std::vector<std::uint64_t>& sums,
                       const std::vector<moved_bytes>& moved) {
  format::transaction& in = *owner_.inner_;
  copy_dense(
      source, sums, label, moved,
      [&](std::uint64_t offset, format::bytes_span into) { in.read(offset, into); },
      [&](std::uint64_t offset, format::bytes_view data) { in.write(offset, data); },
      in.descriptor(), executor::current());
}

// No lock is held while the units are copied (change.5).
void unit_copies::fill(const std::vector<moved_bytes>& moved) {
  auto state = owner_.lock(owner_.state_lock_);
  const format::array_record source = array_.record;
  const std::string label = owner_.label(array_.name);
  auto sums = array_.shared->sums;
  state.unlock();
  if (!sums)
    sums =
        std::make_shared<const std::vector<std::uint64_t>>(owner_.base_->dense_checksums(source));
  copy(source, label, *sums, moved);
  state.lock();
  format::range_set copied = array_.shared->copied;
  auto extents = extents_after(array_.record.dense(), format::array_bytes(source), moved, copied);
  for (const auto& unit : moved) copied.unite(unit.range.first, unit.range.end);
  // Nothing fails from here on.
  array_.record.dense().extents = std::move(extents);
  array_.shared->copied = std::move(copied);
  array_.shared->sums = std::move(sums);
  end_work(moved);
}

storage unit_copies::window(const byte_interval& units) {
  const auto state = owner_.lock(owner_.state_lock_);
  owner_.require_active();
  array_.require_there();
  array_.windows.reserve(array_.windows.size() + 1);
  auto kept = std::make_shared<kept_by_mapping>();
  kept->file = owner_.inner_->descriptor_owner();
  array_.windows.push_back(map_dense(owner_.inner_->descriptor(), array_.record, units,
                                     {.access = access::read_write,
                                      .path = owner_.path(),
                                      .keep_alive = std::move(kept),
                                      .write_back = owner_.inner_->write_back()}));
  return array_.windows.back();
}

void unit_copies::join() {
  auto state = owner_.lock(owner_.state_lock_);
  if (array_.is_held_by_others()) return;
  const std::uint64_t total = format::array_bytes(array_.record);
  const std::string label = owner_.label(array_.name);
  const format::range_set copied = array_.shared ? array_.shared->copied : format::range_set();
  while (array_.record.dense().extents.size() > dense_extents_max) {
    array_.bytes = storage();  // it shows the extents from before
    const format::array_record source = array_.record;
    const std::vector<moved_bytes> moved =
        allocate({cheapest_run(source.dense(), total, dense_extents_max / 2)});
    state.unlock();
    // Their checksums stay as they are, so damaged bytes stay recognisable without a comparison.
    copy(source, label, {}, moved);
    state.lock();
    array_.record.dense().extents = extents_after(source.dense(), total, moved, copied);
  }
}

}  // namespace shale::arrays
