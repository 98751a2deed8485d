// Writers that publish only some of their generations (commit.10 of
// src/format/transaction/commit.hpp) as a state machine, explored exhaustively.
//
// There are one process that holds the writer lock, and one reader. In the process, transactions
// follow each other, and another thread publishes meanwhile. Each of their steps may come between
// any two of the others. The kernel writes superblocks back, a sync may fail, after which the
// kernel may read a slot from the device again, and the power may be cut at any moment.
// (two_slot_model_test has the rest: writers that die and are replaced, commits that are lost, ends
// of files.)
//
// A transaction uses the space of every generation that it does not protect, whether it is
// committed or aborted. Two generations were published before the exploration begins. These states
// are unsafe:
//
//   - The reader holds a generation whose space was used.
//   - After a power cut, no superblock is valid, the newest one is of a generation whose space was
//     used or that was never durable, or it is older than one that was reported.
//
// Each mutation leaves out one part of the protocol, and the model must find it unsafe.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace shale {
namespace {

enum class left_out : std::uint8_t {
  nothing,
  chosen,      // the generation that is being published does not count as one of a superblock
  taken_slot,  // the generation whose superblock is going to be overwritten does not count
  note_first,  // the pins are scanned before the superblocks are noted
  late_note    // the new superblock is noted in place of the old one before it is durable
};

constexpr std::uint8_t generations = 6;
constexpr std::uint8_t torn = 0;  // no generation: an invalid superblock

using set = std::uint8_t;  // bit i: generation i

constexpr set bit(std::uint8_t generation) { return static_cast<set>(1u << generation); }

enum class transaction_at : std::uint8_t { outside, noted, scanned, begun, written };
enum class publisher_at : std::uint8_t { idle, chosen, synced, tearing, written };
enum class reader_at : std::uint8_t { outside, read_one, read_both, pinned, accepted };

struct world {
  std::array<std::uint8_t, 2> slot{1, 2};     // in the cache
  std::array<set, 2> device{bit(1), bit(2)};  // what the device may hold there
  std::array<std::uint8_t, 2> known{1, 2};    // what the writer notes of the slots
  std::uint8_t base = 2;                      // the last generation that was written
  std::uint8_t chosen = torn;                 // the generation that is being published
  set held = 0;                               // what the transaction protects
  set used = 0;                               // generations whose space was used
  set durable = bit(1) | bit(2);              // generations whose data is on the device
  std::uint8_t reported = 2;                  // the last generation that was reported
  std::uint8_t failed = 0;                    // publishing has
  transaction_at transaction = transaction_at::outside;
  publisher_at publisher = publisher_at::idle;
  reader_at reader = reader_at::outside;
  std::uint8_t best = torn;  // the reader's generation

