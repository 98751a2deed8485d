#include "format/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>

namespace shale::format {

std::uint64_t checksum_data(bytes_view bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

checksum128 checksum_metadata(bytes_view bytes) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::string to_string(const checksum128& checksum) {
  return fmt::format("{:016x}{:016x}", checksum.high, checksum.low);
}

}  // namespace shale::format
