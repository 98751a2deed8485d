// Whether memory is short: what nobody uses then goes back at once instead of ageing.
#pragma once

#include <optional>

#include "storage/pool/segment_heap.hpp"
#include "storage/system_memory.hpp"

namespace shale::detail {

class memory_pressure {
 public:
  /// Of two readings that follow each other: whether in between somebody waited for memory for more
  /// than a tenth of the time; or whether less than a sixteenth of the machine's is available now.
  bool is_high(const system_memory& now, pool_clock::time_point when) noexcept;

 private:
  std::optional<std::chrono::microseconds> stalled_;
  pool_clock::time_point read_at_{};
};

}  // namespace shale::detail
