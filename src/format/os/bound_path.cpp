#include "format/os/bound_path.hpp"

#include "format/os/file_io.hpp"
#include "storage/files/whole_path.hpp"

namespace shale::format {

bound_path::bound_path(file_system& files, const std::string& path)
    : files_(&files), name_(path), shown_(path) {
  shale::detail::require_whole_path(path);
  const os_result result = uninterrupted([&] { return files.bind(path, own_, name_); });
  if (result < 0) throw opening_failure("cannot open file", result, path);
}

}  // namespace shale::format
