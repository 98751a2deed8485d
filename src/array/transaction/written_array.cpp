#include "array/transaction/written_array.hpp"

#include <fmt/format.h>

#include "array/elements/dense_bytes.hpp"
#include "shale/error.hpp"
#include "storage/mapped/mapped_extents.hpp"

namespace shale::arrays {

void written_array::require_there() const {
  if (removed)
    throw error(errc::not_found, fmt::format("'{}' was removed in this transaction", name));
  if (resized)
    throw error(errc::invalid_argument, fmt::format("'{}' was resized in this transaction", name),
                {"its shape was " + to_string(record.shape),
                 "use the array that `resize` or `append` returned, or ask for it again"});
}

void written_array::require_readable() const {
  if (removed || !readable) require_there();
}

// The mapping uses the container's own descriptor, because the number of descriptors is limited.
void written_array::map_bytes(format::transaction& in, const std::string& path) {
  for (const auto& extent : record.dense().extents) in.prepare_mapped_write(extent);
  kept = std::make_shared<kept_by_mapping>();
  kept->file = in.descriptor_owner();
  bytes = map_dense(in.descriptor(), record, {0, format::array_bytes(record)},
                    {.access = access::read_write,
                     .path = path,
                     .keep_alive = kept,
                     .write_back = in.write_back()});
}

void written_array::detach_from_file() noexcept {
  if (bytes && !bytes.empty()) detail::detach_from_file(bytes);
  bytes = storage();
  for (const storage& window : windows) detail::detach_from_file(window);
  windows.clear();
}

// No other writer has the lock, but a copy of the container may have been written over the file. If
// the array has the same extents and the same checksums, the bytes are the same.
bool written_array::keep_mapping(const format::generation_view& newest) {
  const auto now = newest.find(name);
  if (!now || !now->is_dense() || now->dense().extents != record.dense().extents ||
      now->dense().checksums_checksum != record.dense().checksums_checksum)
    return false;
  kept->pin = newest;
  bytes = storage();
  return true;
}

}  // namespace shale::arrays
