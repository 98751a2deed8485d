// Hands the rights on a file on to a new file that replaces it, so that nobody gains a right.
//
// A file has permission bits, and may have an access list (a POSIX ACL) with rights of further
// users and groups. In a file with a list, the group bits are not the rights of the group. They are
// the most that the list allows to anybody but the owner and `others`. So the same bits on a file
// without the list would admit the whole group.
#pragma once

#include <sys/stat.h>

#include <string>

namespace shale::detail {

/// The access list of a file, in the format of the system. An object can also say that the file has
/// no list, or that its list is unknown. A new object says the latter.
class access_list {
 public:
  /// The list of an open file.
  /// Throws   std::bad_alloc
  static access_list of(int descriptor);

  /// The list of the file with this name in a folder that is held open. A symbolic link is not
  /// followed. The list is unknown if the name does not lead to the file `about` any more.
  /// Throws   std::bad_alloc
  static access_list of(int folder, const char* name, const struct stat& about);

  /// Whether it is known that the file has no list.
  bool is_absent() const noexcept { return is_known_ && bytes_.empty(); }

  /// Replaces the list of an open file by this one, and its permission bits by those that this list
  /// has. If this says that there is no list, the file's list is removed.
  /// Returns  false if that failed, or if the list is unknown
  bool give_to(int descriptor) const noexcept;

  bool operator==(const access_list&) const = default;

 private:
  bool is_known_ = false;
  std::string bytes_;  // empty if there is no list
};

/// What a file allows, and to whom.
struct file_rights {
  struct stat status {};  // owner, group and permission bits
  access_list list;
};

/// Gives the open file `made`, whose group is `group`, the bits `permissions` and the access list
/// of the file that it replaces. The replaced file must have these bits too, and only the owner of
/// `made` may use it before this call. If the two groups differ, group and others get only the bits
/// that both would get. Only the owner gets bits if the list is unknown or cannot be set, or if
/// there is a list and the groups differ.
void give_rights(int made, gid_t group, const file_rights& replaced, mode_t permissions) noexcept;

}  // namespace shale::detail
