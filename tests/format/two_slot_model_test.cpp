// The commit protocol (src/format/transaction/commit.hpp) as a state machine, explored
// exhaustively.
//
// The actors are readers and a writer process that may die at any step and be replaced. The system
// may do the following at any moment:
//
//   - The kernel writes dirty pages to the device, and evicts clean pages.
//   - A sync fails. The pages are clean afterwards, but their bytes may or may not be on the
//     device.
//   - The kernel's own write-back of superblocks or data fails in the same way. The next sync of
//     the writer's description reports it.
//   - The power is cut.
//
// A mapping that stays after its commit holds the generation, like a reader. The writer pins it
// before it unlocks.
//
// In the cache, a superblock is torn while it is being written, and stays torn if the writer dies
// at that point. On the device, it is torn if the power is cut while other bytes are written over
// it. A device with atomic sectors never tears it. The protocol is safe on both kinds of device.
//
// The model gives each commit an id and a parent. Its generation is its depth in this tree. So two
// commits may have the same generation if the first one was lost. `destroyed` holds the ids whose
// extents may have been overwritten. The file of a commit ends where its parent's file ends, or
// further on. A writer that truncates the file destroys all commits whose files end after the new
// end.
//
// These states are unsafe:
//
//   - A reader holds a destroyed id.
//   - After a power cut, no superblock is valid, or two valid superblocks have the same generation.
//   - After a power cut, the newest commit is destroyed, was never durable, or does not descend
//     from the last commit that was reported to have succeeded.
//   - A reader would have to wait: it does not reach its end by its own steps while the writer
//     stands still.
//
// Each mutation leaves out one part of the protocol, and the model must find it unsafe. This shows
// that the model would notice the defect.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shale {
namespace {

enum class mutation : std::uint8_t {
  none,
  no_rewrite,       // commit.1 syncs, but writes no superblock again
  rewrite_one,      // commit.1 writes only the newest superblock again
  no_rewrite_sync,  // commit.1 does not sync the superblocks that it wrote again
  know_newest,     // commit.1 trusts both slots if the newest one is as the process made it durable
  no_refusal,      // commit.1 does not refuse if a reader holds a later generation
  forget_slots,    // commit.2 protects the newest superblock only
  scan_once,       // commit.2 scans pins once per process, not per transaction
  no_data_sync,    // commit.3 does not sync
  newest_slot,     // commit.4 overwrites the newest superblock
  repeat_sync,     // commit.6 repeats a failed sync until it works
  no_second_look,  // commit.7 does not read the slot again
  late_pin,        // commit.7 pins what a mapping shows only after the writer has unlocked
  shared_sync,     // commit.6 syncs through a description from which a flush takes the error
  shrinking_ends,  // commit.8: a generation's file may end before its predecessor's
  cut_behind_base,  // commit.8: a commit truncates after its base only
  readers_hold_off  // commit.8: readers must lock the no-shrink byte to pin
};

constexpr int ids_max = 6;        // commits, including the first one
constexpr std::uint8_t none = 7;  // no id: an invalid superblock

using id_set = std::uint8_t;  // bit i: id i; bit 7: invalid

constexpr id_set bit(std::uint8_t id) { return static_cast<id_set>(1u << id); }

enum class writer_at : std::uint8_t {
  idle,
  locked,     // has the lock
  rewritten,  // the adopted superblock is written again, not yet synced
  adopted,    // commit.1 done
  scanned,    // commit.2 done
  data_written,
  data_synced,
  torn,       // in the middle of writing the superblock
  published,  // written, not yet synced
  tidying,    // reported; still has the lock
  truncating  // holds the no-shrink byte
};

enum class reader_at : std::uint8_t {
  outside,
  read_one,
  read_both,
  pinned,
  accepted,
  unpinned  // shows the bytes of a commit without a pin
};

constexpr int readers = 2;

struct world {
  std::array<std::uint8_t, 2> slot;   // id in the cache, or none
  std::array<std::uint8_t, 2> dirty;  // id that is not written to the device yet
  std::array<id_set, 2> device;       // ids that the device may hold there
  std::array<std::uint8_t, 2> known;  // ids that some process made durable, and remembers
  std::uint8_t unheard;               // a write-back error that no sync has reported yet
  std::uint8_t lost;                  // the kernel dropped data of the commit that is being made
  std::array<std::uint8_t, ids_max> parent;
  std::array<std::uint8_t, ids_max> end;  // the end of its file
  std::uint8_t count;                     // ids so far
  id_set durable;                         // ids whose data is on the device
  id_set destroyed;
  std::uint8_t reported;  // the last commit that succeeded
  writer_at writer;
  std::uint8_t base;    // the base of the writer's transaction
  std::uint8_t made;    // the commit that it is making
  std::uint8_t target;  // the slot that it will write
  std::uint8_t cut;     // the end to which it truncates the file
  id_set seen_pins;     // generations (not ids) that the scan found
  std::uint8_t scanned_before;
  std::array<reader_at, readers> reader;
  std::array<std::uint8_t, readers> best;

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

int generation(const world& in, std::uint8_t id) {
  int depth = 1;
  for (; in.parent[id] != none; id = in.parent[id]) ++depth;
  return depth;
}

bool descends(const world& in, std::uint8_t id, std::uint8_t ancestor) {
  for (; id != none; id = in.parent[id])
    if (id == ancestor) return true;
  return false;
}

// The slot with the higher generation; none if neither is valid.
std::uint8_t newest(const world& in, std::uint8_t a, std::uint8_t b) {
  if (a == none) return b;
  if (b == none) return a;
  return generation(in, a) > generation(in, b) ? a : b;
}

enum class sectors : std::uint8_t { atomic, tear };

struct explorer {
  explorer(mutation m, int commits_explored, sectors device = sectors::atomic)
      : mutated(m), commits(commits_explored), tears(device == sectors::tear) {}

