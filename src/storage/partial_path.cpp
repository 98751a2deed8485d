#include "storage/partial_path.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "shale/error.hpp"

namespace shale::detail {

namespace {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    // Right after boot there may be none yet; time and process are different enough then.
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    number = static_cast<std::uint64_t>(now.tv_nsec) << 32 ^ static_cast<std::uint64_t>(::getpid());
  }
  return number;
}

}  // namespace

std::string behind_links(std::string path) {
  constexpr int most_links = 40;  // as many as the kernel follows
  for (int followed = 0; followed <= most_links; ++followed) {
    std::error_code is_no_link;
    const std::filesystem::path to = std::filesystem::read_symlink(path, is_no_link);
    if (is_no_link) return path;
    path = std::filesystem::path(path).parent_path() / to;
  }
  throw error::from_errno(errc::io, "too many symbolic links", ELOOP, {"file " + path});
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string partial_path(const std::string& target) {
  constexpr std::size_t longest_kept = 100;  // of the 143 to 255 bytes that file systems allow
  const std::string directory = directory_of(target);
  const std::string name = target.substr(target.rfind('/') + 1);
  return fmt::format("{}/.{}.{:016x}.partial", directory == "/" ? "" : directory,
                     name.substr(0, longest_kept), random_number());
}

}  // namespace shale::detail
