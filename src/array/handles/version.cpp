#include "shale/version.hpp"

#include "format/pages/superblock.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"

namespace shale {

std::string_view version() noexcept { return SHALE_VERSION; }

int format_version() noexcept { return static_cast<int>(format::superblock_version); }

std::string_view instruction_set() {
  ops::check_isa();
  return ops::name(ops::active_isa());
}

}  // namespace shale
