// A directory for the files of one test.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace shale::test {

/// The folder of all scratch directories of a test program and of the processes that it starts. It
/// is removed at the program's end, with what is left of processes that ended without destructors.
class scratch_root {
 public:
  /// The program's own, in TMPDIR; or that of the program that has started this one.
  static const std::string& path() {
    static const scratch_root root;
    return root.path_;
  }

 private:
  static constexpr const char* variable = "SHALE_SCRATCH_ROOT";

  scratch_root() {
    if (const char* const inherited = std::getenv(variable)) {
      path_ = inherited;
      return;
    }
    path_ = (std::filesystem::temp_directory_path() / "shale-tests-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr || ::setenv(variable, path_.c_str(), 1) != 0)
      throw std::runtime_error("no folder for scratch directories");
    // As for /tmp: some tests act as another user.
    std::filesystem::permissions(path_,
                                 std::filesystem::perms::all | std::filesystem::perms::sticky_bit);
    maker_ = ::getpid();
  }
  ~scratch_root() {
    std::error_code ignored;
    if (maker_ == ::getpid()) std::filesystem::remove_all(path_, ignored);
  }

  std::string path_;
  pid_t maker_ = 0;
};

/// A new directory in the program's folder or in the given one. The destructor removes it with its
/// contents.
class scratch_directory {
 public:
  explicit scratch_directory(const std::filesystem::path& parent = scratch_root::path()) {
    path_ = (parent / "shale-test-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no scratch directory");
  }
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  /// The names in the directory.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      result.push_back(entry.path().filename());
    return result;
  }

 private:
  std::string path_;
};

/// All bytes of a file.
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Writes a new file each time, because ext4 syncs a file that is truncated and written again.
inline void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace shale::test
