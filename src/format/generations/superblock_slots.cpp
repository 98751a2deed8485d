#include "format/generations/superblock_slots.hpp"

#include <fmt/format.h>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/file_layout.hpp"
#include "format/os/file_io.hpp"
#include "format/pages/header.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

[[noreturn]] void throw_no_superblock(open_file& file, const uuid& id, const std::string& path) {
  header_page page;
  read_exact(file, 0, page, path);
  if (const header now = decode_header(page, path); now.id != id)
    throw error(errc::io, "another container was written over the file",
                {"file " + path, "opened as " + to_string(id) + ", now " + to_string(now.id),
                 "open it anew"});
  throw error(
      errc::corrupt, "no superblock is valid",
      {"file " + path,
       fmt::format("looked at bytes {} and {}", superblock_offsets[0], superblock_offsets[1]),
       "both are written again by every commit: the file was damaged, or is not a container"});
}

}  // namespace

slots read_slots(open_file& file, const uuid& id, const std::string& path) {
  slots both;
  for (std::uint32_t i = 0; i < 2; ++i) {
    read_exact(file, superblock_offsets[i], both[i].sector, path);
    both[i].fields = decode_superblock(both[i].sector, id, i);
  }
  return both;
}

std::optional<std::uint32_t> newest_slot(const slots& both) noexcept {
  if (!both[0].fields && !both[1].fields) return std::nullopt;
  if (!both[1].fields) return 0;
  if (!both[0].fields) return 1;
  return both[0].fields->generation > both[1].fields->generation ? 0 : 1;
}

std::string lost_commit::text() const {
  return fmt::format(
      "superblock slot {}, byte {}: damaged; a later generation than {} was committed, and cannot "
      "be found without it",
      slot, superblock_offsets[slot], newest);
}

std::optional<lost_commit> find_lost_commit(open_file& file, const uuid& id,
                                            const std::string& path) {
  const auto look = [&]() -> std::optional<lost_commit> {
    std::byte word[4];  // before the slots: a commit in between makes them newer, not older
    read_exact(file, live_page_offset, word, path);
    const slots both = read_slots(file, id, path);
    const auto newest = newest_slot(both);
    if (!newest || both[1 - *newest].fields) return std::nullopt;
    const std::uint64_t found = both[*newest].fields->generation;
    const std::uint32_t ahead = load<std::uint32_t>(word) - static_cast<std::uint32_t>(found);
    if (ahead == 0 || ahead > UINT32_MAX / 2) return std::nullopt;
    return lost_commit{1 - *newest, found};
  };
  // The loss must be found twice, because a slot that a writer is writing at this moment is not
  // valid either.
  const auto lost = look();
  return lost && look() == lost ? lost : std::nullopt;
}

void require_no_lost_commit(open_file& file, const uuid& id, const std::string& path) {
  if (const auto lost = find_lost_commit(file, id, path))
    throw error(errc::corrupt, "the newest commit cannot be found",
                {"file " + path, lost->text(),
                 fmt::format("restore the file from a copy, or take generation {} out of it: "
                             "open_mode::salvage, or `shale convert --salvage`",
                             lost->newest)});
}

slots read_settled_slots(open_file& file, const uuid& id, const std::string& path,
                         lost_commits policy) {
  slots both = read_slots(file, id, path);
  for (int round = 0; !newest_slot(both) && round < reader_rounds_max; ++round) {
    const slots again = read_slots(file, id, path);
    const bool same = again[0].sector == both[0].sector && again[1].sector == both[1].sector;
    both = again;
    if (same) break;
  }
  const std::uint32_t newest = require_newest_slot(both, file, id, path);
  if (policy == lost_commits::refuse && !both[1 - newest].fields)
    require_no_lost_commit(file, id, path);
  return both;
}

std::uint32_t require_newest_slot(const slots& both, open_file& file, const uuid& id,
                                  const std::string& path) {
  const auto newest = newest_slot(both);
  if (!newest) throw_no_superblock(file, id, path);
  return *newest;
}

bool unchanged(open_file& file, std::uint32_t number, const slot& before, const std::string& path) {
  superblock_sector now;
  read_exact(file, superblock_offsets[number], now, path);
  return now == before.sector;
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
