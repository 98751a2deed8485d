// Tests copies into chunks of other shapes: the elements, and how often chunks are decoded. The
// expected numbers are counted element by element, or by hand.
#include "shale/rechunk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "support/bounded.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::findings_of;

class Rechunk : public test::fresh_container {
 protected:
  static array_spec spec(const dims& shape, const dims& chunk) {
    return {
        .dtype = dtype::int32, .shape = shape, .kind = array_kind::chunked, .chunk_shape = chunk};
  }

  // Copies "a" to a new array "b" in chunks of that shape, and compares the elements.
  rechunk_plan copied(const dims& chunk) {
    const array from = at("a");
    transaction change = file_.begin();
    const rechunk_plan plan = rechunk(from, change.create("b", spec(from.shape(), chunk)));
    change.commit();
    EXPECT_TRUE(equal_bits(at("b").read(), counting(from.shape(), dtype::int32)));
    transaction removal = file_.begin();
    removal.remove("b");
    removal.commit();
    return plan;
  }

  void write_source(const dims& shape, const dims& chunk) {
    write_new("a", spec(shape, chunk), counting(shape, dtype::int32));
  }
};

// The chunks of that shape that the elements of each block lie in, counted element by element.
std::uint64_t chunks_of_all_blocks(const dims& shape, const dims& block, const dims& chunk) {
  std::set<std::pair<std::pair<index_t, index_t>, std::pair<index_t, index_t>>> pairs;
  for (index_t row = 0; row < shape[0]; ++row)
    for (index_t column = 0; column < shape[1]; ++column)
      pairs.insert({{row / block[0], column / block[1]}, {row / chunk[0], column / chunk[1]}});
  return pairs.size();
}

// A row of the array has 384 bytes, and so has a column. The whole array has 36 KiB.
TEST_F(Rechunk, TakesTheFewestPassesThatTheBudgetAllows) {
  write_source({96, 96}, {1, 96});
  struct expectation {
    std::size_t budget_bytes;
    int passes;
    dims block;
    std::uint64_t decoded;
  };
  for (const auto& [budget, passes, block, decoded] :
       {expectation{std::size_t{512} << 10, 1, {96, 96}, 96},      // everything at once
        expectation{std::size_t{192} << 10, 1, {96, 64}, 2 * 96},  // two blocks of columns
        expectation{std::size_t{64} << 10, 2, {96, 21}, 96}}) {    // five would decode five times
    SCOPED_TRACE(budget);
    executor on({.threads = 2, .memory_bytes = budget});
    const executor::scope within(on);
    const rechunk_plan planned = plan_rechunk(at("a"), {96, 1});
    EXPECT_EQ(planned.passes, passes);
    EXPECT_EQ(planned.block_shape, block);
    EXPECT_EQ(planned.chunks_decoded, decoded);
    EXPECT_EQ(planned.chunks_encoded, 96U);
    EXPECT_EQ(planned.scratch_bytes, passes == 2 ? 96U * 96 * 4 : 0U);

    const array from = at("a");
    transaction change = file_.begin();
    const std::uint64_t before = on.statistics().tiles_decoded;
    const rechunk_plan plan = rechunk(from, change.create("b", spec({96, 96}, {96, 1})));
    EXPECT_EQ(on.statistics().tiles_decoded - before, decoded);
    EXPECT_EQ(plan.passes, passes);
    EXPECT_EQ(plan.chunks_decoded, decoded);
    EXPECT_TRUE(equal_bits(change.find("b")->read(), counting({96, 96}, dtype::int32)));
    change.abort();
  }
}

// Blocks of 256 elements fit: along the columns, no chunk is cut.
TEST_F(Rechunk, BlocksGrowAlongTheChunksThatTheyWouldCut) {
  write_source({64, 64}, {64, 1});
  executor on({.threads = 2, .memory_bytes = std::size_t{8} << 10});
  const executor::scope within(on);
  const rechunk_plan plan = plan_rechunk(at("a"), {4, 4});
  EXPECT_EQ(plan.passes, 1);
  EXPECT_EQ(plan.block_shape, dims({64, 4}));
  EXPECT_EQ(plan.chunks_decoded, 64U);
}

