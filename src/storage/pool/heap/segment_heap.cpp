#include "storage/pool/heap/segment_heap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <utility>

#include "shale/index.hpp"
#include "storage/pool/heap/poison.hpp"
#include "storage/system/pages.hpp"

namespace shale::detail {

namespace {

// Maps new memory at a multiple of `alignment` and advises huge pages; null if the system has none.
std::byte* map_memory(std::size_t bytes, std::size_t alignment) noexcept {
  const auto padded = checked_add(bytes, alignment - system_page_bytes());
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
  poison(address, bytes);  // splitting a mapping can exceed the limit on their number
  return false;
}

std::uintptr_t number(const std::byte* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

std::size_t whole_units(std::size_t bytes) noexcept {
  return align_up(std::max(bytes, block_unit_bytes()), block_unit_bytes());
}

// The bytes before the first multiple of `alignment` in a block.
std::size_t lead_bytes(const segment_heap::block& in, std::size_t alignment) noexcept {
  return align_up(number(in.address), alignment) - number(in.address);
}

// The first huge page that lies completely inside a block, and the bytes of all such pages.
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
  // A block that is still live breaks the pool's contract; its memory is unmapped too.
  for (const block* part = blocks_.first(); part != nullptr; part = part->after) {
    unmap_memory(part->address, part->bytes);
    quota_.give(part->bytes);
  }
}

segment_heap::allocation segment_heap::allocate(std::size_t bytes, std::size_t alignment,
                                                pool_clock::time_point now) noexcept {
  if (bytes > size_bins::bytes_max || alignment > size_bins::bytes_max) return {};
  if (block* const found = reuse(bytes, alignment)) return {found, false};
  if (!live_.reserve()) return {};
  bytes = whole_units(bytes);
  block* const fresh = map_segment(bytes, alignment, now);
  if (fresh == nullptr) return {};
  return {take(*fresh, bytes, alignment), true};
}

segment_heap::block* segment_heap::reuse(std::size_t bytes, std::size_t alignment) noexcept {
  return reuse_where(bytes, alignment, [](const block&, std::size_t) { return true; });
}

segment_heap::block* segment_heap::reuse_dirty(std::size_t bytes, std::size_t alignment) noexcept {
  if (free_.dirty_bytes() < bytes) return nullptr;
  return reuse_where(bytes, alignment, [](const block& idle, std::size_t touched) {
    return touched <= idle.dirty_bytes();
  });
}

// Reuses a free block for which `suits(block, bytes)` is true; `bytes` is how much of the block's
// front would be cut off or used.
template <class Suits>
segment_heap::block* segment_heap::reuse_where(std::size_t bytes, std::size_t alignment,
                                               Suits suits) noexcept {
  if (bytes > size_bins::bytes_max || alignment > size_bins::bytes_max) return nullptr;
  bytes = whole_units(bytes);
  const auto fits = [this, bytes, alignment, suits](const block& idle) {
    const std::size_t lead = lead_bytes(idle, alignment);
    // A whole mapping must not be larger than the request by more than an eighth, because the rest
    // would be wasted.
    if (cutting_ == cutting::never && (lead > 0 || idle.bytes > bytes + bytes / 8)) return false;
    return lead <= idle.bytes && bytes <= idle.bytes - lead && suits(idle, lead + bytes);
  };
  block* found = free_.by_size().good_fit(bytes, fits);
  // A block of this size contains an aligned part that is large enough, wherever it begins.
  if (found == nullptr && alignment > granule_bytes)
    found = free_.by_size().good_fit(bytes + (alignment - granule_bytes), fits);
  if (found == nullptr || !live_.reserve()) return nullptr;
  return take(*found, bytes, alignment);
}

// Takes the first aligned `bytes` of a free block; the rest stays free. Null if the front cannot be
// cut off because there is no memory for a descriptor.
segment_heap::block* segment_heap::take(block& found, std::size_t bytes,
                                        std::size_t alignment) noexcept {
  delist(found);
  block* taken = &found;
  if (const std::size_t lead = lead_bytes(found, alignment); lead > 0) {
    taken = cut(found, lead);
    free_.insert(found);
    if (taken == nullptr) return nullptr;
  }
  // If there is no memory for a descriptor of the rest, the block stays larger than necessary.
  if (cutting_ == cutting::to_size && taken->bytes > bytes)
    if (block* const rest = cut(*taken, bytes)) free_.insert(*rest);
  live_.insert(*taken);
  return taken;
}

// Maps a free block of at least `bytes`; null if the system or the limit has no room.
segment_heap::block* segment_heap::map_segment(std::size_t bytes, std::size_t alignment,
                                               pool_clock::time_point now) noexcept {
  const std::size_t coarse = std::max(alignment, huge_page_bytes);
  const std::size_t needed = align_up(bytes, huge_page_bytes);
  const std::size_t sizes[] = {
      cutting_ == cutting::to_size ? std::max(needed, segment_bytes) : needed, needed, bytes};
  block* const fresh = supply_.get();
  if (fresh == nullptr) return nullptr;
  // Maps less than a segment if the limit has no room for one.
  for (const std::size_t size : sizes) {
    if (!quota_.take(size)) continue;
    std::byte* const address = map_memory(size, coarse);
    if (address == nullptr) {
      quota_.give(size);
      continue;
    }
    *fresh = {.address = address, .bytes = size, .since = now, .leads = true};
    poison(address, size);
    blocks_.insert_after(blocks_.last(), *fresh);
    free_.insert(*fresh);
    return fresh;
  }
  supply_.put(*fresh);
  return nullptr;
}

// Splits off everything after the first `bytes` as a block of its own and returns it; neither
// block is enlisted. Null if there is no memory for a descriptor.
segment_heap::block* segment_heap::cut(block& whole, std::size_t bytes) noexcept {
  block* const rest = supply_.get();
  if (rest == nullptr) return nullptr;
  const std::uint32_t dirty = whole.dirty_granules;
  whole.estimate_dirty(std::min<std::size_t>(dirty, bytes / granule_bytes));
  *rest = {.address = whole.address + bytes,
           .bytes = whole.bytes - bytes,
           .since = whole.since,
           .dirty_granules = dirty - whole.dirty_granules,
           .memory = whole.memory};
  whole.bytes = bytes;
  blocks_.insert_after(&whole, *rest);
  ++splits_;
  return rest;
}

void segment_heap::remove(block& gone) noexcept {
  blocks_.erase(gone);
  if (sweep_.next == &gone) sweep_.next = gone.after;
  supply_.put(gone);
}

void segment_heap::delist(block& idle) noexcept {
  free_.erase(idle);
  if (sweep_.part == &idle) sweep_.part = nullptr;
}

void segment_heap::free(block& used, memory_state memory, pool_clock::time_point now) noexcept {
  live_.erase(used);
  used.memory = memory;
  used.estimate_dirty(memory == memory_state::dirty ? used.bytes / granule_bytes : 0);
  used.since = now;
  poison(used.address, used.bytes);
  enlist_coalesced(used);
}

// Joins a freed block with its free neighbours of the same mapping. It is not joined with blocks of
// other mappings: together with the unused end of another mapping, a resident block would become
// part of a large block, and allocations prefer small ones. So its memory would be used again last.
// The larger part determines the age of the result, so that a small block that is used again and
// again does not keep a large one young.
void segment_heap::enlist_coalesced(block& idle) noexcept {
  block* whole = &idle;
  if (cutting_ == cutting::to_size) {
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
  free_.insert(*whole);
}

void segment_heap::absorb(block& into, block& next) noexcept {
  into.since = next.bytes > into.bytes ? next.since : into.since;
  into.memory = std::min(into.memory, next.memory);
  into.bytes += next.bytes;
  into.estimate_dirty(std::size_t{into.dirty_granules} + next.dirty_granules);
  remove(next);
  ++coalesces_;
}

segment_heap::block& segment_heap::find(const void* address) noexcept {
  block* const found = live_.find(address);
  assert(found != nullptr);
  return *found;
}

// ---- ageing -------------------------------------------------------------------------------------

// Moves a part of a block one step on, from dirty to lazy to none. The state of the block changes
// when its last part is done.
void segment_heap::lose_memory(block& idle, std::size_t first, std::size_t bytes) noexcept {
  std::byte* const begin = idle.address + first;
  const bool lazily = idle.memory == memory_state::dirty && ::madvise(begin, bytes, MADV_FREE) == 0;
  if (!lazily) ::madvise(begin, bytes, MADV_DONTNEED);
  if (first + bytes < idle.bytes) return;
  idle.memory = idle.memory == memory_state::dirty ? memory_state::lazy : memory_state::none;
  free_.set_clean(idle);
}

// Only whole huge pages are unmapped: a mapping full of small holes costs the system more than it
// gains.
bool segment_heap::can_unmap(const block& idle) const noexcept {
  return cutting_ == cutting::never || huge_pages_bytes(idle) > 0;
}

// Unmaps the first whole huge pages of a block, at most `step_bytes`. Returns the end of the part
// that it tried to unmap.
std::byte* segment_heap::unmap_first(block& idle) noexcept {
  delist(idle);
  sweep_.next = idle.after;
  block* middle = &idle;
  if (cutting_ == cutting::to_size) {
    const auto lead = static_cast<std::size_t>(first_huge_page(idle) - idle.address);
    const std::size_t bytes = std::min(huge_pages_bytes(idle), step_bytes);
    if (lead > 0) {
      middle = cut(idle, lead);
      free_.insert(idle);
      if (middle == nullptr) return idle.end();
    }
    if (middle->bytes > bytes) {
      block* const rest = cut(*middle, bytes);
      if (rest == nullptr) {
        enlist_coalesced(*middle);
        return idle.end();
      }
      free_.insert(*rest);
    }
  }
  std::byte* const end = middle->end();
  sweep_.next = middle->after;
  if (unmap_memory(middle->address, middle->bytes)) forget(*middle);
  else enlist_coalesced(*middle);
  return end;
}

// Removes an unmapped block. The block after it now begins a contiguous mapping.
void segment_heap::forget(block& unmapped) noexcept {
  quota_.give(unmapped.bytes);
  if (unmapped.after != nullptr) unmapped.after->leads = true;
  remove(unmapped);
}

bool segment_heap::age(std::byte*& cursor, pool_clock::time_point now,
                       const decay_ages& ages) noexcept {
  // Goes along the list of blocks from the place where the last step ended. A step ends after one
  // system call, or after `step_blocks` blocks without work. `sweep_` remembers the place; `delist`
  // and `remove` correct it when the owner uses that block between two steps.
  if (cursor == nullptr) sweep_ = {nullptr, 0, blocks_.first()};
  int looks = step_blocks;
  block* visited = sweep_.part != nullptr ? sweep_.part : sweep_.next;
  for (; visited != nullptr; visited = visited->after) {
    block& idle = *visited;
    if (looks-- == 0) {
      sweep_ = {nullptr, 0, visited};
      cursor = idle.address;
      return true;
    }
    if (!idle.free) continue;
    const auto due = idle.memory == memory_state::dirty  ? ages.lazy
                     : idle.memory == memory_state::lazy ? ages.drop
                                                         : ages.unmap;
    if (now - idle.since < due) continue;
    if (idle.memory == memory_state::none) {
      if (!can_unmap(idle)) continue;
      cursor = unmap_first(idle);
      return true;
    }
    const std::size_t first = sweep_.part == &idle ? sweep_.part_bytes : 0;
    const std::size_t bytes = std::min(idle.bytes - first, step_bytes);
    lose_memory(idle, first, bytes);
    sweep_ = {first + bytes < idle.bytes ? &idle : nullptr, first + bytes, idle.after};
    cursor = idle.address + first + bytes;
    return true;
  }
  sweep_ = {};
  return false;
}

std::chrono::milliseconds segment_heap::age_of_oldest(std::size_t bytes,
                                                      pool_clock::time_point now) const noexcept {
  std::array<std::size_t, ages_told_apart_ms> dirty_bytes{};  // of the blocks of each age
  free_.by_size().for_each([&](const block& idle) {
    if (idle.memory != memory_state::dirty) return;
    // A block that was freed meanwhile may be younger than `now`.
    const auto idle_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - idle.since);
    const auto place = std::clamp<std::int64_t>(idle_for.count(), 0, ages_told_apart_ms - 1);
    dirty_bytes[static_cast<std::size_t>(place)] += idle.dirty_bytes();
  });
  std::size_t from = dirty_bytes.size() - 1;
  std::size_t found = dirty_bytes[from];
  while (found < bytes && from > 0) found += dirty_bytes[--from];
  return std::chrono::milliseconds(from);
}

std::size_t segment_heap::trim() noexcept {
  std::size_t unmapped = 0;
  free_.by_size().for_each([this, &unmapped](block& idle) {
    if (!unmap_memory(idle.address, idle.bytes)) return;
    unmapped += idle.bytes;
    delist(idle);
    forget(idle);
  });
  return unmapped;
}

bool segment_heap::is_ageing() const noexcept {
  return free_.by_size().any_of(
      [this](const block& idle) { return idle.memory != memory_state::none || can_unmap(idle); });
}

bool segment_heap::is_consistent() const noexcept {
  std::size_t all = 0;
  std::size_t idle = 0;
  std::size_t dirty = 0;
  std::size_t live_blocks = 0;
  std::size_t idle_blocks = 0;
  const block* before = nullptr;
  for (const block* part = blocks_.first(); part != nullptr; before = part, part = part->after) {
    if (part->before != before) return false;
    if (!part->leads) {
      if (before == nullptr || before->end() != part->address) return false;
      if (before->free && part->free) return false;
    }
    if (part->bytes == 0 || part->bytes % block_unit_bytes() != 0) return false;
    all += part->bytes;
    if (!part->free) {
      ++live_blocks;
      if (live_.find(part->address) != part) return false;
      continue;
    }
    ++idle_blocks;
    idle += part->bytes;
    dirty += part->dirty_bytes();
    if (part->dirty_bytes() > (part->memory == memory_state::dirty ? part->bytes : 0)) return false;
  }
  std::size_t in_bins = 0;
  free_.by_size().for_each([&in_bins](const block& binned) { in_bins += binned.free ? 1 : 0; });
  return before == blocks_.last() && idle == free_.bytes() && dirty == free_.dirty_bytes() &&
         live_blocks == live_.size() && idle_blocks == in_bins && all <= quota_.held_bytes();
}

}  // namespace shale::detail
