// What this process holds of the system: descriptors, mappings, addresses. Counted before and
// after, they show what leaks.
#pragma once

#include <cstddef>
#include <string>

namespace shale::test {

/// Open descriptors of this process.
std::size_t open_descriptors();

/// Mappings of this process whose line in /proc/self/maps contains `what`.
std::size_t mappings_of(const std::string& what);

/// Bytes of address space that this process has taken.
std::size_t address_space_bytes();

/// What a leak of a mapped storage would add to. Memory of the heap is left out: it comes and goes.
struct process_footprint {
  std::size_t descriptors = 0;
  std::size_t files = 0;     ///< mappings of files
  std::size_t reserved = 0;  ///< mappings that allow no access: addresses set aside

  static process_footprint now();
  friend bool operator==(const process_footprint&, const process_footprint&) = default;
};

/// For messages.
std::string to_string(const process_footprint& held);

}  // namespace shale::test
