// The commit protocol makes one generation follow another. Any crash leaves the old generation or
// the new one, and no reader's bytes are ever overwritten.
//
// The idea: A generation is reached from one superblock, which is one sector, and a device writes a
// sector whole or not at all. A commit writes everything else first, to space that no generation in
// use refers to, and syncs it. Then one write of a superblock makes the new generation the newest,
// and a second sync makes that durable. There are two slots for superblocks, so that the old
// superblock stays valid until the new one is durable. Two dangers remain. A crash or a failed sync
// may leave pages in memory that the device does not have; commit.1 and commit.6 are about them. A
// reader may come to hold a generation while its space is being reused; commit.2, commit.7 and
// commit.8 are about that.
//
//             begin                                   commit
//   idle --> commit.1 --> commit.2 --> (changes) --> commit.3 --> commit.4 --> commit.5 --> idle
//              |              |             |            |            |
//              +--- refuse ---+--- abort ---+-- poison --+-- poison --+
//
// docs/container-format.md has the steps themselves (section 10), the rules for reusing space (9)
// and the locks (11). The invariants below say what the steps keep, and why.
//
// Invariants
//   commit.1  The writer holds the writer lock from here on. Its base is the valid superblock with
//             the higher generation. If a reader holds a generation above it, that generation was
//             lost, and going on would give its number to other bytes: the writer refuses. It
//             writes the present bytes of both slots again in place, and syncs. A sync only covers
//             pages that became dirty since the last failed sync. Writing the slots again makes
//             them dirty, so the sync proves that the base is durable and that the other slot is on
//             the device as it was read (docs/decisions/0021). If the process has made both slots
//             durable itself, and nobody has changed them since, it knows that already, and goes on
//             without the sync (docs/decisions/0206).
//   commit.2  A range is reused only if its life [born, freed) holds no pinned generation, none of
//             a valid superblock (either slot), and no retained one. Pins are scanned in every
//             transaction, after the lock.
//   commit.3  Data, index pages, catalog, space map and root go to places that no such generation
//             uses. After one sync they are durable, and so is the file's size. Mappings are
//             read-only before they are checksummed, and after the sync they are checked again for
//             faults. The file must still have the generation's length then: otherwise another
//             process has truncated it, and the generation is not published.
//   commit.4  The superblock goes into the invalid slot, if there is one, or else into the slot
//             with the lower generation. Then there is one sync. Until the superblock is written,
//             the old generation is the newest.
//   commit.5  Waiters are woken only now, so that the generation that they find is durable.
//   commit.6  A failed sync is never repeated, and this process begins no more transactions on the
//             file (poison): the kernel may have dropped the pages and forgotten the error. The
//             syncs of a transaction go through a description that is opened under the writer lock
//             and used for nothing else, so that nobody else can receive its errors. A write-back
//             error that a mapping of the transaction received fails the commit and poisons too.
//   commit.7  A reader pins the generation of a superblock, and then reads the slot again. If it
//             has changed, a writer may have scanned before the pin was there, so the reader starts
//             over. A process that goes on reading the generation that it has published pins it
//             before it releases the writer lock: until then no other writer scans.
//   commit.8  A generation's file ends where its predecessor's does, or further on. So all bytes
//             that any reader holds, or may come to hold, end before the larger end of the two
//             valid superblocks. A writer truncates no further. So readers need no lock against
//             truncation, and never wait for a writer, even one that is stopped in the middle. A
//             base that was never published may end further on: while it is pinned, its writer
//             does not truncate, and other writers refuse to begin (commit.1).
//   commit.9  The name must lead to the transaction's file before the superblock is written, and
//             still when it is durable; otherwise nobody who opens the name finds the generation.
//             Header and superblocks must be those that the transaction began with, and the live
//             page must have the random mark that it wrote there; otherwise somebody has written
//             over the file, perhaps with a copy of the same generation, and the new one would
//             describe bytes that are not there.
//   commit.10  A writer may make several generations under one lock, each on the one before, and
//             publish only the newest of them, by commit.3 to commit.5; the others are never
//             published. Generations are published one at a time, while the next ones are made.
//             While generation g is being published, two generations are protected as if a valid
//             superblock named them: g, from the moment when it is chosen, and the generation whose
//             slot g takes, until the sync of that slot has worked. If publishing fails, the writer
//             publishes nothing more. At most `unpublished_max` generations wait at a time
//             (docs/decisions/0185).
//
// tests/format/two_slot_model_test.cpp, and unpublished_model_test.cpp for commit.10, check the
// protocol exhaustively. They also show that it is unsafe to leave out any single part of it.
//
// This file declares the steps that need no state, and writer.hpp those that do. transaction.cpp
// takes the steps of a commit in order; container_file.cpp begins (commit.1), and reads (commit.7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/bytes/generation_set.hpp"
#include "format/bytes/types.hpp"
#include "format/generations/superblock_slots.hpp"
#include "format/os/file_system.hpp"
#include "format/os/pins.hpp"
#include "format/pages/superblock.hpp"

namespace shale::format {

/// commit.4: the slot for the next superblock.
std::uint32_t slot_to_write(const slots& both) noexcept;

/// commit.10: no transaction begins while so many generations are not published.
inline constexpr std::uint64_t unpublished_max = 1024;

/// commit.1: refuses if a reader holds a generation above `newest`. Only the next `unpublished_max`
/// generations can have been lost, because a writer makes the first of its bases durable before it
/// goes on (commit.10). A lock on a later generation has one of two causes: another program holds
/// it, or an older copy was written over the file. A lock of another program on the byte of one of
/// the next generations looks like a pin, unless it is a POSIX lock.
/// Throws   io, busy (a lock that is not a pin)
void require_no_pin_above(std::uint64_t newest, const pin_scan& held, open_file& asking,
                          const std::string& path);

/// commit.9: writes the mark of a transaction into the live page. A mark that stays, as after a
/// kill, means nothing.
/// Throws   io
void write_mark(open_file& file, const uuid& mark, const std::string& path);

/// Whether the live page has the mark.
/// Throws   io
bool has_mark(open_file& file, const uuid& mark, const std::string& path);

/// Erases the mark after an abort (commit.5 erases it too).
void erase_mark(open_file& file) noexcept;

/// commit.1: writes both slots' own bytes again. A sync has to follow.
void rewrite_in_place(open_file& file, const slots& both, const std::string& path);

/// The generations whose bytes no writer may use, by what holds them. A generation that is held
/// twice is in two sets.
struct held_generations {
  generation_set read;       ///< pinned by readers
  generation_set retained;   ///< listed in the tree of retained generations
  generation_set published;  ///< in a valid superblock

  /// All of them together.
  generation_set all() const;
};

/// commit.2: pins, retained generations, valid superblocks.
held_generations protected_generations(const slots& both, const std::vector<generation_range>& pins,
                                       const std::vector<std::uint64_t>& retained);

/// commit.4: writes the superblock into that slot. A sync has to follow.
void write_slot(open_file& file, std::uint32_t number, const superblock& next, const uuid& id,
                const std::string& path);

/// commit.5: changes the word that readers wait on, erases the mark, and wakes them. Never fails,
/// because nothing depends on it.
void announce(open_file& file, std::uint64_t generation) noexcept;

/// The same for a writer that goes on (commit.10): it leaves the mark.
void announce_beside_mark(open_file& file, std::uint64_t generation) noexcept;

}  // namespace shale::format
