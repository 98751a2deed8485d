// Runs one transaction on a container.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shale/container.hpp"

namespace shale::tools {

/// Runs `change` in a transaction on the container at `file` and commits it. A container that does
/// not exist yet is created, and appears only after `change` has succeeded.
/// Returns  the new generation
std::uint64_t change_container(const std::string& file,
                               const std::function<void(transaction&)>& change);

/// Runs `change` in a transaction on a container that must exist.
/// Returns  the new generation
/// Throws   not_found
std::uint64_t change_existing_container(const std::string& file,
                                        const std::function<void(transaction&)>& change);

/// Replaces the container at `file` by a new one that `fill` fills. The writer lock of the old
/// container is held throughout. Permissions, owner and group stay as they are.
/// Returns  one line each for the owner and the group, if it could not be kept because only root
///          may change it
/// Throws   not_found
std::vector<std::string> replace_container(const std::string& file,
                                           const std::function<void(transaction&)>& fill);

}  // namespace shale::tools
