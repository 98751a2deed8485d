// Where a file is made that takes the place of another once it is complete.
#pragma once

#include <string>

namespace shale::detail {

/// Where a symbolic link leads, so that the link stays and its file is what gets replaced; that
/// file need not be there yet. Other paths as they are.
/// Throws   io (too many links)
std::string behind_links(std::string path);

/// The folder that the path's last part lies in.
std::string directory_of(const std::string& path);

/// A name in the target's folder for the file that will replace it: `.NAME.RANDOM.partial`, with as
/// much of its name as leaves room for the rest. The random part keeps writers apart that share a
/// folder but no process table.
std::string partial_path(const std::string& target);

}  // namespace shale::detail
