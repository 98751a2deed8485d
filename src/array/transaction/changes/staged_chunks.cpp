#include "array/transaction/changes/staged_chunks.hpp"

#include <algorithm>

#include "array/transaction/state/transaction_state.hpp"

namespace shale::arrays {

std::optional<format::chunk_entry> staged_chunks::find(std::uint64_t number) const {
  const auto state = owner_.locks.lock_state();
  owner_.require_chunks_active();
  return owner_.inner->find_chunk(name_, number);
}

void staged_chunks::read(const format::chunk_entry& entry, format::bytes_span into) const {
  const operation_gate::visit running(owner_.operations.chunks());
  owner_.require_chunks_active();
  owner_.inner->read_chunk(entry, into);
}

void staged_chunks::put(std::uint64_t number, const format::encoded_chunk& chunk) {
  const operation_gate::visit running(owner_.operations.chunks());
  owner_.require_chunks_active();
  format::chunk_entry entry = format::entry_of(chunk);
  {
    const auto state = owner_.locks.lock_state();
    entry.offset = owner_.inner->allocate_chunk(entry.stored_bytes).offset;
  }
  {
    // From here on, `give_back` knows the space.
    const std::lock_guard lock(mutex_);
    collected_.push_back({number, entry});
  }
  owner_.inner->write(entry.offset, chunk.stored);
}

void staged_chunks::erase(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  collected_.push_back({number, {}});
}

std::vector<format::numbered_chunk> staged_chunks::sorted() {
  const std::lock_guard lock(mutex_);
  std::sort(collected_.begin(), collected_.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return collected_;
}

void staged_chunks::give_back() noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, entry] : collected_) {
    try {
      if (entry.stored_bytes != 0) owner_.inner->release({entry.offset, entry.stored_bytes});
    } catch (...) {
      // Commit gives back what no index refers to.
    }
  }
  collected_.clear();
}

}  // namespace shale::arrays
