#include "format/bytes/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "shale/error.hpp"

namespace shale::format {
namespace {

XXH3_state_t* typed(void* state) noexcept { return static_cast<XXH3_state_t*>(state); }

checksum128 halves(const XXH128_hash_t& hash) noexcept { return {hash.low64, hash.high64}; }

}  // namespace

std::uint64_t checksum_data(bytes_view bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

checksum128 checksum_metadata(bytes_view bytes) noexcept {
  return halves(XXH3_128bits(bytes.data(), bytes.size()));
}

checksum_state::checksum_state() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw error(errc::out_of_memory, "no memory for a checksum");
}

checksum_state::~checksum_state() { XXH3_freeState(typed(state_)); }

data_checksum::data_checksum() { XXH3_64bits_reset(typed(state_)); }

void data_checksum::add(bytes_view bytes) noexcept {
  XXH3_64bits_update(typed(state_), bytes.data(), bytes.size());
}

std::uint64_t data_checksum::value() const noexcept { return XXH3_64bits_digest(typed(state_)); }

metadata_checksum::metadata_checksum() { XXH3_128bits_reset(typed(state_)); }

void metadata_checksum::add(bytes_view bytes) noexcept {
  XXH3_128bits_update(typed(state_), bytes.data(), bytes.size());
}

checksum128 metadata_checksum::value() const noexcept {
  return halves(XXH3_128bits_digest(typed(state_)));
}

std::string to_string(const checksum128& checksum) {
  return fmt::format("{:016x}{:016x}", checksum.high, checksum.low);
}

}  // namespace shale::format
