// Reads and replaces the chunks of one array inside a transaction.
#pragma once

#include <memory>

#include "array/elements/chunk_store.hpp"
#include "array/transaction/state/written_array.hpp"

namespace shale::arrays {

struct transaction_state;

/// Each read looks the chunk up again, so that readers see the transaction's latest change
/// (docs/decisions/0043).
class transaction_chunks final : public chunk_store {
 public:
  transaction_chunks(std::shared_ptr<transaction_state> owner,
                     std::shared_ptr<const written_array> array, bool writable)
      : owner_(std::move(owner)), array_(std::move(array)), writable_(writable) {}

  std::optional<format::chunk_entry> find(std::uint64_t number) const override;
  void read(const format::chunk_entry& entry, format::bytes_span into) const override;
  std::uint64_t times_space_taken() const override;
  int descriptor() const noexcept override;
  bool writable() const noexcept override { return writable_; }
  const void* identity() const noexcept override { return array_.get(); }
  chunk_claims::claim claim(std::uint64_t number) override;
  void put(std::uint64_t number, const format::encoded_chunk& chunk) override;
  void erase(std::uint64_t number) override;

 private:
  void require_chunks() const;

  std::shared_ptr<transaction_state> owner_;
  std::shared_ptr<const written_array> array_;
  bool writable_;
  chunk_claims claims_;
};

}  // namespace shale::arrays
