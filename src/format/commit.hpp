// The commit protocol: how one generation follows another so that any crash leaves the old one or
// the new one, and no reader's bytes are ever overwritten.
//
//             begin                                   commit
//   idle --> commit.1 --> commit.2 --> (changes) --> commit.3 --> commit.4 --> commit.5 --> idle
//              |              |             |            |            |
//              +--- refuse ---+--- abort ---+-- poison --+-- poison --+
//
// Invariants
//   commit.1  The writer holds the writer lock from here on. It takes the valid superblock with the
//             higher generation; if a reader holds a generation above it, that one was lost, and
//             going on would give its number to other bytes: refuse. It writes both slots in place
//             again, whatever they hold, and syncs: a sync only proves what was dirtied since the
//             last failed one, so this is what makes its base durable, and the other slot stay what
//             it looks like (docs/decisions/0021).
//   commit.2  A range is reused only if its life [born, freed) holds no pinned generation, none of
//             a valid superblock (either slot), and no retained one. Pins are scanned in every
//             transaction, after the lock.
//   commit.3  Data, index pages, catalog, space map and root go to places that no such generation
//             uses, and something to the end of a file that grows, which makes its size durable;
//             then one sync. Mappings are read-only before they are checksummed; whether a fault
//             hit one is checked again after the sync.
//   commit.4  The superblock goes into the slot that is not valid, or else holds the lower
//             generation; then one sync. Until it is there the old generation is the newest.
//   commit.5  Only now are waiters woken: what they find is durable.
//   commit.6  A failed sync is never repeated; this process begins no more transactions on the file
//             (poison), because the kernel may have dropped the pages and forgotten the error.
//   commit.7  A reader pins the generation of a superblock and then reads the slot again: if it
//             changed, a writer may have scanned before the pin was there, so it starts over.
//
// tests/format/two_slot_model_test.cpp checks the protocol exhaustively, and that leaving any of
// this out is unsafe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/file_system.hpp"
#include "format/superblock.hpp"
#include "format/types.hpp"

namespace shale::format {

/// One of the two places for superblocks, as read.
struct slot {
  superblock_sector sector{};
  std::optional<superblock> fields;  ///< nothing: not valid
};

using slots = std::array<slot, 2>;

/// Reads both slots.
slots read_slots(open_file& file, const uuid& id, const std::string& path);

/// The slot of the newest generation; nothing if neither is valid.
std::optional<std::uint32_t> newest_slot(const slots& both) noexcept;

/// commit.4: where the next superblock goes.
std::uint32_t slot_to_write(const slots& both) noexcept;

/// commit.7: whether the slot still holds the same bytes.
bool unchanged(open_file& file, std::uint32_t which, const slot& before, const std::string& path);

/// commit.1: refuses if anybody holds a generation above `newest`.
/// Throws   io
void require_no_pin_above(std::uint64_t newest, const std::vector<generation_range>& pins,
                          const std::string& path);

/// commit.1: writes both slots' own bytes again, and syncs.
void rewrite_in_place(open_file& file, const slots& both, const std::string& path);

/// commit.2: pins, valid superblocks, retained generations.
std::vector<generation_range> protected_generations(const slots& both,
                                                    const std::vector<generation_range>& pins,
                                                    const std::vector<std::uint64_t>& retained);

/// commit.4: writes and syncs.
void publish(open_file& file, std::uint32_t which, const superblock& next, const uuid& id,
             const std::string& path);

/// commit.5: moves the word that readers wait on, and wakes them. Never fails: nothing depends on
/// it.
void announce(open_file& file, std::uint64_t generation) noexcept;

/// Throws   unsupported: the superblock is of a version, or needs features, that this build does
/// not
///          know; for writing, more is needed than for reading
void require_supported(const superblock& fields, open_access access, const std::string& path);

}  // namespace shale::format
