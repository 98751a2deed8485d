// Chooses the path of a temporary file that replaces another file when it is complete.
#pragma once

#include <string>

namespace shale::detail {

/// The number of symbolic links that are followed from a name to its file: as many as the kernel
/// follows.
inline constexpr int links_followed_max = 40;

/// The path that `path` leads to if it is a symbolic link, so that the link stays and the file that
/// it leads to is replaced. That file need not exist. Other paths are returned unchanged.
/// Throws   io (too many links), invalid_argument (a link of /proc to a regular file without a
///          name)
std::string path_after_links(std::string path);

/// The folder of the path's last part.
std::string directory_of(const std::string& path);

/// A path in the target's folder for the file that will replace it: `.NAME.RANDOM.partial`, with as
/// much of the name as fits. The random part separates writers that share a folder but not a
/// process table.
std::string partial_path(const std::string& target);

}  // namespace shale::detail