  bool without(mutation m) const { return mutated == m; }

  // Describes why a state is unsafe; nothing if it is safe.
  const char* problem(const world& in) const {
    for (int r = 0; r < readers; ++r)
      if (in.reader[r] == reader_at::accepted && (in.destroyed & bit(in.best[r])) != 0)
        return "a reader's bytes were overwritten";
    for (int r = 0; r < readers; ++r)
      if (waits(in, r)) return "a reader waits for a writer";
    for (std::uint8_t a = 0; a < 8; ++a) {
      if ((in.device[0] & bit(a)) == 0) continue;
      for (std::uint8_t b = 0; b < 8; ++b) {
        if ((in.device[1] & bit(b)) == 0) continue;
        const std::uint8_t top = newest(in, a, b);
        if (top == none) return "power cut: no superblock is valid";
        if (a != none && b != none && generation(in, a) == generation(in, b))
          return "power cut: two superblocks of one generation";
        if ((in.destroyed & bit(top)) != 0) return "power cut: the newest was overwritten";
        if ((in.durable & bit(top)) == 0) return "power cut: the newest was never durable";
        if (!descends(in, top, in.reported)) return "power cut: a reported commit is gone";
      }
    }
    return nullptr;
  }

  // Whether a reader cannot reach its end while only it makes steps.
  bool waits(world in, int r) const {
    constexpr int steps_of_two_rounds = 8;
    for (int step = 0; step < steps_of_two_rounds; ++step) {
      if (in.reader[r] == reader_at::accepted) return false;
      world after = in;
      reader(in, r, [&](const world& next, const char*) { after = next; });
      in = after;
    }
    return in.reader[r] != reader_at::accepted;
  }

  template <class Visit>
  void successors(const world& in, Visit&& visit) const {
    kernel(in, visit);
    writer(in, visit);
    for (int r = 0; r < readers; ++r) reader(in, r, visit);
  }

