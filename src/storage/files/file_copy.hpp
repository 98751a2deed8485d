// Reads files that cannot be mapped safely (docs/caveats.md) into pool memory.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "shale/mapped_file.hpp"
#include "storage/blocks/file_extent.hpp"
#include "storage/files/file_system_kind.hpp"

namespace shale::detail {

/// Whether a file on this kind of file system, opened with `open_flags`, is mapped, copied or
/// refused for the access `wanted`.
mapping_support support_for(file_system_kind kind, int open_flags, access wanted) noexcept;

/// Whether the open file must be read instead of mapped.
/// Throws   unsupported (shared stores on a network file system), invalid_argument (no real file)
bool must_be_copied(int descriptor, access wanted, const std::string& path);

/// The bytes of `extents`, one after the other, in private memory.
/// Cost     reads everything
/// Throws   io, out_of_memory
storage copy_extents(int descriptor, std::span<const file_extent> extents, access allowed,
                     const std::string& path);

}  // namespace shale::detail
