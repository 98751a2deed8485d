#include "storage/pool/segment_heap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "shale/index.hpp"
#include "storage/pages.hpp"
#include "storage/pool/poison.hpp"

namespace shale::detail {

namespace {

// Whole huge pages of new memory; null if the system has none.
std::byte* map_memory(std::size_t bytes, std::size_t alignment) noexcept {
  const auto padded = checked_add(bytes, alignment - page_bytes());
  if (!padded) return nullptr;
  void* const found =
      ::mmap(nullptr, *padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(found);
  const auto start = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t before = align_up(start, alignment) - start;
  const std::size_t after = *padded - bytes - before;
  if (before > 0) ::munmap(first, before);
  if (after > 0) ::munmap(first + before + bytes, after);
  ::madvise(first + before, bytes, MADV_HUGEPAGE);
  return first + before;
}

bool unmap_memory(std::byte* address, std::size_t bytes) noexcept {
  unpoison(address, bytes);
  if (::munmap(address, bytes) == 0) return true;
  poison(address, bytes);  // cutting a mapping in two can exceed the limit on their number
  return false;
}

std::uintptr_t number(const std::byte* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

std::size_t whole_granules(std::size_t bytes) noexcept {
  return align_up(std::max(bytes, granule_bytes), granule_bytes);
}

// What lies before the first multiple of `alignment` in a block.
std::size_t lead_bytes(const segment_heap::block& in, std::size_t alignment) noexcept {
  return align_up(number(in.address), alignment) - number(in.address);
}

// The huge pages wholly inside a block.
std::byte* first_huge_page(const segment_heap::block& in) noexcept {
  return in.address + lead_bytes(in, huge_page_bytes);
}
std::size_t huge_pages_bytes(const segment_heap::block& in) noexcept {
  const std::uintptr_t first = align_up(number(in.address), huge_page_bytes);
  const std::uintptr_t last = align_down(number(in.end()), huge_page_bytes);
  return last > first ? last - first : 0;
}

}  // namespace

segment_heap::~segment_heap() {
  // A block that is still live belongs to somebody who broke the pool's contract; its memory goes.
  for (const block* each = first_; each != nullptr; each = each->after) {
    unmap_memory(each->address, each->bytes);
    quota_.give(each->bytes);
  }
}

segment_heap::allocation segment_heap::allocate(std::size_t bytes, std::size_t alignment,
                                                pool_clock::time_point now) noexcept {
  if (bytes > size_bins::bytes_max || alignment > size_bins::bytes_max) return {};
  if (block* const found = reuse(bytes, alignment)) return {found, false};
  if (!live_.reserve()) return {};
  bytes = whole_granules(bytes);
  block* const fresh = map_segment(bytes, alignment, now);
  if (fresh == nullptr) return {};
  return {take(*fresh, bytes, alignment), true};
}

segment_heap::block* segment_heap::reuse(std::size_t bytes, std::size_t alignment) noexcept {
  return reuse_where(bytes, alignment, [](const block&, std::size_t) { return true; });
}

segment_heap::block* segment_heap::reuse_dirty(std::size_t bytes, std::size_t alignment) noexcept {
  if (dirty_bytes_ < bytes) return nullptr;
  return reuse_where(bytes, alignment, [](const block& idle, std::size_t touched) {
    return touched <= idle.dirty_bytes();
  });
}

// `suits` is asked about a block and how much of its front would be cut off and used.
template <class Suits>
segment_heap::block* segment_heap::reuse_where(std::size_t bytes, std::size_t alignment,
                                               Suits suits) noexcept {
  if (bytes > size_bins::bytes_max || alignment > size_bins::bytes_max) return nullptr;
  bytes = whole_granules(bytes);
  const auto fits = [this, bytes, alignment, suits](const block& idle) {
    const std::size_t lead = lead_bytes(idle, alignment);
    // A mapping that stays whole would waste what it has too much of.
    if (how_ == cutting::never && (lead > 0 || idle.bytes > bytes + bytes / 8)) return false;
    return lead <= idle.bytes && bytes <= idle.bytes - lead && suits(idle, lead + bytes);
  };
  block* found = bins_.good_fit(bytes, fits);
  // Wherever a block of this size begins, it has an aligned part that is large enough.
  if (found == nullptr && alignment > granule_bytes)
    found = bins_.good_fit(bytes + (alignment - granule_bytes), fits);
  if (found == nullptr || !live_.reserve()) return nullptr;
  return take(*found, bytes, alignment);
}

// The first aligned `bytes` of a free block; what is left stays free. Null if its front cannot be
// cut off without memory for the books.
segment_heap::block* segment_heap::take(block& found, std::size_t bytes,
                                        std::size_t alignment) noexcept {
  delist(found);
  block* taken = &found;
  if (const std::size_t lead = lead_bytes(found, alignment); lead > 0) {
    taken = cut(found, lead);
    enlist(found);
    if (taken == nullptr) return nullptr;
  }
  // Without memory for the books of the rest, the block stays larger than it need be.
  if (how_ == cutting::to_size && taken->bytes > bytes)
    if (block* const rest = cut(*taken, bytes)) enlist(*rest);
  live_.insert(*taken);
  return taken;
}

// A free mapping of at least `bytes`; null if there is none to be had.
segment_heap::block* segment_heap::map_segment(std::size_t bytes, std::size_t alignment,
                                               pool_clock::time_point now) noexcept {
  const std::size_t coarse = std::max(alignment, huge_page_bytes);
  const std::size_t needed = align_up(bytes, huge_page_bytes);
  const std::size_t sizes[] = {how_ == cutting::to_size ? std::max(needed, segment_bytes) : needed,
                               needed, bytes};
  block* const fresh = supply_.get();
  if (fresh == nullptr) return nullptr;
  // Less than a segment where the limit leaves no room for one.
  for (const std::size_t size : sizes) {
    if (!quota_.take(size)) continue;
    std::byte* const address = map_memory(size, coarse);
    if (address == nullptr) {
      quota_.give(size);
      continue;
    }
    *fresh = {.address = address, .bytes = size, .since = now, .leads = true};
    poison(address, size);
    link(*fresh, last_);
    enlist(*fresh);
    return fresh;
  }
  supply_.put(*fresh);
  return nullptr;
}

// Makes what lies behind the first `bytes` a block of its own; neither is enlisted. Null without
// memory for the books.
segment_heap::block* segment_heap::cut(block& from, std::size_t bytes) noexcept {
  block* const rest = supply_.get();
  if (rest == nullptr) return nullptr;
  const std::uint32_t dirty = from.dirty_granules;
  from.estimate_dirty(std::min<std::size_t>(dirty, bytes / granule_bytes));
  *rest = {.address = from.address + bytes,
           .bytes = from.bytes - bytes,
           .since = from.since,
           .dirty_granules = dirty - from.dirty_granules,
           .behind = from.behind};
  from.bytes = bytes;
  link(*rest, &from);
  ++splits_;
  return rest;
}

void segment_heap::link(block& fresh, block* before) noexcept {
  fresh.before = before;
  fresh.after = before != nullptr ? before->after : nullptr;
  (before != nullptr ? before->after : first_) = &fresh;
  (fresh.after != nullptr ? fresh.after->before : last_) = &fresh;
}

void segment_heap::unlink(block& gone) noexcept {
  (gone.before != nullptr ? gone.before->after : first_) = gone.after;
  (gone.after != nullptr ? gone.after->before : last_) = gone.before;
  if (sweep_.next == &gone) sweep_.next = gone.after;
  supply_.put(gone);
}

void segment_heap::enlist(block& idle) noexcept {
  idle.free = true;
  bins_.insert(idle);
  free_bytes_ += idle.bytes;
  dirty_bytes_ += idle.dirty_bytes();
}

void segment_heap::delist(block& idle) noexcept {
  idle.free = false;
  bins_.erase(idle);
  free_bytes_ -= idle.bytes;
  dirty_bytes_ -= idle.dirty_bytes();
  if (sweep_.part == &idle) sweep_.part = nullptr;
}

void segment_heap::free(block& which, backing behind, pool_clock::time_point now) noexcept {
  live_.erase(which);
  which.behind = behind;
  which.estimate_dirty(behind == backing::dirty ? which.bytes / granule_bytes : 0);
  which.since = now;
  poison(which.address, which.bytes);
  enlist_coalesced(which);
}

// Joins what becomes free with free neighbours of its mapping: joined to the untouched end of
// another one it would be the last to be used again. Whichever part is larger says how long it has
// been idle: a small block that comes and goes must not keep a large one young.
void segment_heap::enlist_coalesced(block& idle) noexcept {
  block* whole = &idle;
  if (how_ == cutting::to_size) {
    if (block* const next = idle.after; next != nullptr && next->free && !next->leads) {
      delist(*next);
      absorb(idle, *next);
    }
    if (block* const before = idle.before; !idle.leads && before->free) {
      delist(*before);
      absorb(*before, idle);
      whole = before;
    }
  }
  enlist(*whole);
}

void segment_heap::absorb(block& into, block& next) noexcept {
  into.since = next.bytes > into.bytes ? next.since : into.since;
  into.behind = std::min(into.behind, next.behind);
  into.bytes += next.bytes;
  into.estimate_dirty(std::size_t{into.dirty_granules} + next.dirty_granules);
  unlink(next);
  ++coalesces_;
}

segment_heap::block& segment_heap::find(const void* address) noexcept {
  block* const found = live_.find(address);
  assert(found != nullptr);
  return *found;
}

// ---- ageing -------------------------------------------------------------------------------------

// A step of a part of a block towards having less behind it: dirty, lazy, none. The block has taken
// it when its last part has.
void segment_heap::lose_backing(block& idle, std::size_t first, std::size_t bytes) noexcept {
  std::byte* const from = idle.address + first;
  const bool lazily = idle.behind == backing::dirty && ::madvise(from, bytes, MADV_FREE) == 0;
  if (!lazily) ::madvise(from, bytes, MADV_DONTNEED);
  if (first + bytes < idle.bytes) return;
  idle.behind = idle.behind == backing::dirty ? backing::lazy : backing::none;
  dirty_bytes_ -= idle.dirty_bytes();
  idle.dirty_granules = 0;
}

// Only whole huge pages: a mapping full of small holes costs the system more than it returns.
bool segment_heap::can_unmap(const block& idle) const noexcept {
  return how_ == cutting::never || huge_pages_bytes(idle) > 0;
}

// Unmaps the first whole huge pages of a block, at most a step of them. Returns where what was
// tried ends.
std::byte* segment_heap::unmap_first(block& idle) noexcept {
  delist(idle);
  sweep_.next = idle.after;
  block* middle = &idle;
  if (how_ == cutting::to_size) {
    const auto lead = static_cast<std::size_t>(first_huge_page(idle) - idle.address);
    const std::size_t bytes = std::min(huge_pages_bytes(idle), step_bytes);
    if (lead > 0) {
      middle = cut(idle, lead);
      enlist(idle);
      if (middle == nullptr) return idle.end();
    }
    if (middle->bytes > bytes) {
      block* const rest = cut(*middle, bytes);
      if (rest == nullptr) {
        enlist_coalesced(*middle);
        return idle.end();
      }
      enlist(*rest);
    }
  }
  std::byte* const end = middle->end();
  sweep_.next = middle->after;
  if (unmap_memory(middle->address, middle->bytes)) forget(*middle);
  else enlist_coalesced(*middle);
  return end;
}

// What comes behind memory that is not there any more begins what is mapped in one piece.
void segment_heap::forget(block& unmapped) noexcept {
  quota_.give(unmapped.bytes);
  if (unmapped.after != nullptr) unmapped.after->leads = true;
  unlink(unmapped);
}

bool segment_heap::age(std::byte*& cursor, pool_clock::time_point now,
                       const decay_ages& ages) noexcept {
  if (cursor == nullptr) sweep_ = {nullptr, 0, first_};
  int looks = step_blocks;
  block* each = sweep_.part != nullptr ? sweep_.part : sweep_.next;
  for (; each != nullptr; each = each->after) {
    block& idle = *each;
    if (looks-- == 0) {
      sweep_ = {nullptr, 0, each};
      cursor = idle.address;
      return true;
    }
    if (!idle.free) continue;
    const auto due = idle.behind == backing::dirty  ? ages.lazy
                     : idle.behind == backing::lazy ? ages.drop
                                                    : ages.unmap;
    if (now - idle.since < due) continue;
    if (idle.behind == backing::none) {
      if (!can_unmap(idle)) continue;
      cursor = unmap_first(idle);
      return true;
    }
    const std::size_t first = sweep_.part == &idle ? sweep_.part_bytes : 0;
    const std::size_t bytes = std::min(idle.bytes - first, step_bytes);
    lose_backing(idle, first, bytes);
    sweep_ = {first + bytes < idle.bytes ? &idle : nullptr, first + bytes, idle.after};
    cursor = idle.address + first + bytes;
    return true;
  }
  sweep_ = {};
  return false;
}

bool segment_heap::age_oldest() noexcept {
  block* oldest = nullptr;
  bins_.for_each([&oldest](block& each) {
    if (each.behind == backing::dirty && (oldest == nullptr || each.since < oldest->since))
      oldest = &each;
  });
  if (oldest == nullptr) return false;
  lose_backing(*oldest, 0, oldest->bytes);
  return true;
}

std::size_t segment_heap::trim() noexcept {
  std::size_t unmapped = 0;
  bins_.for_each([this, &unmapped](block& idle) {
    if (!unmap_memory(idle.address, idle.bytes)) return;
    unmapped += idle.bytes;
    delist(idle);
    forget(idle);
  });
  return unmapped;
}

bool segment_heap::is_ageing() const noexcept {
  return bins_.any_of(
      [this](const block& each) { return each.behind != backing::none || can_unmap(each); });
}

bool segment_heap::is_consistent() const noexcept {
  std::size_t all = 0;
  std::size_t idle = 0;
  std::size_t dirty = 0;
  std::size_t live_blocks = 0;
  std::size_t idle_blocks = 0;
  const block* before = nullptr;
  for (const block* each = first_; each != nullptr; before = each, each = each->after) {
    if (each->before != before) return false;
    if (!each->leads) {
      if (before == nullptr || before->end() != each->address) return false;
      if (before->free && each->free) return false;
    }
    if (each->bytes == 0 || each->bytes % granule_bytes != 0) return false;
    all += each->bytes;
    if (!each->free) {
      ++live_blocks;
      if (live_.find(each->address) != each) return false;
      continue;
    }
    ++idle_blocks;
    idle += each->bytes;
    dirty += each->dirty_bytes();
    if (each->dirty_bytes() > (each->behind == backing::dirty ? each->bytes : 0)) return false;
  }
  std::size_t in_bins = 0;
  bins_.for_each([&in_bins](const block& each) { in_bins += each.free ? 1 : 0; });
  return before == last_ && idle == free_bytes_ && dirty == dirty_bytes_ &&
         live_blocks == live_.size() && idle_blocks == in_bins && all <= quota_.held_bytes();
}

}  // namespace shale::detail
