// Tests threads that write into the same chunks; this also runs under a race detector.
#include "array/elements/chunk_claims.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <optional>
#include <thread>

#include "array/elements/chunk_store.hpp"
#include "array/elements/chunk_tiles.hpp"
#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "shale/mapped_file.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::findings_of;

class ChunkClaims : public test::fresh_container {
 protected:
  static array_spec spec(const dims& shape, const dims& chunk, const codec_spec& codec = {}) {
    return {.dtype = dtype::int32,
            .shape = shape,
            .kind = array_kind::chunked,
            .chunk_shape = chunk,
            .codec = codec};
  }

  static tensor filled(const dims& shape, int value) {
    return eval(full(shape, value, dtype::int32));
  }

  // Runs `body(thread)` on several threads, which begin at the same moment.
  template <class Body>
  static void on_threads(int count, Body body) {
    std::barrier begin(count);
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        executor own({.threads = 2});
        const executor::scope within(own);
        begin.arrive_and_wait();
        try {
          body(t);
        } catch (const error& failure) {
          ADD_FAILURE() << failure.what();
        }
      });
    for (auto& thread : threads) thread.join();
  }
};

// A chunk whose bytes are wrong at the first reads, as if other threads had used its old space.
class overwritten_chunk final : public arrays::chunk_store {
 public:
  overwritten_chunk(int wrong_reads, bool space_is_taken)
      : wrong_reads_(wrong_reads), space_is_taken_(space_is_taken) {
    entry_.stored_bytes = 16;
    entry_.flags = format::chunk_flag_raw;
  }

  std::optional<format::chunk_entry> find(std::uint64_t) const override { return entry_; }
  void read(const format::chunk_entry&, format::bytes_span into) const override {
    ++reads;
    if (space_is_taken_) ++taken_;
    if (reads <= wrong_reads_) throw error(errc::corrupt, "checksum mismatch");
    std::fill(into.begin(), into.end(), std::byte{1});
  }
  std::uint64_t times_space_taken() const override { return taken_; }
  int descriptor() const noexcept override { return -1; }

  mutable int reads = 0;

 private:
  int wrong_reads_;
  bool space_is_taken_;
  mutable std::uint64_t taken_ = 7;
  format::chunk_entry entry_;
};

// The entry is the same each time: a chunk that is replaced twice may be back at its old place.
TEST(ReplacedChunk, IsReadAgainOnlyIfItsBytesMayHaveChanged) {
  format::array_record record;
  record.dtype = dtype::int32;
  record.shape = {4};
  record.fill_value.resize(4);
  record.layout = format::chunked_layout{};
  record.chunked().chunk_shape = {4};
  record.chunked().grid_capacity = {1};
  const auto load = [&](const std::shared_ptr<overwritten_chunk>& store) {
    const tensor values = tensor::zeros({4}, dtype::int32);
    const errc code = code_of([&] { arrays::chunk_tiles("'a'", record, store).load({0}, values); });
    EXPECT_EQ(values.at({3}), scalar(code == errc{} ? 0x01010101 : 0));
    return code;
  };
  const auto overwritten = std::make_shared<overwritten_chunk>(3, true);
  EXPECT_EQ(load(overwritten), errc{});
  EXPECT_EQ(overwritten->reads, 4);
  const auto damaged = std::make_shared<overwritten_chunk>(1, false);
  EXPECT_EQ(load(damaged), errc::corrupt);
  EXPECT_EQ(damaged->reads, 1);
  const auto both = std::make_shared<overwritten_chunk>(1'000'000, true);
  EXPECT_EQ(load(both), errc::corrupt);
  EXPECT_LE(both->reads, 1000);
}

TEST_F(ChunkClaims, OneThreadAtATimeHasAChunk) {
  arrays::chunk_claims claims;
  int inside[3] = {};  // a race detector sees two threads that have the same one
  on_threads(4, [&](int t) {
    for (int i = 0; i < 500; ++i) {
      const int chunk = (i + t) % 3;
      const auto alone = claims.take(static_cast<std::uint64_t>(chunk));
      EXPECT_EQ(++inside[chunk], 1);
      --inside[chunk];
    }
  });
}

TEST_F(ChunkClaims, OtherChunksAreFreeMeanwhile) {
  arrays::chunk_claims claims;
  const auto one = claims.take(1);
  const auto two = claims.take(2);  // would wait for ever
  std::thread([&] { const auto three = claims.take(3); }).join();
}

// Each thread writes every fourth row of all chunks, one row at a time, and one thread in two
// converts its values by the engine.
TEST_F(ChunkClaims, WritesOfThreadsIntoOneChunkAreAllKept) {
  const dims shape{64, 512};
  for (int round = 0; round < 4; ++round) {
    const std::string name = std::to_string(round);
    transaction change = file_.begin();
    const writable_array a = change.create(name, spec(shape, {64, 256}));
    on_threads(4, [&](int t) {
      const tensor values = counting(shape, t % 2 == 0 ? dtype::int32 : dtype::float64);
      for (index_t row = t; row < 64; row += 4)
        a.write({{row, 0}, {1, 512}}, values.narrow(0, row, 1));
    });
    change.commit();
    EXPECT_TRUE(equal_bits(at(name).read(), counting(shape, dtype::int32))) << round;
  }
  EXPECT_EQ(findings_of(file_), "");
}

