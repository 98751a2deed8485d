#include "storage/pool/heap/size_classes.hpp"

#include <algorithm>

namespace shale::detail {

std::size_t block_unit_bytes() noexcept { return std::max(granule_bytes, system_page_bytes()); }

}  // namespace shale::detail
