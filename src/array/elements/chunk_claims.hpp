// Lets one thread at a time replace a chunk. A write of a part of a chunk loads the chunk, changes
// it and stores it again: whatever another thread stored in between would be lost.
//
// Invariants
//   claims.1  a thread has at most one claim at a time, and runs no engine call and no function of
//             the caller while it has one. So a thread with a claim waits for no other claim, and
//             claims cannot deadlock
//   claims.2  a claim ends with its object, also when the write fails
//
// Memory: 8 bytes for each thread that writes a chunk at the moment.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace shale::arrays {

/// Threads  every member may be called from any thread
class chunk_claims {
 public:
  /// While it lives, no other thread has a claim on the same chunk.
  class [[nodiscard]] claim {
   public:
    /// A claim on nothing.
    claim() noexcept = default;
    claim(claim&& other) noexcept
        : claims_(std::exchange(other.claims_, nullptr)), number_(other.number_) {}
    claim& operator=(claim&&) = delete;
    ~claim() {
      if (claims_ != nullptr) claims_->end(number_);
    }

   private:
    friend class chunk_claims;
    claim(chunk_claims& claims, std::uint64_t number) noexcept
        : claims_(&claims), number_(number) {}

    chunk_claims* claims_ = nullptr;
    std::uint64_t number_ = 0;
  };

  /// Waits while another thread has a claim on the chunk.
  /// Throws   std::bad_alloc
  claim take(std::uint64_t number);

 private:
  void end(std::uint64_t number) noexcept;

  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::uint64_t> taken_;  // the numbers of chunks; short, so it is searched in order
};

}  // namespace shale::arrays