  template <class Visit>
  void kernel(const world& in, Visit&& visit) const {
    if (in.writer == writer_at::data_written && in.lost == 0) {
      world next = in;
      next.lost = 1;
      next.unheard = 1;
      visit(next, "writeback of data FAILS");
    }
    if (in.unheard != 0 && without(mutation::shared_sync)) {
      world next = in;
      next.unheard = 0;
      visit(next, "a flush is told instead");
    }
    for (int i = 0; i < 2; ++i) {
      if (in.dirty[i]) {
        world next = in;  // the kernel writes it back by itself
        next.dirty[i] = 0;
        next.device[i] = bit(in.slot[i]);
        visit(next, i == 0 ? "writeback 0" : "writeback 1");
        next = in;
        next.dirty[i] = 0;
        next.unheard = 1;
        visit(next, i == 0 ? "writeback 0 FAILS" : "writeback 1 FAILS");
      } else if (in.device[i] != bit(in.slot[i])) {
        for (std::uint8_t id = 0; id < 8;
             ++id) {  // the kernel evicts it; the next read comes from the device
          if ((in.device[i] & bit(id)) == 0) continue;
          world next = in;
          next.slot[i] = id;
          next.device[i] = bit(id);
          visit(next, i == 0 ? "evict 0" : "evict 1");
        }
      }
    }
  }

  void put(world& in, int i, std::uint8_t id) const {
    // Writing a sector over equal bytes cannot tear it.
    if (tears && in.device[i] != bit(id)) in.device[i] |= bit(none);
    in.slot[i] = id;
    in.dirty[i] = 1;
    in.device[i] |= bit(id);
  }

  static void sync(world& in, bool works) {
    in.unheard = 0;
    for (int i = 0; i < 2; ++i) {
      if (!in.dirty[i]) continue;
      in.dirty[i] = 0;
      if (works) in.device[i] = bit(in.slot[i]);
    }
  }

  // Whether both slots are as a process, which may be this writer, made them durable.
  bool remembered(const world& in, std::uint8_t base) const {
    if (!with_memory) return false;
    if (in.slot == in.known) return true;
    const int newest_slot = in.slot[0] == base ? 0 : 1;
    return without(mutation::know_newest) && in.slot[newest_slot] == in.known[newest_slot];
  }

  // Another process replaces the writer.
  static void replace_writer(world& in) {
    in.writer = writer_at::idle;
    in.base = in.made = none;
    in.lost = 0;
    in.target = in.cut = 0;
    in.seen_pins = 0;
    in.scanned_before = 0;
  }

  // The pinned generations, which a scan of the locks finds.
  static id_set pins(const world& in) {
    id_set held = 0;
    for (int r = 0; r < readers; ++r)
      if (in.reader[r] == reader_at::pinned || in.reader[r] == reader_at::accepted)
        held |= bit(static_cast<std::uint8_t>(generation(in, in.best[r])));
    return held;
  }

  bool refuses(const world& in, std::uint8_t base) const {
    return !without(mutation::no_refusal) && (pins(in) >> (generation(in, base) + 1)) != 0;
  }