// The pieces that the borders of blocks and of chunks cut an axis into.
std::uint64_t pieces_along(index_t length, index_t block, index_t chunk) {
  std::uint64_t pieces = 1;
  for (index_t at = 1; at < length; ++at) pieces += at % block == 0 || at % chunk == 0 ? 1U : 0U;
  return pieces;
}

// The fewest pieces that any blocks of whole new chunks cut the old chunks into, if a block has at
// most so many elements, or is one new chunk.
std::uint64_t fewest_pieces(const dims& shape, const dims& new_chunk, const dims& old_chunk,
                            index_t elements_max) {
  std::uint64_t fewest = UINT64_MAX;
  const auto extents = [&](index_t axis) {
    std::vector<index_t> all;
    for (index_t extent = new_chunk[axis]; extent < shape[axis]; extent += new_chunk[axis])
      all.push_back(extent);
    all.push_back(shape[axis]);
    return all;
  };
  for (const index_t rows : extents(0))
    for (const index_t columns : extents(1)) {
      const bool is_unit = rows <= new_chunk[0] && columns <= new_chunk[1];
      if (rows * columns > elements_max && !is_unit) continue;
      fewest = std::min(fewest, pieces_along(shape[0], rows, old_chunk[0]) *
                                    pieces_along(shape[1], columns, old_chunk[1]));
    }
  return fewest;
}

TEST_F(Rechunk, TakesTwoPassesOnlyWhereNoBlocksAllowOne) {
  std::mt19937 random(9);
  const auto up_to = [&](index_t n) { return static_cast<index_t>(random()) % n + 1; };
  constexpr int turns = 400;
  int one = 0;
  int two = 0;
  int fewest = 0;
  for (int turn = 0; turn < turns; ++turn) {
    const dims shape{up_to(50), up_to(50)};
    const dims old_chunk{up_to(shape[0]), up_to(shape[1])};
    const dims new_chunk{up_to(16), up_to(16)};
    const index_t elements_max = index_t{16} << up_to(5);
    transaction change = file_.begin();
    change.create("a", spec(shape, old_chunk));
    executor on({.threads = 1, .memory_bytes = static_cast<std::size_t>(elements_max) * 4 * 8});
    const executor::scope within(on);
    const rechunk_plan plan = plan_rechunk(*change.find("a"), new_chunk);
    change.abort();
    const std::uint64_t least = fewest_pieces(shape, new_chunk, old_chunk, elements_max);
    const std::uint64_t once = chunks_of_all_blocks(shape, shape, old_chunk);
    EXPECT_EQ(plan.passes, least > 2 * once ? 2 : 1)
        << to_string(shape) << " from " << to_string(old_chunk) << " to " << to_string(new_chunk);
    const bool is_fewest = chunks_of_all_blocks(shape, plan.block_shape, old_chunk) == least;
    fewest += is_fewest ? 1 : 0;
    (plan.passes == 1 ? one : two) += 1;
    if (HasFailure()) break;
  }
  EXPECT_GT(one, turns / 8);
  EXPECT_GT(two, turns / 8);
  EXPECT_GT(fewest, turns - turns / 20);
}

// The longest arrays that can be created, and chunks that are longer than any array.
TEST_F(Rechunk, PlansForAxesAndChunksOfAnyLength) {
  const index_t length = (index_t{1} << 59) - 1;
  array_spec bytes = spec({length}, {index_t{1} << 20});
  bytes.dtype = dtype::int8;
  transaction change = file_.begin();
  change.create("a", bytes);
  const array from = *change.find("a");
  executor on({.threads = 1, .memory_bytes = std::size_t{64} << 20});
  const executor::scope within(on);
  const rechunk_plan plan = plan_rechunk(from, {index_t{1} << 23});
  EXPECT_EQ(plan.passes, 1);
  EXPECT_EQ(plan.block_shape, dims{index_t{1} << 23});
  EXPECT_EQ(plan.chunks_decoded, std::uint64_t{1} << 39);
  EXPECT_EQ(plan.chunks_encoded, std::uint64_t{1} << 36);
  const rechunk_plan whole = plan_rechunk(from, {INT64_MAX});
  EXPECT_EQ(whole.block_shape, dims{length});
  EXPECT_EQ(whole.chunks_encoded, 1U);
}

