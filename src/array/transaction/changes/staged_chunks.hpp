// Stores chunks of an array in a transaction, without changing the array's index yet.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "array/elements/chunk_store.hpp"

namespace shale::arrays {

struct transaction_state;

/// Chunks are read as the array holds them. The entries of stored chunks are collected, so that the
/// index can change in one step, or not at all.
class staged_chunks final : public chunk_store {
 public:
  staged_chunks(transaction_state& owner, std::string name)
      : owner_(owner), name_(std::move(name)) {}

  std::optional<format::chunk_entry> find(std::uint64_t number) const override;
  void read(const format::chunk_entry& entry, format::bytes_span into) const override;
  int descriptor() const noexcept override { return -1; }
  bool writable() const noexcept override { return true; }
  void put(std::uint64_t number, const format::encoded_chunk& chunk) override;
  void erase(std::uint64_t number) override;

  /// The entries so far, by number. An erased chunk has 0 stored bytes.
  std::vector<format::numbered_chunk> sorted();

  /// Gives the space of all collected entries back. The caller holds the transaction's state lock.
  void give_back() noexcept;

 private:
  transaction_state& owner_;
  std::string name_;
  std::mutex mutex_;
  std::vector<format::numbered_chunk> collected_;
};

}  // namespace shale::arrays
