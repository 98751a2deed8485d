// How the bytes of a storage are used: rights, hints, and the choices of its functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace [[gnu::visibility("default")]] shale {

/// How the bytes may be used.
enum class access : std::uint8_t {
  read_only,      ///< stores are refused by the hardware
  read_write,     ///< stores reach the file or the other processes
  copy_on_write,  ///< stores stay in this process; the file keeps its bytes
};

/// A hint about how a range will be read.
enum class access_pattern : std::uint8_t { normal, sequential, random };

/// When `flush` returns: once the bytes are durable on the device, or once writing has started.
enum class flush_mode : std::uint8_t { sync, async };

/// The kind of access that `populate` prepares.
enum class populate_for : std::uint8_t { load, store };

/// Where `evict` removes pages from: this process only, or the page cache of the system too.
enum class eviction : std::uint8_t { process, system };

/// The kind of owner of the bytes.
enum class storage_kind : std::uint8_t { heap, file, shared_memory, adopted };

/// A range of bytes inside a storage.
struct byte_range {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

}  // namespace shale
