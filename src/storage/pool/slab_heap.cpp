#include "storage/pool/slab_heap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>

#include "storage/pages.hpp"
#include "storage/pool/poison.hpp"

namespace shale::detail {

namespace {

std::size_t bytes_of(const slab& of, std::uint64_t blocks) noexcept {
  return static_cast<std::size_t>(std::popcount(blocks)) * class_bytes(of.size_class);
}

}  // namespace

// The heap unmaps the slabs; only their books are ours. Slabs without a free block cannot be found,
// and hold nothing but blocks that were never freed.
slab_heap::~slab_heap() {
  for (auto& each : open_) each.clear_and_dispose([](slab* gone) { delete gone; });
}

slab* slab_heap::make_slab(std::size_t size_class, pool_clock::time_point now,
                           bool& mapped) noexcept {
  auto* const fresh = new (std::nothrow) slab;
  if (fresh == nullptr) return nullptr;
  const std::size_t block = class_bytes(size_class);
  // A pool near its limit still serves single blocks.
  for (const std::size_t bytes : {slab_bytes(size_class), block}) {
    const std::size_t alignment = bytes == block ? segment_heap::granule_bytes : huge_page_bytes;
    const auto [run, is_mapped] = heap_.allocate(bytes, alignment, now);
    if (run == nullptr) continue;
    mapped = is_mapped;
    run->cut = fresh;
    fresh->run = run;
    fresh->size_class = size_class;
    fresh->blocks = static_cast<std::uint32_t>(std::min<std::size_t>(run->bytes / block, 64));
    fresh->free = fresh->all();
    fresh->dirty = run->behind == backing::dirty ? fresh->all() : 0;
    fresh->lazy = run->behind == backing::lazy ? fresh->all() : 0;
    fresh->since = now;
    free_bytes_ += bytes_of(*fresh, fresh->free);
    dirty_bytes_ += bytes_of(*fresh, fresh->dirty);
    open_[size_class].insert(*fresh);
    return fresh;
  }
  delete fresh;
  return nullptr;
}

slab_heap::allocation slab_heap::allocate(std::size_t size_class,
                                          pool_clock::time_point now) noexcept {
  slab_set& open = open_[size_class];
  bool mapped = false;
  slab* const from = open.empty() ? make_slab(size_class, now, mapped) : &*open.begin();
  if (from == nullptr) return {};
  const int index = std::countr_zero(from->free);
  const std::uint64_t bit = std::uint64_t{1} << index;
  const std::size_t block = class_bytes(size_class);
  free_bytes_ -= block;
  if ((from->dirty & bit) != 0) dirty_bytes_ -= block;
  from->free &= ~bit;
  from->dirty &= ~bit;
  from->lazy &= ~bit;
  if (from->free == 0) open.erase(open.iterator_to(*from));
  return {from->run->address + static_cast<std::size_t>(index) * block, mapped};
}

void slab_heap::free(void* address, pool_clock::time_point now) noexcept {
  segment_heap::block& run = heap_.find(address);
  slab& in = *run.cut;
  const std::size_t block = class_bytes(in.size_class);
  const auto index =
      static_cast<std::size_t>(static_cast<std::byte*>(address) - run.address) / block;
  const std::uint64_t bit = std::uint64_t{1} << index;
  assert((in.free & bit) == 0 && "a block was freed twice");
  if (in.free == 0) open_[in.size_class].insert(in);
  in.free |= bit;
  in.dirty |= bit;
  in.since = now;
  free_bytes_ += block;
  dirty_bytes_ += block;
  if (in.free == in.all()) release(in, now);
}

void slab_heap::release(slab& empty, pool_clock::time_point now) noexcept {
  open_[empty.size_class].erase(open_[empty.size_class].iterator_to(empty));
  free_bytes_ -= bytes_of(empty, empty.free);
  dirty_bytes_ -= bytes_of(empty, empty.dirty);
  heap_.free(*empty.run, backing::dirty, now);
  delete &empty;
}

// One system call for each run of neighbours.
void slab_heap::give_back(const slab& of, std::uint64_t blocks, int advice) noexcept {
  const std::size_t block = class_bytes(of.size_class);
  while (blocks != 0) {
    const int first = std::countr_zero(blocks);
    const int count = std::countr_one(blocks >> first);
    ::madvise(of.run->address + static_cast<std::size_t>(first) * block,
              static_cast<std::size_t>(count) * block, advice);
    if (first + count == 64) return;
    blocks = blocks >> (first + count) << (first + count);
  }
}

void slab_heap::decay(pool_clock::time_point now, const decay_ages& ages) noexcept {
  for (auto& open : open_) {
    for (slab& each : open) {
      const auto age = now - each.since;
      if (each.dirty != 0 && age >= ages.lazy) {
        give_back(each, each.dirty, MADV_FREE);
        dirty_bytes_ -= bytes_of(each, each.dirty);
        each.lazy |= each.dirty;
        each.dirty = 0;
      } else if (each.lazy != 0 && age >= ages.drop) {
        give_back(each, each.lazy, MADV_DONTNEED);
        each.lazy = 0;
      }
    }
  }
}

void slab_heap::drop_idle() noexcept {
  for (auto& open : open_) {
    for (slab& each : open) {
      give_back(each, each.dirty | each.lazy, MADV_DONTNEED);
      dirty_bytes_ -= bytes_of(each, each.dirty);
      each.dirty = each.lazy = 0;
    }
  }
}

bool slab_heap::is_ageing() const noexcept {
  for (const auto& open : open_)
    for (const slab& each : open)
      if ((each.dirty | each.lazy) != 0) return true;
  return false;
}

std::size_t slab_heap::largest_free_bytes() const noexcept {
  for (std::size_t index = size_classes; index-- > 0;)
    if (!open_[index].empty()) return class_bytes(index);
  return 0;
}

bool slab_heap::is_consistent() const noexcept {
  std::size_t idle = 0;
  std::size_t dirty = 0;
  for (const auto& open : open_) {
    for (const slab& each : open) {
      if (each.free == 0 || each.free == each.all() || (each.free & ~each.all()) != 0) return false;
      if ((each.dirty & ~each.free) != 0 || (each.lazy & ~each.free) != 0) return false;
      if (each.run->cut != &each || each.run->state != segment_heap::block::live) return false;
      idle += bytes_of(each, each.free);
      dirty += bytes_of(each, each.dirty);
    }
  }
  return idle == free_bytes_ && dirty == dirty_bytes_;
}

}  // namespace shale::detail
