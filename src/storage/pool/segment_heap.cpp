#include "storage/pool/segment_heap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <new>

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
    if (each->state == block::free) free_.erase(free_.iterator_to(*each));
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
  if (block* const found = take_fitting(bytes, alignment)) return {found, false};
  if (!map_segment(bytes, alignment, now)) return {};
  return {take_fitting(bytes, alignment), true};
}

// The smallest free block that holds what is wanted, cut to size.
segment_heap::block* segment_heap::take_fitting(std::size_t bytes, std::size_t alignment) noexcept {
  for (auto each = free_.lower_bound(bytes, size_order()); each != free_.end(); ++each) {
    block& found = *each;
    // A mapping that stays whole would waste what it has too much of.
    if (how_ == cutting::never && found.bytes > bytes + bytes / 8) return nullptr;
    const std::size_t lead = align_up(number(found.address), alignment) - number(found.address);
    if (lead > found.bytes || bytes > found.bytes - lead) continue;
    if (lead > 0 && (how_ == cutting::never || !cut_front(found, lead))) continue;
    // From here on `found` begins at an aligned address.
    block* taken = &found;
    if (lead > 0) taken = &*std::next(blocks_.iterator_to(found));
    // Without memory for the books of the rest, the block stays larger than it need be.
    if (how_ == cutting::to_size && taken->bytes > bytes) cut_front(*taken, bytes);
    delist(*taken);
    taken->state = block::live;
    return taken;
  }
  return nullptr;
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
    fresh->state = block::free;
    fresh->behind = backing::none;
    fresh->since = now;
    poison(fresh->address, size);
    blocks_.insert(*fresh);
    enlist(*fresh);
    coalesce(*fresh);
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
  rest->state = block::free;
  rest->behind = from.behind;
  rest->since = from.since;
  from.bytes = bytes;
  blocks_.insert(*rest);
  enlist(from);
  enlist(*rest);
  ++splits_;
  return true;
}

void segment_heap::enlist(block& idle) noexcept {
  idle.state = block::free;
  free_.insert(idle);
  free_bytes_ += idle.bytes;
  if (idle.behind == backing::dirty) dirty_bytes_ += idle.bytes;
}

void segment_heap::delist(block& idle) noexcept {
  free_.erase(free_.iterator_to(idle));
  free_bytes_ -= idle.bytes;
  if (idle.behind == backing::dirty) dirty_bytes_ -= idle.bytes;
}

void segment_heap::free(block& which, backing behind, pool_clock::time_point now) noexcept {
  which.cut = nullptr;
  which.behind = behind;
  which.since = now;
  poison(which.address, which.bytes);
  enlist(which);
  coalesce(which);
}

// Joins a free block with free neighbours. Whichever part is larger says how long it has been idle:
// a small block that comes and goes must not keep a large one young.
void segment_heap::coalesce(block& idle) noexcept {
  if (how_ == cutting::never) return;
  const auto here = blocks_.iterator_to(idle);
  if (const auto next = std::next(here);
      next != blocks_.end() && next->state == block::free && next->address == idle.end())
    absorb(idle, *next);
  if (here == blocks_.begin()) return;
  block& before = *std::prev(here);
  if (before.state == block::free && before.end() == idle.address) absorb(before, idle);
}

void segment_heap::absorb(block& into, block& next) noexcept {
  delist(into);
  delist(next);
  into.since = next.bytes > into.bytes ? next.since : into.since;
  into.behind = std::min(into.behind, next.behind);
  into.bytes += next.bytes;
  blocks_.erase(blocks_.iterator_to(next));
  delete &next;
  enlist(into);
  ++coalesces_;
}

segment_heap::block& segment_heap::find(const void* address) noexcept {
  const auto after = blocks_.upper_bound(address, address_order());
  assert(after != blocks_.begin());
  return *std::prev(after);
}

// ---- ageing -------------------------------------------------------------------------------------

std::optional<segment_heap::chore> segment_heap::take_out(block& idle,
                                                          chore::action what) noexcept {
  delist(idle);
  idle.state = block::tended;
  return chore{&idle, what, false};
}

