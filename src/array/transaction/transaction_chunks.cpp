#include "array/transaction/transaction_chunks.hpp"

#include <mutex>

#include "array/transaction/shared_transaction.hpp"

namespace shale::arrays {

std::optional<format::chunk_entry> transaction_chunks::find(std::uint64_t number) const {
  const auto state = owner_->lock(owner_->state_lock_);
  owner_->require_active(owner_->chunks_);
  array_->require_readable();
  return owner_->inner_->find_chunk(array_->name, number);
}

void transaction_chunks::read(const format::chunk_entry& entry, format::bytes_span into) const {
  const operation_gate::visit running(owner_->chunks_);
  owner_->require_active(owner_->chunks_);
  owner_->inner_->read_chunk(entry, into);
}

int transaction_chunks::descriptor() const noexcept {
  if (!owner_->is_of_this_process()) return -1;
  const std::lock_guard lock(owner_->state_lock_);
  return owner_->inner_ ? owner_->inner_->descriptor() : -1;
}

// The first check also keeps a forked child from waiting for a thread that it does not have.
chunk_claims::claim transaction_chunks::claim(std::uint64_t number) {
  if (!writable_) return {};
  {
    const auto state = owner_->lock(owner_->state_lock_);
    owner_->require_chunks(*array_);
  }
  return claims_.take(number);
}

// The checksum and the write of the bytes need no lock, so that threads write different chunks at
// once.
void transaction_chunks::put(std::uint64_t number, const format::encoded_chunk& chunk) {
  if (!writable_) return chunk_store::put(number, chunk);
  const operation_gate::visit running(owner_->chunks_);
  owner_->require_active(owner_->chunks_);
  format::chunk_entry entry = format::entry_of(chunk);
  format::extent space;
  {
    const auto state = owner_->lock(owner_->state_lock_);
    owner_->require_chunks(*array_);
    space = owner_->inner_->allocate_chunk(entry.stored_bytes);
  }
  entry.offset = space.offset;
  try {
    owner_->inner_->write(space.offset, chunk.stored);
  } catch (...) {
    const std::lock_guard lock(owner_->state_lock_);
    owner_->inner_->release(space);
    throw;
  }
  const std::lock_guard lock(owner_->state_lock_);
  if (array_->removed || array_->resized) owner_->inner_->release(space);
  array_->require_there();
  owner_->inner_->set_chunk(array_->name, number, entry);
}

void transaction_chunks::erase(std::uint64_t number) {
  if (!writable_) return chunk_store::erase(number);
  const operation_gate::visit running(owner_->chunks_);
  const auto state = owner_->lock(owner_->state_lock_);
  owner_->require_chunks(*array_);
  owner_->inner_->erase_chunk(array_->name, number);
}

}  // namespace shale::arrays
