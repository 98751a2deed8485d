#include "storage/test_support.hpp"

#include <sys/stat.h>

#include <fstream>
#include <stdexcept>

namespace shale::test {

void write_pattern(const std::string& path, std::size_t bytes) {
  std::vector<char> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<char>(pattern(i));
  std::ofstream(path, std::ios::binary).write(all.data(), static_cast<std::streamsize>(bytes));
}

std::vector<unsigned char> file_contents(const std::string& path) {
  const std::string text = read_file(path);
  return {text.begin(), text.end()};
}

std::size_t file_size(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) throw std::runtime_error("no file " + path);
  return static_cast<std::size_t>(about.st_size);
}

int run_peer(const std::vector<std::string>& arguments) {
  peer other(arguments);
  return other.wait();
}

}  // namespace shale::test
