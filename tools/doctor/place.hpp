// Facts about a place where files of the user lie: its file system, and what works there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/leftovers.hpp"
#include "doctor/system_text.hpp"
#include "shale/mapped_file.hpp"

namespace shale::tools {

/// What a file without a name, which nobody else ever sees, showed to work in a folder.
struct place_trial {
  known<bool> reserves;             ///< space beforehand (fallocate)
  known<bool> punches;              ///< gives space inside files back
  known<bool> locks;                ///< two openings of one file exclude each other
  std::uint64_t mapped_bytes = 0;   ///< that were mapped and stored into
  known<std::uint64_t> huge_bytes;  ///< of them on huge pages
};

struct place_facts {
  std::string path;    ///< as asked for
  std::string folder;  ///< where files are made: the path or what it lies in
  bool is_folder = false;
  known<mount_point> mount;
  known<mapping_support> reading;
  known<mapping_support> writing;  ///< through shared mappings
  std::uint64_t size_bytes = 0;
  std::uint64_t free_bytes = 0;  ///< for this user
  std::uint64_t files = 0;       ///< that fit; 0: as many as there is space for
  std::uint64_t free_files = 0;
  std::string failure;  ///< why nothing can be tried here, "" if it could
  place_trial trial;
  known<std::vector<leftover>> leftovers;
};

/// The mount that a path is on.
known<mount_point> mount_of(const std::string& path, const system_tree& system = system_tree());

/// Throws   not_found, access_denied, io: there is no such path
place_facts look_at_place(const std::string& path, const system_tree& system = system_tree());

}  // namespace shale::tools
