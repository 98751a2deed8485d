// Gathers facts about a place of the user's files: its file system, and the operations that work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/facts/leftovers.hpp"
#include "doctor/system/system_text.hpp"
#include "shale/mapped_file.hpp"

namespace shale::tools {

/// The results of operations on a nameless file of a folder, which no other process can see.
struct place_trial {
  known<bool> reserves;             ///< whether space can be reserved (fallocate)
  known<bool> punches;              ///< whether space inside a file can be freed
  known<bool> locks;                ///< whether a lock excludes another descriptor of the file
  std::uint64_t mapped_bytes = 0;   ///< bytes that were mapped and written
  known<std::uint64_t> huge_bytes;  ///< mapped bytes that lie on huge pages
};

/// What can be done with a file. Each text is the reason why not, or empty.
struct file_facts {
  std::string not_opened;   ///< it is not a regular file, may not be read, or is damaged
  std::string not_written;  ///< it is a container that this user may not change
};

struct place_facts {
  std::string path;    ///< as the caller gives it
  std::string folder;  ///< the path, or the folder of the file
  bool is_folder = false;
  std::optional<file_facts> file;  ///< of the file, if the path is not a folder
  known<mount_point> mount;
  known<mapping_support> reading;
  known<mapping_support> writing;  ///< for shared mappings
  std::uint64_t size_bytes = 0;
  std::uint64_t free_bytes = 0;  ///< free bytes that every user may take
  std::uint64_t files = 0;       ///< most files that fit; 0 if only the space limits them
  std::uint64_t free_files = 0;
  std::string failure;  ///< the reason why nothing could be tried; else empty
  place_trial trial;
  known<std::vector<leftover>> leftovers;
};

/// The mount that a path is on.
known<mount_point> mount_of(const std::string& path, const system_tree& system = system_tree());

/// Cost     reads no element of a file, only what opening it reads
/// Throws   not_found, access_denied, io: there is no such path
place_facts look_at_place(const std::string& path, const system_tree& system = system_tree());

}  // namespace shale::tools