// Cuts off what is left and right of the huge pages that can be unmapped: a mapping full of small
// holes costs the system more than it returns.
bool segment_heap::isolate_unmappable(block& idle) noexcept {
  const std::size_t inner = huge_pages_bytes(idle);
  const std::size_t lead = static_cast<std::size_t>(first_huge_page(idle) - idle.address);
  if (lead > 0 && !cut_front(idle, lead)) return false;
  block& middle = lead > 0 ? *std::next(blocks_.iterator_to(idle)) : idle;
  return middle.bytes == inner || cut_front(middle, inner);
}

std::optional<segment_heap::chore> segment_heap::next_chore(std::byte*& cursor,
                                                            pool_clock::time_point now,
                                                            const decay_ages& ages) noexcept {
  for (auto each = blocks_.lower_bound(static_cast<const void*>(cursor), address_order());
       each != blocks_.end(); ++each) {
    if (each->state != block::free) continue;
    const auto age = now - each->since;
    cursor = each->end();
    if (each->behind == backing::dirty && age >= ages.lazy) return take_out(*each, chore::lazy);
    if (each->behind == backing::lazy && age >= ages.drop) return take_out(*each, chore::drop);
    if (each->behind != backing::none || age < ages.unmap) continue;
    if (how_ == cutting::never) return take_out(*each, chore::unmap);
    if (huge_pages_bytes(*each) == 0) continue;
    std::byte* const first = first_huge_page(*each);
    if (!isolate_unmappable(*each)) continue;
    return take_out(*blocks_.find(static_cast<const void*>(first), address_order()), chore::unmap);
  }
  return std::nullopt;
}

std::optional<segment_heap::chore> segment_heap::oldest_chore() noexcept {
  block* oldest = nullptr;
  for (block& each : free_)
    if (each.behind == backing::dirty && (oldest == nullptr || each.since < oldest->since))
      oldest = &each;
  return oldest == nullptr ? std::nullopt : take_out(*oldest, chore::lazy);
}

void segment_heap::perform(chore& what) noexcept {
  block& idle = *what.which;
  switch (what.what) {
    case chore::lazy:
      what.done = ::madvise(idle.address, idle.bytes, MADV_FREE) == 0 ||
                  ::madvise(idle.address, idle.bytes, MADV_DONTNEED) == 0;
      break;
    case chore::drop:
      what.done = ::madvise(idle.address, idle.bytes, MADV_DONTNEED) == 0;
      break;
    case chore::unmap:
      what.done = unmap_memory(idle.address, idle.bytes);
      break;
  }
}

void segment_heap::finish(const chore& what) noexcept {
  block& idle = *what.which;
  if (what.what == chore::unmap && what.done) {
    quota_.give(idle.bytes);
    blocks_.erase(blocks_.iterator_to(idle));
    delete &idle;
    return;
  }
  if (what.done) idle.behind = what.what == chore::lazy ? backing::lazy : backing::none;
  enlist(idle);
  coalesce(idle);
}

std::size_t segment_heap::trim() noexcept {
  std::size_t unmapped = 0;
  for (auto each = free_.begin(); each != free_.end();) {
    block& idle = *each++;
    if (!unmap_memory(idle.address, idle.bytes)) continue;
    delist(idle);
    quota_.give(idle.bytes);
    unmapped += idle.bytes;
    blocks_.erase(blocks_.iterator_to(idle));
    delete &idle;
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
    if (before != nullptr && before->end() == each.address && before->state == block::free &&
        each.state == block::free && how_ == cutting::to_size)
      return false;
    if (each.bytes == 0 || each.bytes % granule_bytes != 0) return false;
    all += each.bytes;
    if (each.state == block::free) {
      idle += each.bytes;
      ++enlisted;
      if (each.behind == backing::dirty) dirty += each.bytes;
    }
    before = &each;
  }
  return idle == free_bytes_ && dirty == dirty_bytes_ &&
         enlisted == static_cast<std::size_t>(std::distance(free_.begin(), free_.end())) &&
         all <= quota_.held_bytes();
}

}  // namespace shale::detail
