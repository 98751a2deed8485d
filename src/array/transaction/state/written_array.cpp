#include "array/transaction/state/written_array.hpp"

#include <fmt/format.h>

#include "array/elements/copied_units.hpp"
#include "array/elements/dense_bytes.hpp"
#include "array/elements/dense_places.hpp"
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

void written_array::settle() {
  if (shared && shared->units.has_new_bytes()) record.dense().extents = shared->units.extents();
}

// The mapping uses the container's own descriptor, because the number of descriptors is limited.
void written_array::map_bytes(format::transaction& in, const std::string& path) {
  settle();
  for (const auto& extent : record.dense().extents) in.prepare_mapped_write(extent);
  kept = std::make_shared<kept_by_mapping>();
  kept->file = in.descriptor_owner();
  bytes = map_dense(in.descriptor(), record,
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
  detail::let_children_inherit(bytes);  // after the pin, which a child inherits too
  bytes = storage();
  return true;
}

std::shared_ptr<written_array> array_of_base(format::array_record record) {
  auto array = std::make_shared<written_array>(std::move(record));
  if (array->record.is_dense() && !array->record.dense().extents.empty()) {
    shared_bytes& shared = array->shared.emplace();
    shared.base_bytes = format::array_bytes(array->record);
    shared.can_be_cut = can_be_cut(array->record.dense(), shared.base_bytes);
    // Another writer may have made the last extent longer than the array needs. The units end where
    // the array ends.
    shared.units =
        unit_table(dense_places(array->record.dense().extents).pieces(0, shared.base_bytes));
  }
  return array;
}

}  // namespace shale::arrays
