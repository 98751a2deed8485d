// Small file systems that only this process and its children see. The mounts, and the loop devices
// under them, go with the last of these processes, however it ends.
#pragma once

#include <cstddef>
#include <string>

namespace shale::test {

/// Gives this process mounts of its own. Throws unavailable.
void enter_private_mounts();

/// Mounts file systems of `bytes` on the directory `where`. Throw unavailable.
void mount_tmpfs(const std::string& where, std::size_t bytes, const std::string& options = {});
void mount_ext4(const std::string& image, const std::string& where, std::size_t bytes);

/// Makes the directory, unless it is there; its path.
std::string make_directory(const std::string& path);

/// Whether the file system could be unmounted: nothing in it was in use any more.
bool unmount(const std::string& where);

}  // namespace shale::test
