// Counts the descriptors, mappings and address space of this process. Comparing the counts before
// and after a test shows leaks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shale::test {

/// Open descriptors of this process.
std::size_t open_descriptors();

/// The numbers of the descriptors of this process that are open on a file.
std::vector<int> descriptors_of(const std::string& file);

/// Mappings of this process whose line in /proc/self/maps contains `name`.
std::size_t mappings_of(const std::string& name);

/// Bytes of address space that this process uses.
std::size_t address_space_bytes();

/// The counts that a leaked mapped storage would increase. Heap memory is left out, because it
/// varies.
struct process_footprint {
  std::size_t descriptors = 0;
  std::size_t files = 0;     ///< mappings of files
  std::size_t reserved = 0;  ///< mappings without access: reserved addresses

  static process_footprint now();
  friend bool operator==(const process_footprint&, const process_footprint&) = default;
};

/// A text for messages.
std::string to_string(const process_footprint& held);

}  // namespace shale::test
