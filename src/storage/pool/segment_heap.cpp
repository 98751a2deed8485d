#include "storage/pool/segment_heap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <new>
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

// The huge pages wholly inside a block.
std::byte* first_huge_page(const segment_heap::block& in) noexcept {
  return in.address + (align_up(number(in.address), huge_page_bytes) - number(in.address));
}
std::size_t huge_pages_bytes(const segment_heap::block& in) noexcept {
  const std::uintptr_t first = align_up(number(in.address), huge_page_bytes);
  const std::uintptr_t last = align_down(number(in.end()), huge_page_bytes);
  return last > first ? last - first : 0;
}

}  // namespace

segment_heap::~segment_heap() {
  blocks_.clear_and_dispose([this](block* each) {
    // A block that is still live belongs to somebody who broke the pool's contract; its memory
    // goes.
    if (each->free) free_.erase(free_.iterator_to(*each));
    unmap_memory(each->address, each->bytes);
    quota_.give(each->bytes);
    delete each;
  });
}

segment_heap::allocation segment_heap::allocate(std::size_t bytes, std::size_t alignment,
                                                pool_clock::time_point now) noexcept {
  // Room to round up to segments and alignments without wrapping.
  if (bytes > std::size_t{1} << 62 || alignment > std::size_t{1} << 62) return {};
  bytes = align_up(std::max(bytes, granule_bytes), granule_bytes);
  if (block* const found = reuse(bytes, alignment)) return {found, false};
  if (!map_segment(bytes, alignment, now)) return {};
  return {reuse(bytes, alignment), true};
}

// The smallest free block that holds what is wanted, cut to size.
segment_heap::block* segment_heap::reuse(std::size_t bytes, std::size_t alignment) noexcept {
  for (auto each = free_.lower_bound(bytes, size_order()); each != free_.end(); ++each) {
    block& found = *each;
    // A mapping that stays whole would waste what it has too much of.
    if (how_ == cutting::never && found.bytes > bytes + bytes / 8) return nullptr;
    const std::size_t lead = align_up(number(found.address), alignment) - number(found.address);
    if (lead == 0) return take(found, bytes);
    if (lead > found.bytes || bytes > found.bytes - lead) continue;
    if (how_ == cutting::never || !cut_front(found, lead)) continue;
    return take(*std::next(blocks_.iterator_to(found)), bytes);
  }
  return nullptr;
}

segment_heap::block* segment_heap::reuse_backed(std::size_t bytes, std::size_t alignment) noexcept {
  int looks = 4;
  for (auto each = free_.lower_bound(bytes, size_order()); each != free_.end() && looks > 0;
       ++each, --looks) {
    if (each->dirty_bytes < bytes || number(each->address) % alignment != 0) continue;
    return take(*each, bytes);
  }
  return nullptr;
}

// The first `bytes` of a free block; what is left stays free, and in its place in address order.
segment_heap::block* segment_heap::take(block& found, std::size_t bytes) noexcept {
  // Without memory for the books of a part, the block stays larger than it need be.
  auto* const part =
      how_ == cutting::to_size && found.bytes > bytes ? new (std::nothrow) block : nullptr;
  delist(found);
  if (part == nullptr) return &found;
  part->address = found.address;
  part->bytes = bytes;
  part->leads = std::exchange(found.leads, false);
  blocks_.insert_before(blocks_.iterator_to(found), *part);
  found.address += bytes;
  found.bytes -= bytes;
  found.dirty_bytes -= std::min(found.dirty_bytes, bytes);
  enlist(found);
  ++splits_;
  return part;
}

bool segment_heap::map_segment(std::size_t bytes, std::size_t alignment,
                               pool_clock::time_point now) noexcept {
  const std::size_t coarse = std::max(alignment, huge_page_bytes);
  const std::size_t needed = align_up(bytes, huge_page_bytes);
  const std::size_t sizes[] = {how_ == cutting::to_size ? std::max(needed, segment_bytes) : needed,
                               needed, bytes};
  auto* const fresh = new (std::nothrow) block;
  if (fresh == nullptr) return false;
  // Less than a segment where the limit leaves no room for one.
  for (const std::size_t size : sizes) {
    if (!quota_.take(size)) continue;
    fresh->address = map_memory(size, coarse);
    if (fresh->address == nullptr) {
      quota_.give(size);
      continue;
    }
    fresh->bytes = size;
    fresh->leads = true;
    fresh->behind = backing::none;
    fresh->since = now;
    poison(fresh->address, size);
    blocks_.insert(*fresh);
    enlist_coalesced(*fresh);
    return true;
  }
  delete fresh;
  return false;
}