TEST_F(Rechunk, PlansCountTheChunksThatBlocksMeet) {
  std::mt19937 random(5);
  const auto up_to = [&](index_t n) { return static_cast<index_t>(random()) % n + 1; };
  int two = 0;
  for (int turn = 0; turn < 60; ++turn) {
    const dims shape{up_to(60), up_to(60)};
    const dims old_chunk{up_to(shape[0]), up_to(shape[1])};
    const dims new_chunk{up_to(20), up_to(20)};
    SCOPED_TRACE(to_string(shape) + " from " + to_string(old_chunk) + " to " +
                 to_string(new_chunk));
    write_source(shape, old_chunk);
    executor on({.threads = 2, .memory_bytes = std::size_t{2} << 10});  // blocks of 64 elements
    const executor::scope within(on);
    const rechunk_plan planned = plan_rechunk(at("a"), new_chunk);
    const std::uint64_t once = chunks_of_all_blocks(shape, shape, old_chunk);
    const std::uint64_t met = chunks_of_all_blocks(shape, planned.block_shape, old_chunk);
    EXPECT_EQ(planned.passes, met > 2 * once ? 2 : 1);
    EXPECT_EQ(planned.chunks_decoded, planned.passes == 2 ? once : met);
    EXPECT_EQ(planned.chunks_encoded, chunks_of_all_blocks(shape, shape, new_chunk));
    for (index_t axis = 0; axis < 2; ++axis)
      EXPECT_TRUE(planned.block_shape[axis] % new_chunk[axis] == 0 ||
                  planned.block_shape[axis] == shape[axis]);
    two += planned.passes == 2 ? 1 : 0;
    copied(new_chunk);
    transaction removal = file_.begin();
    removal.remove("a");
    removal.commit();
    if (HasFailure()) break;
  }
  EXPECT_GT(two, 0);
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Rechunk, ConvertsElementsAndKeepsAbsentChunksAbsent) {
  transaction change = file_.begin();
  change.create("a", spec({40, 40}, {1, 40})).write({{0, 0}, {3, 40}}, expr(9));
  change.commit();
  executor on({.threads = 2, .memory_bytes = std::size_t{8} << 10});
  const executor::scope within(on);
  transaction next = file_.begin();
  array_spec wider = spec({40, 40}, {10, 10});
  wider.dtype = dtype::float64;
  rechunk(at("a"), next.create("b", wider));
  next.commit();
  const tensor read = at("b").read();
  for (index_t row = 0; row < 40; ++row)
    ASSERT_EQ(read.at({row, 17}), scalar(row < 3 ? 9.0 : 0.0)) << row;
  EXPECT_EQ(at("b").stored_chunks().size(), 4U);
}

TEST_F(Rechunk, FailuresLeaveTheTransactionAsItIs) {
  write_source({96, 96}, {1, 96});
  executor on({.threads = 2, .memory_bytes = std::size_t{64} << 10});
  const executor::scope within(on);
  const array from = at("a");
  transaction change = file_.begin();
  const writable_array to = change.create("b", spec({96, 96}, {96, 1}));
  on.cancel();
  EXPECT_EQ(code_of([&] { rechunk(from, to); }), errc::cancelled);
  on.resume();
  EXPECT_EQ(rechunk(from, to).passes, 2);
  EXPECT_TRUE(equal_bits(change.find("b")->read(), counting({96, 96}, dtype::int32)));
  test::flip_byte(path_, from.stored_chunks().at(50).offset);
  const std::string text = test::text_of([&] { rechunk(from, to); });
  EXPECT_NE(text.find("chunk (50, 0) of 'a'"), std::string::npos) << text;
  EXPECT_NE(text.find("[corrupt]"), std::string::npos) << text;
  change.abort();
  EXPECT_EQ(code_of([&] { rechunk(from, to); }), errc::invalid_argument) << "it has ended";
  EXPECT_FALSE(file_.latest().find("b"));
}

