#include "parallel/sources/tiles_of_call.hpp"

#include "parallel/sources/load_tile.hpp"

namespace shale::parallel {

tensor tiles_of_call::get(const tile_source& source, const dims& tile) {
  const key wanted{&source, tile};
  std::unique_lock lock(mutex_);
  for (;;) {
    if (failure_) std::rethrow_exception(failure_);
    const auto found = entries_.find(wanted);
    if (found == entries_.end()) break;
    if (found->second.loaded) {
      ages_.splice(ages_.end(), ages_, found->second.age);
      return found->second.values;
    }
    loaded_.wait(lock);  // then look again: the load may have failed, or the tile may be gone
  }
  const auto at = add(wanted);
  lock.unlock();

  tensor values;
  try {
    values = load(source, tile);
  } catch (...) {
    lock.lock();
    if (!failure_) failure_ = std::current_exception();
    ages_.erase(at->second.age);
    entries_.erase(at);
    loaded_.notify_all();
    throw;
  }
  lock.lock();
  at->second.values = values;
  at->second.loaded = true;
  at->second.kept = interface_of(source) != nullptr;
  if (!at->second.kept) held_bytes_ += values.size_bytes();
  shrink();
  loaded_.notify_all();
  return values;
}

const decoded_source* tiles_of_call::interface_of(const tile_source& source) const noexcept {
  const auto found = decoded_.find(&source);
  return found == decoded_.end() ? nullptr : found->second;
}

tensor tiles_of_call::load(const tile_source& source, const dims& tile) const {
  if (const auto* const kept = interface_of(source)) return kept->decoded_tile(tile, executor_);
  const region box = tile_region(source.shape(), source.tile_shape(), tile);
  tensor values = tensor::empty(box.shape, source.dtype(), &executor_.pool());
  load_tile(source, tile, values, executor_);
  return values;
}

bool tiles_of_call::knows(const tile_source& source, const dims& tile) {
  const std::lock_guard lock(mutex_);
  return entries_.count({&source, tile}) > 0;
}

// An entry without an age would stay unloaded, and threads that want its tile would wait for ever.
// So the age is inserted first, and removed again if there is no memory for the entry.
tiles_of_call::entries::iterator tiles_of_call::add(const key& wanted) {
  const auto age = ages_.insert(ages_.end(), wanted);
  try {
    return entries_.emplace(wanted, entry{.age = age}).first;
  } catch (...) {
    ages_.erase(age);
    throw;
  }
}

void tiles_of_call::shrink() {
  for (auto age = ages_.begin(); age != ages_.end() && held_bytes_ > capacity_bytes_;) {
    const auto at = entries_.find(*age);
    // One handle belongs to the cache. If there are more, a unit uses the tile.
    if (!at->second.loaded || at->second.kept || at->second.values.storage().use_count() > 1) {
      ++age;
      continue;
    }
    held_bytes_ -= at->second.values.size_bytes();
    entries_.erase(at);
    age = ages_.erase(age);
  }
}

}  // namespace shale::parallel