// A whole chunk that is stored between the load and the store of another thread must not be lost
// either.
TEST_F(ChunkClaims, WholeChunksTakeTurnsWithParts) {
  const dims shape{64, 64};
  transaction change = file_.begin();
  const writable_array a = change.create("a", spec(shape, shape));
  for (int round = 1; round < 60; ++round) {
    a.write(expr(0));
    on_threads(2, [&](int t) {
      if (t == 0) a.write(region::all(shape), filled(shape, round));
      else a.write({{0, 0}, {1, 64}}, filled({1, 64}, -round));
    });
    // Whichever was first: what only the whole chunk has is there.
    const tensor now = change.find("a")->read();
    ASSERT_EQ(now.at({63, 63}), scalar(round));
    ASSERT_TRUE(now.at({0, 5}) == scalar(round) || now.at({0, 5}) == scalar(-round));
  }
}

// Three rectangles that overlap are written at once, in chunks that all of them touch. Each chunk
// must look as if the writers had come one after the other. They meet in several chunks, and
// wait for each other in none of them for ever (claims.1).
TEST_F(ChunkClaims, WritesThatOverlapAreOrderedInEachChunk) {
  const dims shape{48, 48};
  constexpr index_t side = 24;
  const region parts[] = {{{0, 0}, {30, 48}}, {{10, 5}, {38, 30}}, {{4, 12}, {40, 36}}};
  transaction change = file_.begin();
  const writable_array a = change.create("a", spec(shape, {side, side}));
  const auto inside = [&](int t, index_t i, index_t j) {
    const region& part = parts[t];
    return i >= part.start[0] && i < part.start[0] + part.shape[0] && j >= part.start[1] &&
           j < part.start[1] + part.shape[1];
  };
  for (int round = 0; round < 30; ++round) {
    a.write(expr(0));
    on_threads(3, [&](int t) { a.write(parts[t], filled(parts[t].shape, t + 1)); });
    const tensor now = change.find("a")->read();
    for (index_t row = 0; row < 48; row += side)
      for (index_t column = 0; column < 48; column += side) {
        int order[] = {0, 1, 2};
        bool explained = false;
        do {
          bool same = true;
          for (index_t i = row; i < row + side; ++i)
            for (index_t j = column; j < column + side; ++j) {
              int wanted = 0;
              for (const int t : order)
                if (inside(t, i, j)) wanted = t + 1;
              same = same && now.at({i, j}) == scalar(wanted);
            }
          explained = explained || same;
        } while (std::next_permutation(std::begin(order), std::end(order)));
        ASSERT_TRUE(explained) << "round " << round << ", chunk at " << row << ", " << column;
      }
  }
}

// claims.2: one thread's values are lost with their file; those of the others are stored.
TEST_F(ChunkClaims, AWriterThatFailsLeavesTheBytesOfOthers) {
  const std::string source = path_ + ".source";
  const dims shape{64, 4096};
  { create_file(source, 64 * 4096 * 4); }
  const tensor lost(map_file(source), dtype::int32, layout(shape));
  ASSERT_EQ(::truncate(source.c_str(), 4096), 0);
  transaction change = file_.begin();
  const writable_array a = change.create("a", spec(shape, {32, 4096}));
  const tensor values = counting(shape, dtype::int32);
  std::atomic<int> failed = 0;
  on_threads(3, [&](int t) {
    for (index_t row = t; row < 63; row += 3) {
      if (t > 0) a.write({{row, 0}, {1, 4096}}, values.narrow(0, row, 1));
      else if (code_of([&] { a.write({{row, 0}, {2, 4096}}, lost.narrow(0, row, 2)); }) == errc::io)
        ++failed;
    }
  });
  EXPECT_EQ(failed, 21);
  change.commit();
  const tensor stored = at("a").read();
  for (index_t row = 0; row < 64; ++row)
    EXPECT_TRUE(equal_bits(stored.narrow(0, row, 1), row % 3 == 0
                                                         ? tensor::zeros({1, 4096}, dtype::int32)
                                                         : values.narrow(0, row, 1)))
        << row;
  EXPECT_EQ(findings_of(file_), "");
}

// Appends store the last old chunk again, beside a thread that writes into it.
TEST_F(ChunkClaims, AppendsTakeTurnsWithWrites) {
  for (int round = 0; round < 10; ++round) {
    const std::string name = std::to_string(round);
    const tensor values = counting({64, 256}, dtype::int32);
    transaction change = file_.begin();
    change.create(name, spec({32, 256}, {64, 256})).write(values.narrow(0, 0, 32));
    std::atomic<bool> done = false;
    on_threads(2, [&](int t) {
      if (t == 0) {
        change.append(name, values.narrow(0, 32, 32));
        done = true;
        return;
      }
      // Handles from before the append throw; the one from after it does not.
      for (bool last = false; !last;) {
        last = done;
        try {
          const writable_array a = change.update(name);
          if (a.shape()[0] == 64) a.write({{7, 0}, {1, 256}}, filled({1, 256}, -1));
        } catch (const error& failure) {
          EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
        }
      }
    });
    const tensor stored = change.find(name)->read();
    EXPECT_TRUE(equal_bits(stored.narrow(0, 8, 56), values.narrow(0, 8, 56))) << round;
    EXPECT_EQ(stored.at({7, 9}), scalar(-1)) << round;
    change.abort();
  }
}

}  // namespace
}  // namespace shale
