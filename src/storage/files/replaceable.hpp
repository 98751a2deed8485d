// Finds out, before a file is filled, whether it will be able to take its name when it is complete.
// The system reports most obstacles only when the file is renamed.
#pragma once

#include <sys/stat.h>

#include <string>

namespace shale::detail {

/// Throws if the system would refuse to give the name `path` to another file. `about` describes the
/// file that has the name now; the last part of `path` is no symbolic link. Obstacles that the
/// system does not tell are not found.
/// Throws   invalid_argument (a mount point), access_denied (an immutable or append-only file, or
///          another user's file in a sticky folder)
void require_replaceable(const std::string& path, const struct stat& about);

/// Throws if names can be added to the folder, but not changed. The message names `target`.
/// Throws   access_denied (an append-only folder)
void require_renames(const std::string& folder, const std::string& target);

/// Whether the system keeps a user from replacing a file because its folder is sticky, as /tmp is.
/// This assumes that root, and nobody else, has the right to replace files of others (CAP_FOWNER).
bool is_kept_by_sticky_folder(const struct stat& folder, const struct stat& file,
                              uid_t user) noexcept;

}  // namespace shale::detail
