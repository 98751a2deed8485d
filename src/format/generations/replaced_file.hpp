// The errors for a container whose name leads to another file: somebody has replaced, renamed or
// removed the file. (superblock_slots finds a container that was copied over the file.)
#pragma once

#include <optional>
#include <string>

#include "format/bytes/types.hpp"
#include "format/generations/shared_file.hpp"
#include "shale/error.hpp"

namespace shale::format {

/// Thrown by calls that find another container under the name.
class container_replaced : public error {
 public:
  using error::error;
};

/// Throws   container_replaced unless `now`, the file that has the name, holds the container
///          `before`
void require_same_container(const shared_file& now, const uuid& before);

/// commit.9: checks whether the name still leads to `own`, which a transaction is changing. Returns
/// the error if it does not; `outcome` says in it what has become of the transaction's changes.
std::optional<error> find_replaced(const shared_file& own, const char* outcome);

/// The error for a name that leads to another file whenever it is looked up.
error name_changes_too_often(const std::string& path);

}  // namespace shale::format
