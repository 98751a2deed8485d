// Lets operations of many threads run until a thread closes the gate and waits for them to end.
#pragma once

#include <atomic>
#include <cstdint>

namespace shale::arrays {

/// Unlike with a shared lock, a thread that begins an operation never waits: an operation may run a
/// parallel loop whose threads begin operations of their own.
/// Threads  every member may be called from any thread
class operation_gate {
 public:
  /// Counts an operation as running while this object lives. A thread first makes the object and
  /// then asks `closed`. So either the thread that closes the gate waits for the operation, or the
  /// operation sees that the gate is closed.
  class [[nodiscard]] visit {
   public:
    explicit visit(operation_gate& gate) noexcept : gate_(gate) { ++gate_.inside_; }
    ~visit() {
      if (--gate_.inside_ == 0) gate_.inside_.notify_all();
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;

   private:
    operation_gate& gate_;
  };

  bool closed() const noexcept { return closed_; }
  void close() noexcept { closed_ = true; }

  /// Returns when no operation is running. Call it after `close`.
  void wait_for_visits() const noexcept {
    for (std::uint32_t now = inside_; now != 0; now = inside_) inside_.wait(now);
  }

 private:
  std::atomic<bool> closed_ = false;
  std::atomic<std::uint32_t> inside_ = 0;
};

}  // namespace shale::arrays
