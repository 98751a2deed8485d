#include "storage/files/partial_path.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "shale/error.hpp"

namespace shale::detail {

namespace {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    // Right after boot there may be no random numbers yet; time and process number are different
    // enough.
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    number = static_cast<std::uint64_t>(now.tv_nsec) << 32 ^ static_cast<std::uint64_t>(::getpid());
  }
  return number;
}

bool lies_in_proc(const std::filesystem::path& link) {
  const std::string directory = link.parent_path().empty() ? "." : link.parent_path().string();
  struct statfs status {};
  return ::statfs(directory.c_str(), &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

// A link in /proc leads to an open file, whatever its text says. The text is a usable name only if
// it leads to the same file. A file without a name (a memfd, a removed file) cannot be replaced.
bool leads_to_its_text(const std::string& link, const std::filesystem::path& text) {
  if (!lies_in_proc(link)) return true;
  struct stat file {};
  struct stat named {};
  if (::stat(link.c_str(), &file) != 0) return true;
  if (::stat(text.c_str(), &named) == 0 && named.st_dev == file.st_dev &&
      named.st_ino == file.st_ino)
    return true;
  if (S_ISREG(file.st_mode))
    throw error(
        errc::invalid_argument, "a file without a name cannot be replaced",
        {"file " + link, "it leads to '" + text.filename().string() + "', which is in no folder",
         "give a path in a folder, or write through the descriptor"});
  return false;  // for example a pipe
}

}  // namespace

std::string path_after_links(std::string path) {
  for (int followed = 0; followed <= links_followed_max; ++followed) {
    std::error_code is_no_link;
    const std::filesystem::path to = std::filesystem::read_symlink(path, is_no_link);
    if (is_no_link) return path;
    std::string next = std::filesystem::path(path).parent_path() / to;
    if (!leads_to_its_text(path, next)) return path;
    path = std::move(next);
  }
  throw error::from_errno(errc::io, "too many symbolic links", ELOOP, {"file " + path});
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string partial_path(const std::string& target) {
  constexpr std::size_t longest_kept = 100;  // file systems allow 143 to 255 bytes
  const std::string directory = directory_of(target);
  const std::string name = target.substr(target.rfind('/') + 1);
  return fmt::format("{}/.{}.{:016x}.partial", directory == "/" ? "" : directory,
                     name.substr(0, longest_kept), random_number());
}

}  // namespace shale::detail
