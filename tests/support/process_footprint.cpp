#include "support/process_footprint.hpp"

#include <dirent.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace shale::test {

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const all = ::opendir("/proc/self/fd");
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

std::vector<int> descriptors_of(const std::string& file) {
  const std::filesystem::path wanted = std::filesystem::canonical(file);
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == wanted)
      found.push_back(std::stoi(entry.path().filename().string()));
  }
  return found;
}

namespace {

// AddressSanitizer reserves addresses for its own heap, piece by piece.
bool belongs_to_sanitizer([[maybe_unused]] const std::string& line) {
#if defined(__SANITIZE_ADDRESS__)
  const unsigned long long address = std::strtoull(line.c_str(), nullptr, 16);
  return address >= 0x600000000000 && address < 0x640000000000;
#else
  return false;
#endif
}

}  // namespace

std::size_t mappings_of(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos && !belongs_to_sanitizer(line)) ++count;
  return count;
}

std::size_t address_space_bytes() {
  std::ifstream about("/proc/self/statm");
  std::size_t pages = 0;
  about >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

process_footprint process_footprint::now() {
  return {open_descriptors(), mappings_of(" /"), mappings_of(" ---p ")};
}

std::string to_string(const process_footprint& held) {
  return std::to_string(held.descriptors) + " descriptors, " + std::to_string(held.files) +
         " mappings of files, " + std::to_string(held.reserved) + " reserved";
}

}  // namespace shale::test
