// Counts the bytes that a call reads, each once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/saturating.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// The bytes of a tensor's elements. Broadcast elements count once. Saturates at the largest number
/// if the elements of a view that overlaps itself have more bytes.
inline std::uint64_t distinct_bytes(const tensor& values) noexcept {
  std::uint64_t bytes = values.item_bytes();
  for (index_t axis = 0; axis < values.rank(); ++axis)
    if (values.strides()[axis] != 0 || values.shape()[axis] == 0)
      bytes = detail::saturating_mul(bytes, static_cast<std::uint64_t>(values.shape()[axis]));
  return bytes;
}

/// Describes the bytes that an operand reads: their number, as from `distinct_bytes`, and the
/// addresses between which they lie.
struct read_bytes {
  std::uint64_t distinct;
  const std::byte* first;
  const std::byte* end;
};

/// The bytes that `count` operands read. Tensors of one storage may overlap, so their bytes cannot
/// simply be added. The bytes read of a storage are at most the sum over its tensors, and at most
/// the span from their lowest byte to their highest; the smaller bound counts. A storage is handled
/// at its first operand.
///
/// `is_read(k)` says whether operand k is read and has elements. `owner_of(k)` is its storage, and
/// `bytes_of(k)` its read_bytes.
/// Cost     O(n) for each storage of n operands, so O(n²) at most; allocates nothing
template <class IsRead, class OwnerOf, class BytesOf>
std::uint64_t count_bytes_read_once(std::size_t count, IsRead is_read, OwnerOf owner_of,
                                    BytesOf bytes_of) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (!is_read(k)) continue;
    const storage& owner = owner_of(k);
    const auto shares_owner = [&](std::size_t other) {
      return is_read(other) && owner_of(other).shares_owner_with(owner);
    };
    bool counted = false;
    for (std::size_t before = 0; before < k && !counted; ++before) counted = shares_owner(before);
    if (counted) continue;
    read_bytes all = bytes_of(k);
    for (std::size_t other = k + 1; other < count; ++other) {
      if (!shares_owner(other)) continue;
      const read_bytes more = bytes_of(other);
      detail::add_saturating(all.distinct, more.distinct);
      all.first = std::min(all.first, more.first);
      all.end = std::max(all.end, more.end);
    }
    sum += std::min(all.distinct, static_cast<std::uint64_t>(all.end - all.first));
  }
  return sum;
}

}  // namespace shale::parallel
