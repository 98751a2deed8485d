// Classifies file systems by the behaviour of mappings on them, and by where they write.
#pragma once

#include <cstdint>

namespace shale::detail {

enum class file_system_kind : std::uint8_t {
  local,    ///< mappings and descriptors see the same bytes, and stores can be shared
  overlay,  ///< a read-only descriptor and its mappings may see different bytes
  network,  ///< other machines may change the bytes of a mapping
  virtual_  ///< files whose size is not known before they are read (/proc, /sys)
};

file_system_kind file_system_of(int descriptor) noexcept;

/// The kind for a number that `statfs` reports.
file_system_kind classify_file_system(std::uint64_t magic) noexcept;

/// Whether the file system of that number writes changed bytes to new blocks.
bool copies_on_write(std::uint64_t magic) noexcept;

}  // namespace shale::detail