  bool operator==(const world& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};

static_assert(std::has_unique_object_representations_v<world>);  // compared and hashed as bytes

struct world_hash {
  std::size_t operator()(const world& state) const noexcept {
    std::uint64_t hash = 14695981039346656037ull;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&state);
    for (std::size_t i = 0; i < sizeof state; ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
    return hash;
  }
};

// Describes why a state is unsafe; "" if it is safe.
std::string problem(const world& in) {
  if (in.reader == reader_at::accepted && (in.used & bit(in.best)) != 0)
    return "a reader's bytes were overwritten";
  for (std::uint8_t a = 0; a <= generations; ++a)
    for (std::uint8_t b = 0; b <= generations; ++b) {
      if ((in.device[0] & bit(a)) == 0 || (in.device[1] & bit(b)) == 0) continue;
      const std::uint8_t top = std::max(a, b);
      if (top == torn) return "power cut: no superblock is valid";
      if ((in.used & bit(top)) != 0) return "power cut: the newest was overwritten";
      if ((in.durable & bit(top)) == 0) return "power cut: the newest was never durable";
      if (top < in.reported) return "power cut: a reported commit is gone";
    }
  return "";
}

template <class Visit>
void transact(const world& in, left_out what, Visit&& visit) {
  world next = in;
  const auto taken = static_cast<std::size_t>(in.known[0] < in.known[1] ? 0 : 1);
  const bool is_pinned = in.reader == reader_at::pinned || in.reader == reader_at::accepted;
  const set pins = is_pinned ? bit(in.best) : set{0};
  set noted = bit(in.known[1 - taken]);
  if (what != left_out::taken_slot || in.chosen == torn) noted |= bit(in.known[taken]);
  if (what != left_out::chosen && in.chosen != torn) noted |= bit(in.chosen);
  switch (in.transaction) {
    case transaction_at::outside:
      if (in.base == generations || in.failed != 0) break;
      next.held = what == left_out::note_first ? pins : noted;
      next.transaction =
          what == left_out::note_first ? transaction_at::scanned : transaction_at::noted;
      visit(next);
      break;
    case transaction_at::noted:
      next.held |= pins;
      next.transaction = transaction_at::begun;
      visit(next);
      break;
    case transaction_at::scanned:
      next.held |= noted;
      next.transaction = transaction_at::begun;
      visit(next);
      break;
    case transaction_at::begun:
      for (std::uint8_t g = 1; g < in.base; ++g)
        if ((in.held & bit(g)) == 0) next.used |= bit(g);
      next.held = 0;
      next.transaction = transaction_at::outside;
      visit(next);  // aborted
      next.transaction = transaction_at::written;
      visit(next);
      break;
    case transaction_at::written:
      if (in.failed == 0) ++next.base;
      next.transaction = transaction_at::outside;
      visit(next);
      break;
  }
}

template <class Visit>
void publish(const world& in, left_out what, Visit&& visit) {
  world next = in;
  const auto taken = static_cast<std::size_t>(in.known[0] < in.known[1] ? 0 : 1);
  const auto fail = [&] {
    next = in;
    next.failed = 1;
    next.publisher = publisher_at::idle;
    visit(next);
  };
  switch (in.publisher) {
    case publisher_at::idle:
      if (in.failed != 0 || in.base <= std::max(in.known[0], in.known[1])) break;
      next.chosen = in.base;
      next.publisher = publisher_at::chosen;
      visit(next);
      break;
    case publisher_at::chosen:
      next.durable |= bit(in.chosen);
      next.publisher = publisher_at::synced;
      visit(next);
      fail();
      break;
    case publisher_at::synced:
      next.slot[taken] = torn;
      next.device[taken] |= bit(torn);
      next.publisher = publisher_at::tearing;
      visit(next);
      break;
    case publisher_at::tearing:
      next.slot[taken] = in.chosen;
      next.device[taken] |= bit(in.chosen);
      next.publisher = publisher_at::written;
      if (what == left_out::late_note) {
        next.known[taken] = in.chosen;
        next.chosen = torn;
      }
      visit(next);
      break;
    case publisher_at::written:
      for (std::size_t i = 0; i < 2; ++i) next.device[i] = bit(in.slot[i]);
      next.known = in.slot;
      next.reported = std::max(in.slot[0], in.slot[1]);
      next.chosen = torn;
      next.publisher = publisher_at::idle;
      visit(next);
      fail();
      break;
  }
}

// The kernel writes a slot back, or, if it could not be written, reads it from the device again.
template <class Visit>
void kernel(const world& in, Visit&& visit) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (in.device[i] == bit(in.slot[i])) continue;
    for (std::uint8_t each = 0; each <= generations; ++each) {
      if ((in.device[i] & bit(each)) == 0 || (in.failed == 0 && each != in.slot[i])) continue;
      world next = in;
      next.slot[i] = each;
      next.device[i] = bit(each);
      visit(next);
    }
  }
}

template <class Visit>
void read(const world& in, Visit&& visit) {
  world next = in;
  const auto start_over = [&] {
    next.reader = reader_at::outside;
    next.best = torn;
  };
  switch (in.reader) {
    case reader_at::outside:
      next.best = in.slot[0];
      next.reader = reader_at::read_one;
      break;
    case reader_at::read_one:
      next.best = std::max(in.best, in.slot[1]);
      next.reader = reader_at::read_both;
      if (next.best == torn) start_over();
      break;
    case reader_at::read_both:
      next.reader = reader_at::pinned;
      break;
    case reader_at::pinned:
      next.reader = reader_at::accepted;
      if (in.slot[0] != in.best && in.slot[1] != in.best) start_over();
      break;
    case reader_at::accepted:
      start_over();
      break;
  }
  visit(next);
}

struct outcome {
  std::string unsafe;  // why; "" if no state is
  std::size_t states = 0;
};

outcome explore(left_out what) {
  std::vector<world> found{world{}};
  std::unordered_set<world, world_hash> seen{world{}};
  const auto add = [&](const world& state) {
    if (seen.insert(state).second) found.push_back(state);
  };
  for (std::size_t i = 0; i < found.size(); ++i) {
    const world here = found[i];
    if (std::string failure = problem(here); !failure.empty()) return {failure, found.size()};
    transact(here, what, add);
    publish(here, what, add);
    kernel(here, add);
    read(here, add);
  }
  return {"", found.size()};
}

TEST(UnpublishedModel, ProtocolIsSafe) {
  const outcome whole = explore(left_out::nothing);
  EXPECT_EQ(whole.unsafe, "");
  EXPECT_GT(whole.states, 10'000u);
}

TEST(UnpublishedModel, NoPartCanBeLeftOut) {
  EXPECT_EQ(explore(left_out::chosen).unsafe, "power cut: the newest was overwritten");
  for (const left_out what : {left_out::taken_slot, left_out::note_first, left_out::late_note})
    EXPECT_EQ(explore(what).unsafe, "a reader's bytes were overwritten") << static_cast<int>(what);
}

}  // namespace
}  // namespace shale