  template <class Visit>
  void writer(const world& in, Visit&& visit) const {
    world next = in;
    const auto go = [&](const char* name) {
      visit(next, name);
      next = in;
    };
    // A sync succeeds, or it fails and the process poisons itself. There may be many processes, each
    // with its own memory of the slots. It is enough to follow one memory, of any time.
    const auto sync_to = [&](writer_at after, const char* works, const char* fails,
                             auto&& if_it_works) {
      for (const bool remembers : {false, true}) {
        if (in.unheard != 0 || (remembers && !with_memory)) break;
        sync(next, true);
        next.writer = after;
        if (remembers) next.known = next.slot;
        if_it_works(next);
        go(works);
      }
      sync(next, false);
      if (without(mutation::repeat_sync)) {
        next.writer = after;  // the second call finds nothing dirty, and reports success
        if_it_works(next);
      } else {
        replace_writer(next);
      }
      go(fails);
    };
    const auto nothing_more = [](world&) {};

    if (in.writer != writer_at::idle) {
      replace_writer(next);  // the superblock, if torn, stays torn
      go("KILL");
    }
    const bool gives_up = in.writer >= writer_at::adopted && in.writer < writer_at::torn;
    if (gives_up || in.writer == writer_at::tidying) {
      next.writer = writer_at::idle;
      next.base = next.made = none;
      go("unlock");
      // Truncates the bytes that neither superblock needs.
      if (!without(mutation::readers_hold_off) || pins(in) == 0) {
        next.cut = in.end[in.base];
        if (!without(mutation::cut_behind_base))
          for (const std::uint8_t id : in.slot)
            if (id != none) next.cut = std::max(next.cut, in.end[id]);
        next.writer = writer_at::truncating;
        go("no shrinking by others");
      }
    }
    if (in.writer == writer_at::tidying && in.reader[0] == reader_at::outside) {
      next.reader[0] = without(mutation::late_pin) ? reader_at::unpinned : reader_at::accepted;
      next.best[0] = in.made;
      go("keep the mapping");
    }
    switch (in.writer) {
      case writer_at::idle:
        if (in.count == commits) break;
        next.writer = writer_at::locked;
        next.unheard = 0;  // it does not get earlier errors
        go("lock");
        break;
      case writer_at::locked: {
        const std::uint8_t base = newest(in, in.slot[0], in.slot[1]);
        if (base == none || refuses(in, base)) {
          replace_writer(next);
          go("refuse");
          break;
        }
        next.base = base;
        if (remembered(in, base)) {
          next.writer = writer_at::adopted;
          go("both are known to be durable");
          next.base = base;
        }
        for (int i = 0; i < 2; ++i)
          if (!without(mutation::no_rewrite) &&
              (in.slot[i] == base || !without(mutation::rewrite_one)))
            put(next, i, in.slot[i]);
        next.writer = writer_at::rewritten;
        go("rewrite");
        break;
      }
      case writer_at::rewritten:
        if (without(mutation::no_rewrite_sync)) {
          next.writer = writer_at::adopted;
          go("no sync 1");
          break;
        }
        sync_to(writer_at::adopted, "sync 1", "sync 1 FAILS", nothing_more);
        break;
      case writer_at::adopted:
        if (refuses(in, in.base)) {
          replace_writer(next);
          go("refuse");
          break;
        }
        if (!(without(mutation::scan_once) && in.scanned_before)) next.seen_pins = pins(in);
        next.scanned_before = 1;
        next.writer = writer_at::scanned;
        go("scan");
        break;
      case writer_at::scanned: {
        // A writer protects generations by number, among the base and its ancestors. All other
        // commits are lost, and the base's space map does not know their extents.
        id_set kept = bit(in.base);
        for (std::uint8_t id = in.base; id != none; id = in.parent[id]) {
          const int number = generation(in, id);
          if ((in.seen_pins >> number) & 1) kept |= bit(id);
          if (!without(mutation::forget_slots))
            for (const std::uint8_t held : in.slot)
              if (held != none && generation(in, held) == number) kept |= bit(id);
        }
        for (std::uint8_t id = 0; id < in.count; ++id)
          if ((kept & bit(id)) == 0) next.destroyed |= bit(id);
        next.made = in.count;
        next.lost = 0;
        next.parent[in.count] = in.base;
        next.end[in.count] = in.end[in.base];
        ++next.count;
        next.writer = writer_at::data_written;
        const world as_long = next;
        go("write data");
        next = as_long;
        ++next.end[in.count];
        go("write data at the end");
        if (!without(mutation::shrinking_ends)) break;
        next = as_long;
        --next.end[in.count];
        go("write data, end earlier");
        break;
      }
      case writer_at::data_written:
        if (without(mutation::no_data_sync)) {
          next.writer = writer_at::data_synced;
          go("no sync 3");
          break;
        }
        // A repeated sync succeeds, but has not made the data durable.
        if (in.unheard == 0) {
          sync(next, true);
          next.writer = writer_at::data_synced;
          if (in.lost == 0) next.durable |= bit(in.made);
          go("sync 3");
        }
        sync(next, false);
        if (without(mutation::repeat_sync)) next.writer = writer_at::data_synced;
        else replace_writer(next);
        go("sync 3 FAILS");
        break;
      case writer_at::data_synced: {
        const int top = newest(in, in.slot[0], in.slot[1]) == in.slot[0] ? 0 : 1;
        next.target = static_cast<std::uint8_t>(without(mutation::newest_slot) ? top : 1 - top);
        put(next, next.target, none);
        next.writer = writer_at::torn;
        go("superblock torn");
        break;
      }
      case writer_at::torn:
        put(next, in.target, in.made);
        next.writer = writer_at::published;
        go("superblock");
        break;
      case writer_at::published:
        sync_to(writer_at::tidying, "sync 4", "sync 4 FAILS", [&](world& w) {
          w.reported = in.made;
          w.target = 0;
        });
        break;
      case writer_at::tidying:
        break;
      case writer_at::truncating:
        for (std::uint8_t id = 0; id < in.count; ++id)
          if (in.end[id] > in.cut) next.destroyed |= bit(id);
        next.writer = writer_at::idle;
        next.base = next.made = none;
        next.cut = 0;
        go("truncate and unlock");
        break;
    }
  }

