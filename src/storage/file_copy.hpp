// Files that cannot be mapped safely (docs/caveats.md): their bytes are read into pool memory.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "shale/mapped_file.hpp"
#include "storage/file_extent.hpp"
#include "storage/file_system_kind.hpp"

namespace shale::detail {

/// What becomes of a file there that was opened with `open_flags` and is wanted for `wanted`.
mapping_support support_for(file_system_kind where, int open_flags, access wanted) noexcept;

/// Whether storages of the open file are read instead of mapped.
/// Throws   unsupported (shared stores on a network file system), invalid_argument (no real file)
bool must_be_copied(int descriptor, access wanted, const std::string& path);

/// The bytes of `extents`, one behind the other, as private memory.
/// Cost     reads everything
/// Throws   io, out_of_memory
storage copy_extents(int descriptor, std::span<const file_extent> extents, access allowed,
                     const std::string& path);

}  // namespace shale::detail
