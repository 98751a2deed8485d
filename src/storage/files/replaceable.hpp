// Finds out whether a file can get a name at the end, before the work that fills it. The system
// tells most of the obstacles only when the file is renamed.
#pragma once

#include <sys/stat.h>

#include <string>

namespace shale::detail {

/// Throws if the system would refuse to give the name of the file `about` to another file. `path`
/// leads to that file; its last part is no symbolic link. What the system does not tell is no
/// obstacle.
/// Throws   invalid_argument (a mount point), access_denied (an immutable or append-only file, or
///          another user's file in a sticky folder)
void require_replaceable(const std::string& path, const struct stat& about);

/// Throws if names can be added to the folder, but not changed. `target` is named by the message.
/// Throws   access_denied (an append-only folder)
void require_renames(const std::string& folder, const std::string& target);

/// Whether the system keeps a user from replacing a file because its folder is sticky, as /tmp is.
/// The right to replace files of others (CAP_FOWNER) is taken to be root's, and nobody else's.
bool is_kept_by_sticky_folder(const struct stat& folder, const struct stat& file,
                              uid_t user) noexcept;

}  // namespace shale::detail