  template <class Visit>
  void reader(const world& in, int r, Visit&& visit) const {
    world next = in;
    const auto go = [&](const char* name) { visit(next, name); };
    switch (in.reader[r]) {
      case reader_at::outside:
        next.best[r] = in.slot[0];
        next.reader[r] = reader_at::read_one;
        return go("reader: slot 0");
      case reader_at::read_one:
        next.best[r] = newest(in, in.best[r], in.slot[1]);
        next.reader[r] = reader_at::read_both;
        if (next.best[r] == none) next.reader[r] = reader_at::outside;
        return go("reader: slot 1");
      case reader_at::read_both:
        next.reader[r] = reader_at::pinned;
        if (without(mutation::readers_hold_off) && in.writer == writer_at::truncating) {
          next.reader[r] = reader_at::outside;
          next.best[r] = none;
        }
        return go("reader: pin");
      case reader_at::pinned:
        if (without(mutation::no_second_look) || in.slot[0] == in.best[r] ||
            in.slot[1] == in.best[r]) {
          next.reader[r] = reader_at::accepted;
        } else {
          next.reader[r] = reader_at::outside;
          next.best[r] = none;
        }
        return go("reader: look again");
      case reader_at::unpinned:
        next.reader[r] = reader_at::accepted;
        return go("mapping: pin");
      case reader_at::accepted:
        next.reader[r] = reader_at::outside;
        next.best[r] = none;
        return go("reader: close");
    }
  }

  // The state after `create`: one superblock, which is durable.
  static world initial() {
    world start;
    std::memset(static_cast<void*>(&start), 0, sizeof start);
    start.slot = {0, none};
    start.device = {bit(0), bit(none)};
    start.known = start.slot;
    start.parent.fill(none);
    start.end[0] = ids_max;  // so that ends can move either way
    start.count = 1;
    start.durable = bit(0);
    start.best.fill(none);
    replace_writer(start);
    return start;
  }

  // Returns the steps that lead to an unsafe state; nothing if there is none.
  std::optional<std::string> explore(int reader_count) {
    std::vector<world> found;
    std::vector<std::pair<std::size_t, const char*>> reached_from;  // parent state, step
    std::unordered_map<world, std::size_t, world_hash> seen;
    const auto add = [&](const world& state, std::size_t parent, const char* step) {
      if (seen.emplace(state, found.size()).second) {
        found.push_back(state);
        reached_from.emplace_back(parent, step);
      }
    };
    add(initial(), 0, "start");
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (const char* const failure = problem(found[i])) {
        std::string path = failure;
        for (std::size_t state = i; state != 0; state = reached_from[state].first)
          path.insert(0, std::string(reached_from[state].second) + "; ");
        return path;
      }
      const world here = found[i];
      kernel(here, [&](const world& w, const char* step) { add(w, i, step); });
      writer(here, [&](const world& w, const char* step) { add(w, i, step); });
      for (int r = 0; r < reader_count; ++r)
        reader(here, r, [&](const world& w, const char* step) { add(w, i, step); });
    }
    states = found.size();
    return std::nullopt;
  }

