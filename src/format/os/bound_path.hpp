// A path, resolved once: a name in a directory that is held open.
#pragma once

#include <memory>
#include <string>

#include "format/os/file_system.hpp"

namespace shale::format {

/// Leads to the same name in the same directory for as long as a copy lives. The working directory,
/// links in the path and the directory's own name may change meanwhile (docs/decisions/0090).
/// Another file may take the name, so every call looks it up again.
/// Threads  safe
class bound_path {
 public:
  /// Costs one descriptor, which copies share.
  /// Throws   not_found, access_denied, io
  bound_path(file_system& files, const std::string& path);

  /// The file system that must be asked about `name`.
  file_system& files() const noexcept { return own_ ? *own_ : *files_; }
  const std::string& name() const noexcept { return name_; }

  /// The path as the caller gave it, for messages.
  const std::string& shown() const noexcept { return shown_; }

 private:
  file_system* files_;
  std::shared_ptr<file_system> own_;
  std::string name_;
  std::string shown_;
};

}  // namespace shale::format
