#include "array/transaction/changes/unit_copies.hpp"

#include <algorithm>
#include <optional>
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
    const auto state = owner_.locks.lock_own_state();
    give_back(moved);
    end_work(moved);
    throw;
  }
}

// Allocates space for the units that nobody has copied, and marks them as in work. Returns nothing
// if there are none.
std::vector<moved_bytes> unit_copies::claim(const byte_interval& units) {
  auto state = owner_.locks.lock_state();
  for (;;) {
    owner_.require_active();
    array_.require_there();
    if (!array_.shared) return {};
    shared_bytes& shared = *array_.shared;
    const byte_interval all{0, format::array_bytes(array_.record)};
    // A mapping of the whole array shows each extent, so there must not be too many of them.
    const bool few_extents = shared.units.size() <= dense_extents_max;
    const std::vector<byte_interval> missing = cut_at_units(
        shared.units.old_parts(shared.can_be_cut && few_extents ? units : all), all.end);
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
      const std::uint64_t bytes = range.end - range.first;
      moved.push_back({range, owner_.inner->allocate(bytes, bytes)});
      owner_.inner->prepare_mapped_write(moved.back().to);
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
      owner_.inner->release(unit.to);
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

void unit_copies::copy(const dense_places& places, const std::string& label,
                       const stored_sums& stored, const std::vector<moved_bytes>& moved) {
  format::transaction& in = *owner_.inner;
  copy_dense(
      places, stored, label, moved,
      [&](std::uint64_t offset, format::bytes_span into) { in.read(offset, into); },
      [&](std::uint64_t offset, format::bytes_view data) { in.write(offset, data); },
      in.descriptor(), executor::current());
}

// No lock is held while the units are copied (change.5). The cost of the other steps depends on the
// units, not on the number of extents that the array has.
void unit_copies::fill(const std::vector<moved_bytes>& moved) {
  const byte_interval range{moved.front().range.first, moved.back().range.end};
  auto state = owner_.locks.lock_state();
  const std::vector<format::extent> pieces = array_.shared->units.pieces(range);
  const std::string label = owner_.label(array_.name);
  auto sums = array_.shared->sums;
  const std::uint64_t base_bytes = array_.shared->base_bytes;
  std::optional<format::array_record> base;
  if (!sums) base = array_.record;
  state.unlock();
  if (base)
    sums = std::make_shared<const std::vector<std::uint64_t>>(
        owner_.base.view()->dense_checksums(*base));
  copy(dense_places(pieces, range.first), label, {*sums, base_bytes}, moved);
  state.lock();
  array_.shared->units.move(moved);
  // Nothing fails from here on.
  array_.shared->sums = std::move(sums);
  end_work(moved);
}

storage unit_copies::window(const byte_interval& units) {
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  array_.require_there();
  array_.windows.reserve(array_.windows.size() + 1);
  auto kept = std::make_shared<kept_by_mapping>();
  kept->file = owner_.inner->descriptor_owner();
  array_.windows.push_back(map_pieces(owner_.inner->descriptor(),
                                      array_.shared->units.pieces(units),
                                      {.access = access::read_write,
                                       .path = owner_.path(),
                                       .keep_alive = std::move(kept),
                                       .write_back = owner_.inner->write_back()}));
  return array_.windows.back();
}

void unit_copies::join() {
  auto state = owner_.locks.lock_state();
  array_.settle();
  if (array_.is_held_by_others()) return;
  std::vector<format::extent>& extents = array_.record.dense().extents;
  if (extents.size() <= dense_extents_max) return;
  const std::uint64_t total = format::array_bytes(array_.record);
  const std::string label = owner_.label(array_.name);
  unit_table units = array_.shared ? array_.shared->units : unit_table(extents);
  while (extents.size() > dense_extents_max) {
    array_.bytes = storage();  // the mapping shows the old extents
    const std::vector<format::extent> before = extents;
    const std::vector<moved_bytes> moved =
        allocate({cheapest_run(array_.record.dense(), total, dense_extents_max / 2)});
    state.unlock();
    // The checksums stay as they are, so they still reveal damaged bytes later. No comparison is
    // needed here.
    copy(dense_places(before), label, {}, moved);
    state.lock();
    units.move(moved);
    extents = units.extents();
  }
}

}  // namespace shale::arrays
