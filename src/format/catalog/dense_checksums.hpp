// Reads the stored checksums of a dense array's segments.
#pragma once

#include <cstdint>
#include <functional>

#include "format/catalog/array_record.hpp"
#include "format/pages/page_reader.hpp"

namespace shale::format {

/// Calls `body` for each segment and its checksum, in order. The checksum of these numbers is
/// compared at the end: see page_reader::scan. Does nothing if the array has no checksums.
/// Throws   corrupt, io
void scan_dense_checksums(page_reader& reader, const array_record& record,
                          const std::function<void(std::uint64_t segment, std::uint64_t)>& body);

}  // namespace shale::format
