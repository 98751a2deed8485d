#include "format/commit.hpp"

#include <fmt/format.h>

#include "format/bytes.hpp"
#include "format/file_io.hpp"
#include "format/header.hpp"
#include "shale/error.hpp"

namespace shale::format {

slots read_slots(open_file& file, const uuid& id, const std::string& path) {
  slots both;
  for (std::uint32_t i = 0; i < 2; ++i) {
    read_exact(file, superblock_offsets[i], both[i].sector, path);
    both[i].fields = valid(both[i].sector, id, i);
  }
  return both;
}

std::optional<std::uint32_t> newest_slot(const slots& both) noexcept {
  if (!both[0].fields && !both[1].fields) return std::nullopt;
  if (!both[1].fields) return 0;
  if (!both[0].fields) return 1;
  return both[0].fields->generation > both[1].fields->generation ? 0 : 1;
}

std::uint32_t slot_to_write(const slots& both) noexcept {
  return 1 - newest_slot(both).value_or(1);
}

bool unchanged(open_file& file, std::uint32_t which, const slot& before, const std::string& path) {
  superblock_sector now;
  read_exact(file, superblock_offsets[which], now, path);
  return now == before.sector;
}

void require_no_pin_above(std::uint64_t newest, const std::vector<generation_range>& pins,
                          const std::string& path) {
  if (pins.empty() || pins.back().last <= newest) return;
  throw error(
      errc::io, "a generation that a reader holds is gone",
      {"file " + path,
       fmt::format("the newest superblock is of generation {}, a reader holds generation {}",
                   newest, pins.back().last),
       "the device lost a commit: save what that reader sees, then close it and try again"});
}

void rewrite_in_place(open_file& file, const slots& both, const std::string& path) {
  for (std::uint32_t i = 0; i < 2; ++i)
    write_all(file, superblock_offsets[i], both[i].sector, path);
  sync_data(file, path);
}

std::vector<generation_range> protected_generations(const slots& both,
                                                    const std::vector<generation_range>& pins,
                                                    const std::vector<std::uint64_t>& retained) {
  std::vector<generation_range> all = pins;
  for (const slot& each : both)
    if (each.fields) all.push_back({each.fields->generation, each.fields->generation});
  for (const std::uint64_t generation : retained) all.push_back({generation, generation});
  return all;
}

void publish(open_file& file, std::uint32_t which, const superblock& next, const uuid& id,
             const std::string& path) {
  write_all(file, superblock_offsets[which], encode_superblock(next, id, which), path);
  sync_data(file, path);
}

void announce(open_file& file, std::uint64_t generation) noexcept {
  // Whoever reads the word before looking at the superblocks, and waits for it to change, cannot
  // miss a commit: the word differs for 2^32 generations.
  std::byte word[4];
  store(word, static_cast<std::uint32_t>(generation));
  (void)uninterrupted([&] { return file.pwrite(word, live_page_offset); });
  file.wake_word(live_page_offset);
}

void require_supported(const superblock& fields, open_access access, const std::string& path) {
  const std::uint64_t unknown =
      (fields.incompatible & ~known_incompatible_features) |
      (access == open_access::write
           ? fields.read_only_compatible & ~known_read_only_compatible_features
           : 0);
  if (fields.version == superblock_version && unknown == 0) return;
  throw error(
      errc::unsupported, "the container uses features of a later version",
      {"file " + path,
       fmt::format("superblock version {}, incompatible features {:#x}, read-only-compatible "
                   "features {:#x}",
                   fields.version, fields.incompatible, fields.read_only_compatible),
       fmt::format("this build knows version {}, features {:#x} and {:#x}", superblock_version,
                   known_incompatible_features, known_read_only_compatible_features)});
}

}  // namespace shale::format
