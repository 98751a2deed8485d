// Reads the two slots for superblocks, and finds the newest generation. (transaction/commit.cpp
// chooses the slot that is written.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "format/bytes/types.hpp"
#include "format/os/file_system.hpp"
#include "format/pages/superblock.hpp"

namespace shale::format {

/// One of the two places, as it was read.
struct slot {
  superblock_sector sector{};
  std::optional<superblock> fields;  ///< nothing: not valid
};

using slots = std::array<slot, 2>;

/// The most times that a reader starts over because a writer was faster. Then it reports the file
/// as broken. A reader starts over only if a whole commit has come between two of its reads.
inline constexpr int reader_rounds_max = 1000;

/// Reads both slots. Throws io.
slots read_slots(open_file& file, const uuid& id, const std::string& path);

/// A commit that was reported, and that no superblock describes any more.
struct lost_commit {
  std::uint32_t slot = 0;    ///< the slot that is damaged
  std::uint64_t newest = 0;  ///< the newest generation that a superblock describes

  friend bool operator==(const lost_commit&, const lost_commit&) = default;

  /// Describes the damage and its place.
  std::string text() const;
};

/// Whether readers refuse or accept a file in which a commit is lost.
enum class lost_commits : std::uint8_t { refuse, accept };

/// Finds out whether the newest superblock is damaged. A power cut may tear a superblock, but only
/// that of a commit that was not reported. The live page announces only commits that are durable:
/// if it is ahead of the only valid superblock, the commit that it announces is lost.
/// Throws   io
std::optional<lost_commit> find_lost_commit(open_file& file, const uuid& id,
                                            const std::string& path);

/// Throws   corrupt: a commit is lost; io
void require_no_lost_commit(open_file& file, const uuid& id, const std::string& path);

/// Reads both slots again until at least one is valid, because a slot is invalid while a writer
/// writes it. If two reads in a row give the same bytes and neither slot is valid, the file is
/// damaged.
/// Throws   corrupt (no superblock is valid; a commit is lost, if that is refused), io (another
///          container was written over the file)
slots read_settled_slots(open_file& file, const uuid& id, const std::string& path,
                         lost_commits policy);

/// The slot of the newest generation; nothing if neither is valid.
std::optional<std::uint32_t> newest_slot(const slots& both) noexcept;

/// The slot of the newest generation.
/// Throws   as read_settled_slots
std::uint32_t require_newest_slot(const slots& both, open_file& file, const uuid& id,
                                  const std::string& path);

/// commit.7: returns whether the slot still holds the same bytes.
bool unchanged(open_file& file, std::uint32_t number, const slot& before, const std::string& path);

/// Throws   unsupported: the superblock is of a version, or needs features, that this build does
///          not know. Writing needs more of them than reading
void require_supported(const superblock& fields, open_access access, const std::string& path);

}  // namespace shale::format