// Makes the part behind the first `bytes` of a free block a free block of its own.
bool segment_heap::cut_front(block& from, std::size_t bytes) noexcept {
  auto* const rest = new (std::nothrow) block;
  if (rest == nullptr) return false;
  delist(from);
  rest->address = from.address + bytes;
  rest->bytes = from.bytes - bytes;
  rest->behind = from.behind;
  rest->since = from.since;
  rest->dirty_bytes = from.dirty_bytes - std::min(from.dirty_bytes, bytes);
  from.dirty_bytes -= rest->dirty_bytes;
  from.bytes = bytes;
  blocks_.insert_before(std::next(blocks_.iterator_to(from)), *rest);
  enlist(from);
  enlist(*rest);
  ++splits_;
  return true;
}

void segment_heap::enlist(block& idle) noexcept {
  idle.free = true;
  idle.aged = 0;
  free_.insert(idle);
  free_bytes_ += idle.bytes;
  dirty_bytes_ += idle.dirty_bytes;
}

void segment_heap::delist(block& idle) noexcept {
  idle.free = false;
  free_.erase(free_.iterator_to(idle));
  free_bytes_ -= idle.bytes;
  dirty_bytes_ -= idle.dirty_bytes;
}

void segment_heap::free(block& which, backing behind, pool_clock::time_point now) noexcept {
  which.behind = behind;
  which.dirty_bytes = behind == backing::dirty ? which.bytes : 0;
  which.since = now;
  poison(which.address, which.bytes);
  enlist_coalesced(which);
}

// Joins what becomes free with free neighbours of its mapping: joined to the untouched end of
// another one it would be the last to be used again. Whichever part is larger says how long it has been
// idle: a small block that comes and goes must not keep a large one young.
void segment_heap::enlist_coalesced(block& idle) noexcept {
  block* whole = &idle;
  if (how_ == cutting::to_size) {
    const auto here = blocks_.iterator_to(idle);
    if (const auto next = std::next(here);
        next != blocks_.end() && next->free && !next->leads && next->address == idle.end()) {
      delist(*next);
      absorb(idle, *next);
    }
    if (here != blocks_.begin() && !idle.leads) {
      block& before = *std::prev(here);
      if (before.free && before.end() == idle.address) {
        delist(before);
        absorb(before, idle);
        whole = &before;
      }
    }
  }
  enlist(*whole);
}

void segment_heap::absorb(block& into, block& next) noexcept {
  into.since = next.bytes > into.bytes ? next.since : into.since;
  into.behind = std::min(into.behind, next.behind);
  into.bytes += next.bytes;
  into.dirty_bytes += next.dirty_bytes;
  blocks_.erase(blocks_.iterator_to(next));
  delete &next;
  ++coalesces_;
}

segment_heap::block& segment_heap::find(const void* address) noexcept {
  const auto after = blocks_.upper_bound(address, address_order());
  assert(after != blocks_.begin());
  return *std::prev(after);
}

// ---- ageing -------------------------------------------------------------------------------------

// A step of a block towards having less behind it: dirty, lazy, none.
void segment_heap::lose_backing(block& idle, std::size_t most_bytes) noexcept {
  std::byte* const from = idle.address + idle.aged;
  const std::size_t bytes = std::min(idle.bytes - idle.aged, most_bytes);
  const bool lazily = idle.behind == backing::dirty && ::madvise(from, bytes, MADV_FREE) == 0;
  if (!lazily) ::madvise(from, bytes, MADV_DONTNEED);
  idle.aged += bytes;
  if (idle.aged < idle.bytes) return;
  delist(idle);
  idle.behind = idle.behind == backing::dirty ? backing::lazy : backing::none;
  idle.dirty_bytes = 0;
  enlist(idle);
}

