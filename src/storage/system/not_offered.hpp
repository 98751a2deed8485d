// Tells calls that the system does not have from calls that fail.
#pragma once

#include <cerrno>

namespace shale::detail {

/// Whether a call failed because the system or a sandbox does not offer it.
inline bool is_not_offered(int error_number) noexcept {
  return error_number == ENOSYS || error_number == EPERM;
}

}  // namespace shale::detail
