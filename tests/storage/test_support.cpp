#include "storage/test_support.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace shale::test {

void write_pattern(const std::string& path, std::size_t bytes) {
  std::vector<char> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<char>(pattern(i));
  std::ofstream(path, std::ios::binary).write(all.data(), static_cast<std::streamsize>(bytes));
}

std::vector<unsigned char> bytes_of_file(const std::string& path) {
  const std::string text = read_file(path);
  return {text.begin(), text.end()};
}

std::size_t file_size(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) throw std::runtime_error("no file " + path);
  return static_cast<std::size_t>(about.st_size);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const all = ::opendir("/proc/self/fd");
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

std::size_t mappings_of(const std::string& what) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find(what) != std::string::npos) ++count;
  return count;
}

std::size_t address_space_bytes() {
  std::ifstream about("/proc/self/statm");
  std::size_t pages = 0;
  about >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

int run_peer(const std::vector<std::string>& arguments) {
  peer other(arguments);
  return other.wait();
}

}  // namespace shale::test
