// Operations of many threads, until somebody closes the gate and waits for those inside.
#pragma once

#include <atomic>
#include <cstdint>

namespace shale::arrays {

/// Unlike a shared lock it never makes anybody wait who goes in: an operation may run a loop whose
/// threads are in operations of their own.
/// Threads  every member may be called from any thread
class operation_gate {
 public:
  /// Being inside. Go in first, then ask `closed`: who closes the gate waits for you, or you see it.
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

  /// Returns when nobody is inside. Call it after `close`.
  void wait_for_visits() const noexcept {
    for (std::uint32_t now = inside_; now != 0; now = inside_) inside_.wait(now);
  }

 private:
  std::atomic<bool> closed_ = false;
  std::atomic<std::uint32_t> inside_ = 0;
};

}  // namespace shale::arrays
