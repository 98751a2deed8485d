#include "array/transaction/changes/commit_checksums.hpp"

#include <fmt/format.h>

#include <vector>

#include "array/elements/dense_bytes.hpp"
#include "array/transaction/changes/unit_copies.hpp"
#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "shale/error.hpp"
#include "storage/system/pages.hpp"

namespace shale::arrays {

void store_checksums(transaction_state& owner, written_array& array) {
  if (array.shared && array.shared->unchanged()) return;
  std::vector<format::byte_interval> ranges;
  // A segment with new and old bytes was compared with its old checksum when the first of them
  // became new.
  if (array.shared) ranges = array.shared->units.new_parts();
  for (format::byte_interval& part : ranges)
    part.first = shale::detail::align_down(part.first, format::dense_segment_bytes);
  unit_copies(owner, array).join();
  format::transaction& inner = *owner.inner;
  auto state = owner.locks.lock_own_state();
  auto record = inner.find(array.name);
  if (!record) throw error(errc::not_found, fmt::format("no array '{}'", array.name));
  record->dense().extents = array.record.dense().extents;
  state.unlock();  // change.5
  const std::uint64_t total = format::array_bytes(*record);
  std::vector<std::uint64_t> sums;
  if (array.shared && array.shared->sums) sums = *array.shared->sums;
  if (sums.empty()) ranges = {{0, total}};
  sums.resize(static_cast<std::size_t>(ceil_div(total, format::dense_segment_bytes)));
  sum_segments(
      *record, ranges, sums,
      [&](std::uint64_t offset, format::bytes_span into) { inner.read(offset, into); },
      inner.descriptor(), executor::current());
  if (sums.empty()) return;
  std::vector<std::byte> stored(sums.size() * 8);
  for (std::size_t i = 0; i < sums.size(); ++i) format::store(stored.data() + i * 8, sums[i]);
  state.lock();
  auto& dense = record->dense();
  dense.checksums = inner.allocate(stored.size(), stored.size());
  inner.write(dense.checksums.offset, stored);
  dense.checksums_checksum = format::checksum_metadata(stored);
  inner.put(*record);
  array.record.dense() = dense;
}

}  // namespace shale::arrays
