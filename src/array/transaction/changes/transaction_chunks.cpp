#include "array/transaction/changes/transaction_chunks.hpp"

#include "array/transaction/state/transaction_state.hpp"

namespace shale::arrays {

// The caller holds the state lock, which guards `removed`.
void transaction_chunks::require_chunks() const {
  owner_->require_chunks_active();
  array_->require_there();
}

std::optional<format::chunk_entry> transaction_chunks::find(std::uint64_t number) const {
  const auto state = owner_->locks.lock_state();
  owner_->require_chunks_active();
  array_->require_readable();
  return owner_->inner->find_chunk(array_->name, number);
}

void transaction_chunks::read(const format::chunk_entry& entry, format::bytes_span into) const {
  const operation_gate::visit running(owner_->operations.chunks());
  owner_->require_chunks_active();
  owner_->inner->read_chunk(entry, into);
}

std::uint64_t transaction_chunks::times_space_taken() const {
  const auto state = owner_->locks.lock_state();
  owner_->require_chunks_active();
  return owner_->inner->times_space_taken();
}

int transaction_chunks::descriptor() const noexcept {
  if (!owner_->locks.are_of_this_process()) return -1;
  const auto state = owner_->locks.lock_own_state();
  return owner_->inner ? owner_->inner->descriptor() : -1;
}

// `lock_state` throws in a forked child. So a child never waits for the claim of a thread that does
// not exist there.
chunk_claims::claim transaction_chunks::claim(std::uint64_t number) {
  if (!writable_) return {};
  {
    const auto state = owner_->locks.lock_state();
    require_chunks();
  }
  return claims_.take(number);
}

// The checksum and the write of the bytes need no lock, so that threads write different chunks at
// once.
void transaction_chunks::put(std::uint64_t number, const format::encoded_chunk& chunk) {
  if (!writable_) return chunk_store::put(number, chunk);
  const operation_gate::visit running(owner_->operations.chunks());
  owner_->require_chunks_active();
  format::chunk_entry entry = format::entry_of(chunk);
  format::extent space;
  {
    const auto state = owner_->locks.lock_state();
    require_chunks();
    space = owner_->inner->allocate_chunk(entry.stored_bytes);
  }
  entry.offset = space.offset;
  try {
    owner_->inner->write(space.offset, chunk.stored);
  } catch (...) {
    const auto state = owner_->locks.lock_own_state();
    owner_->inner->release(space);
    throw;
  }
  const auto state = owner_->locks.lock_own_state();
  if (array_->removed || array_->resized) owner_->inner->release(space);
  array_->require_there();
  owner_->inner->set_chunk(array_->name, number, entry);
}

void transaction_chunks::erase(std::uint64_t number) {
  if (!writable_) return chunk_store::erase(number);
  const operation_gate::visit running(owner_->operations.chunks());
  const auto state = owner_->locks.lock_state();
  require_chunks();
  owner_->inner->erase_chunk(array_->name, number);
}

}  // namespace shale::arrays
