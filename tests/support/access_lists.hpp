// Access lists of files (POSIX ACLs) in the bytes of the system, so that tests need no library for
// them.
#pragma once

#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

namespace shale::test {

/// The names of a file's list, and of the list that new files in a folder get.
inline constexpr const char* list_of_file = "system.posix_acl_access";
inline constexpr const char* list_for_new_files = "system.posix_acl_default";

/// The permissions in each entry of a list.
struct list_entries {
  std::uint32_t owner = 6;
  std::uint32_t named_user = 6;  ///< the user of this process
  std::uint32_t group = 0;
  std::uint32_t mask = 6;
  std::uint32_t others = 0;
};

/// The bytes of such a list: a version, then tag, permissions and number of each entry.
inline std::string access_list_bytes(const list_entries& permissions) {
  std::string bytes;
  const auto put = [&bytes](std::uint32_t value, unsigned count) {
    for (unsigned k = 0; k < count; ++k)
      bytes.push_back(static_cast<char>((value >> (8 * k)) & 0xff));
  };
  const auto add = [&put](std::uint32_t tag, std::uint32_t allowed, std::uint32_t number) {
    put(tag, 2);
    put(allowed, 2);
    put(number, 4);
  };
  constexpr std::uint32_t unnamed = 0xffffffff;
  put(2, 4);
  add(0x01, permissions.owner, unnamed);
  add(0x02, permissions.named_user, ::geteuid());
  add(0x04, permissions.group, unnamed);
  add(0x10, permissions.mask, unnamed);
  add(0x20, permissions.others, unnamed);
  return bytes;
}

/// Sets a list. Returns 0 or the error number, which is EOPNOTSUPP if the file system has no lists.
inline int set_access_list(const std::string& path, const std::string& bytes,
                           const char* list = list_of_file) {
  return ::setxattr(path.c_str(), list, bytes.data(), bytes.size(), 0) == 0 ? 0 : errno;
}

/// The bytes of a file's list; "" if it has none.
inline std::string read_access_list(const std::string& path) {
  char bytes[4096];
  const ssize_t size = ::getxattr(path.c_str(), list_of_file, bytes, sizeof bytes);
  return size > 0 ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace shale::test