  mutation mutated;
  int commits;  // the first one included
  bool tears;
  bool with_memory = false;  // whether processes remember the slots that they made durable
  std::size_t states = 0;
};

TEST(TwoSlotModel, ProtocolIsSafeWithTwoReaders) {
  explorer whole(mutation::none, 4);
  EXPECT_EQ(whole.explore(2), std::nullopt);
  EXPECT_GT(whole.states, 10'000u);
  RecordProperty("states", static_cast<int>(whole.states));
}

TEST(TwoSlotModel, ProtocolIsSafeThroughManyCommits) {
  explorer whole(mutation::none, 5);
  EXPECT_EQ(whole.explore(1), std::nullopt);
  EXPECT_GT(whole.states, 10'000u);
  RecordProperty("states", static_cast<int>(whole.states));
}

// Both slots are written again before one sync (commit.1). Only one of them can differ from the
// bytes on the device, so a torn sector never destroys both.
TEST(TwoSlotModel, ProtocolNeedsNoAtomicSectors) {
  explorer two_readers(mutation::none, 4, sectors::tear);
  EXPECT_EQ(two_readers.explore(2), std::nullopt);
  explorer many_commits(mutation::none, 5, sectors::tear);
  EXPECT_EQ(many_commits.explore(1), std::nullopt);
  EXPECT_GT(many_commits.states, 10'000u);
}

TEST(TwoSlotModel, ProcessesMayRememberWhatTheyMadeDurable) {
  for (const sectors device : {sectors::atomic, sectors::tear}) {
    explorer remembering(mutation::none, 4, device);
    remembering.with_memory = true;
    EXPECT_EQ(remembering.explore(1), std::nullopt);
    EXPECT_GT(remembering.states, 10'000u);
  }
}

class TwoSlotModelWithout : public testing::TestWithParam<mutation> {};

TEST_P(TwoSlotModelWithout, IsUnsafe) {
  explorer mutated(GetParam(), 5);
  mutated.with_memory = GetParam() == mutation::know_newest;
  const auto unsafe = mutated.explore(1);
  ASSERT_TRUE(unsafe);
  RecordProperty("path", *unsafe);
}

std::string part_name(const testing::TestParamInfo<mutation>& info) {
  switch (info.param) {
    case mutation::no_rewrite:
      return "Rewrite";
    case mutation::rewrite_one:
      return "RewriteOfBoth";
    case mutation::no_rewrite_sync:
      return "RewriteSync";
    case mutation::know_newest:
      return "MemoryOfBoth";
    case mutation::no_refusal:
      return "Refusal";
    case mutation::forget_slots:
      return "KeptSlots";
    case mutation::scan_once:
      return "ScanEachTime";
    case mutation::no_data_sync:
      return "DataSync";
    case mutation::newest_slot:
      return "OlderSlot";
    case mutation::repeat_sync:
      return "Poison";
    case mutation::no_second_look:
      return "SecondLook";
    case mutation::late_pin:
      return "PinBeforeTheUnlock";
    case mutation::shared_sync:
      return "SyncOfItsOwn";
    case mutation::shrinking_ends:
      return "GrowingEnds";
    case mutation::cut_behind_base:
      return "CutBehindTheNewest";
    case mutation::readers_hold_off:
      return "ReadersThatWaitForNobody";
    case mutation::none:
      break;
  }
  return "Nothing";
}

INSTANTIATE_TEST_SUITE_P(Part, TwoSlotModelWithout,
                         testing::Values(mutation::no_rewrite, mutation::rewrite_one,
                                         mutation::no_rewrite_sync, mutation::know_newest,
                                         mutation::no_refusal, mutation::forget_slots,
                                         mutation::scan_once, mutation::no_data_sync,
                                         mutation::newest_slot, mutation::repeat_sync,
                                         mutation::no_second_look, mutation::late_pin,
                                         mutation::shared_sync, mutation::shrinking_ends,
                                         mutation::cut_behind_base, mutation::readers_hold_off),
                         part_name);

}  // namespace
}  // namespace shale
