// The stored form of an array record: a verified FlatBuffer (src/format/catalog/descriptor.fbs).
#pragma once

#include <cstdint>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/catalog/array_record.hpp"

namespace shale::format {

/// Deterministic: equal records give equal bytes.
std::vector<std::byte> encode_descriptor(const array_record& record);

/// The record in stored bytes, all of it checked. Its extents must end before `end_of_file`.
/// Throws   corrupt; unsupported for a dtype, layout or codec stage of a later version
array_record decode_descriptor(bytes_view stored, std::uint64_t end_of_file);

}  // namespace shale::format
