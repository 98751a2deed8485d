// Mounts small file systems that only this process and its children see. The mounts, and the loop
// devices under them, disappear when the last of these processes ends, however it ends.
#pragma once

#include <cstddef>
#include <string>

namespace shale::test {

/// Gives this process a private mount namespace. Throws unavailable.
void enter_private_mounts();

/// Mount a file system of `bytes` on the directory `folder`. Throw unavailable.
void mount_tmpfs(const std::string& folder, std::size_t bytes, const std::string& options = {});
void mount_ext4(const std::string& image, const std::string& folder, std::size_t bytes);

/// Mounts the file system that an image has. Throws unavailable.
void mount_image(const std::string& image, const std::string& folder);

/// Makes the directory if it does not exist; returns its path.
std::string make_directory(const std::string& path);

/// Unmounts the file system; false if something in it is still in use.
bool unmount(const std::string& folder);

}  // namespace shale::test