// Unmaps the first whole huge pages of a block, at most a step of them: a mapping full of small
// holes costs the system more than it returns. Returns where what was tried ends.
std::byte* segment_heap::unmap_first(block& idle) noexcept {
  block* middle = &idle;
  if (how_ == cutting::to_size) {
    const auto lead = static_cast<std::size_t>(first_huge_page(idle) - idle.address);
    const std::size_t bytes = std::min(huge_pages_bytes(idle), step_bytes);
    if (bytes == 0) return idle.end();
    if (lead > 0) {
      if (!cut_front(idle, lead)) return idle.end();
      middle = &*std::next(blocks_.iterator_to(idle));
    }
    const bool cut = middle->bytes == bytes || cut_front(*middle, bytes);
    if (!cut || !unmap_memory(middle->address, middle->bytes)) {
      std::byte* const end = middle->end();
      delist(*middle);
      enlist_coalesced(*middle);
      return end;
    }
  } else if (!unmap_memory(idle.address, idle.bytes)) {
    return idle.end();
  }
  std::byte* const end = middle->end();
  forget(*middle);
  return end;
}

void segment_heap::forget(block& unmapped) noexcept {
  delist(unmapped);
  quota_.give(unmapped.bytes);
  blocks_.erase(blocks_.iterator_to(unmapped));
  delete &unmapped;
}

bool segment_heap::age(std::byte*& cursor, pool_clock::time_point now,
                       const decay_ages& ages) noexcept {
  auto each = blocks_.lower_bound(static_cast<const void*>(cursor), address_order());
  // The last step may have ended inside a block, which is the same one unless it was used since.
  if (each != blocks_.begin())
    if (const auto before = std::prev(each); before->address + before->aged == cursor)
      each = before;
  for (; each != blocks_.end(); ++each) {
    block& idle = *each;
    if (!idle.free) continue;
    const auto due = idle.behind == backing::dirty  ? ages.lazy
                     : idle.behind == backing::lazy ? ages.drop
                                                    : ages.unmap;
    if (now - idle.since < due) continue;
    if (idle.behind == backing::none) {
      cursor = unmap_first(idle);
      return true;
    }
    lose_backing(idle, step_bytes);
    cursor = idle.aged > 0 ? idle.address + idle.aged : idle.end();
    return true;
  }
  return false;
}

bool segment_heap::age_oldest() noexcept {
  block* oldest = nullptr;
  for (block& each : free_)
    if (each.behind == backing::dirty && (oldest == nullptr || each.since < oldest->since))
      oldest = &each;
  if (oldest == nullptr) return false;
  lose_backing(*oldest, oldest->bytes);
  return true;
}

std::size_t segment_heap::trim() noexcept {
  std::size_t unmapped = 0;
  for (auto each = free_.begin(); each != free_.end();) {
    block& idle = *each++;
    const std::size_t bytes = idle.bytes;
    if (!unmap_memory(idle.address, bytes)) continue;
    forget(idle);
    unmapped += bytes;
  }
  return unmapped;
}

bool segment_heap::is_ageing() const noexcept {
  return std::any_of(free_.begin(), free_.end(), [this](const block& each) {
    return each.behind != backing::none || how_ == cutting::never || huge_pages_bytes(each) > 0;
  });
}

std::size_t segment_heap::largest_free_bytes() const noexcept {
  return free_.empty() ? 0 : std::prev(free_.end())->bytes;
}

bool segment_heap::is_consistent() const noexcept {
  std::size_t all = 0;
  std::size_t idle = 0;
  std::size_t dirty = 0;
  std::size_t enlisted = 0;
  const block* before = nullptr;
  for (const block& each : blocks_) {
    if (before != nullptr && before->end() > each.address) return false;
    if (before != nullptr && before->end() == each.address && before->free && each.free &&
        !each.leads && how_ == cutting::to_size)
      return false;
    if (each.bytes == 0 || each.bytes % granule_bytes != 0) return false;
    all += each.bytes;
    if (each.free) {
      idle += each.bytes;
      ++enlisted;
      dirty += each.dirty_bytes;
      if (each.dirty_bytes > (each.behind == backing::dirty ? each.bytes : 0)) return false;
    }
    before = &each;
  }
  return idle == free_bytes_ && dirty == dirty_bytes_ &&
         enlisted == static_cast<std::size_t>(std::distance(free_.begin(), free_.end())) &&
         all <= quota_.held_bytes();
}

}  // namespace shale::detail
