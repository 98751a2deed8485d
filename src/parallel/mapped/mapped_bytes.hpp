// Decides whether the mapped files of a call are too large to stay resident.
#pragma once

#include <cstddef>

#include "shale/executor.hpp"
#include "shale/tensor.hpp"
#include "storage/blocks/backing.hpp"

namespace shale::parallel {

/// The byte range of the storage from the lowest element to the highest. The tensor has elements.
inline byte_range span_of(const tensor& values) {
  const auto bounds = values.layout().extent().value();
  return {static_cast<std::size_t>(bounds.first) * values.item_bytes(),
          static_cast<std::size_t>(bounds.last - bounds.first + 1) * values.item_bytes()};
}

using detail::is_mapped;

/// Adds up the bytes that the operands of a call span in mapped files. The gaps of a span count,
/// because pages are read as a whole. Broadcast elements count once.
class mapped_bytes {
 public:
  /// Does nothing if the storage is not a mapped file.
  void add(const storage& owner, std::size_t span_bytes) noexcept {
    if (is_mapped(owner)) bytes_ += span_bytes;
  }

  /// Whether the bytes need more than half of the budget. The operands are then streamed, or copied
  /// tile by tile. The other half is for temporaries.
  bool exceed_half_of_budget(const executor& on) const noexcept {
    return bytes_ > on.memory_bytes() / 2;
  }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace shale::parallel
