// One transaction on a container that a command names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "shale/container.hpp"

namespace shale::tools {

/// Opens the container at `file` for one transaction and lets `change` fill it, then commits. A
/// container that does not exist yet appears only when `change` has succeeded.
/// Returns  the new generation
std::uint64_t change_container(const std::string& file,
                               const std::function<void(transaction&)>& change);

/// The same for a container that has to be there.
/// Throws   not_found
std::uint64_t change_existing_container(const std::string& file,
                                        const std::function<void(transaction&)>& change);

}  // namespace shale::tools