// Each block of chunks is a pass of its own.
TEST_F(Rechunk, IsOneWriteForACommit) {
  const test::hang_alarm limit;
  write_source({96, 96}, {1, 96});
  for (const bool from_a_thread : {false, true}) {
    const array from = at("a");
    transaction change = file_.begin();
    const writable_array to = change.create_or_replace("b", spec({96, 96}, {96, 1}));
    errc refused{};
    std::thread other;
    test::calling_sink sink([&] {
      if (!from_a_thread) {
        refused = code_of([&] { change.commit(); });
        return;
      }
      other = std::thread([&] { change.commit(); });
      while (code_of([&] { change.find("b"); }) == errc{}) std::this_thread::yield();
    });
    executor on({.threads = 2, .memory_bytes = std::size_t{64} << 10, .progress = &sink});
    {
      const executor::scope within(on);
      EXPECT_EQ(test::text_of([&] { rechunk(from, to); }), "");
    }
    if (other.joinable()) other.join();
    EXPECT_EQ(refused, from_a_thread ? errc{} : errc::invalid_argument);
    if (!from_a_thread) change.commit();
    EXPECT_TRUE(equal_bits(at("b").read(), counting({96, 96}, dtype::int32))) << from_a_thread;
  }
}

// The containers differ, and so do the fill values: what is absent here is stored there.
TEST_F(Rechunk, CopiesFromAnotherContainer) {
  transaction change = file_.begin();
  change.create("a", spec({40, 40}, {8, 8})).write({{0, 0}, {8, 40}}, expr(9));
  change.commit();
  container other = container::create(directory_ / "other.shale");
  transaction there = other.begin();
  array_spec target = spec({40, 40}, {40, 5});
  target.fill_value = 9;
  rechunk(at("a"), there.create("b", target));
  there.commit();
  const array copy = other.latest().at("b");
  EXPECT_TRUE(equal_bits(copy.read(), at("a").read()));
  EXPECT_EQ(copy.stored_chunks().size(), 8U);
  EXPECT_EQ(copy.fill_value(), scalar(9));
  EXPECT_EQ(findings_of(other), "");
}

TEST_F(Rechunk, RefusesWhatHasNoChunksOrNoSuchShape) {
  write_source({8, 8}, {4, 4});
  transaction change = file_.begin();
  const writable_array dense =
      change.create("dense", {.dtype = dtype::int32, .shape = {8, 8}, .kind = array_kind::dense});
  const writable_array shorter = change.create("shorter", spec({8, 7}, {4, 4}));
  const array a = at("a");
  EXPECT_EQ(code_of([&] { rechunk(a, dense); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { rechunk(a, shorter); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              rechunk(*change.find("dense"), change.create("c", spec({8, 8}, {2, 2})));
            }),
            errc::invalid_argument);
  const writable_array same = change.update("a");
  EXPECT_EQ(code_of([&] { rechunk(*change.find("a"), same); }), errc::invalid_argument);
  writable_array moved = change.create("moved", spec({8, 8}, {2, 2}));
  const writable_array target = std::move(moved);
  EXPECT_EQ(code_of([&] { rechunk(a, moved); }), errc::invalid_argument);
  for (const dims& chunk : {dims{4}, dims{4, 0}, dims{-1, 4}})
    EXPECT_EQ(code_of([&] { plan_rechunk(a, chunk); }), errc::invalid_argument) << to_string(chunk);
}

TEST_F(Rechunk, CopiesNothingAndSingleElements) {
  for (const dims& shape : {dims{0, 5}, dims{}}) {
    const dims chunk = dims::filled(shape.size(), 2);
    transaction change = file_.begin();
    const std::string name = "x" + std::to_string(shape.size());
    change.create(name, spec(shape, chunk)).write(expr(counting(shape, dtype::int32)));
    change.create(name + "y", spec(shape, chunk));
    change.commit();
    transaction next = file_.begin();
    EXPECT_EQ(rechunk(at(name), next.update(name + "y")).passes, 1);
    next.commit();
    EXPECT_TRUE(equal_bits(at(name + "y").read(), counting(shape, dtype::int32)));
  }
}

}  // namespace
}  // namespace shale
