// Tests how often reads of parts of chunked arrays decode their chunks, and that what is kept
// decoded is what each generation stores.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/memory_pool.hpp"
#include "shale/ops.hpp"
#include "shale/storage.hpp"
#include "shale/stored_chunk.hpp"
#include "shale/take.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::number_at;

// The array "x" has 4 x 3 chunks of 1 KiB.
class DecodedChunks : public test::fresh_container {
 protected:
  static constexpr index_t rows = 64;
  static constexpr index_t columns = 48;
  static constexpr index_t extent = 16;
  static constexpr std::size_t chunk_bytes = 16 * 16 * sizeof(int);
  static constexpr std::size_t kept_bytes = chunk_bytes + 1024;  // of a chunk that is kept

  DecodedChunks() { write_new("x", spec(), counting({rows, columns}, dtype::int32)); }

  static array_spec spec() {
    return {.dtype = dtype::int32,
            .shape = {rows, columns},
            .kind = array_kind::chunked,
            .chunk_shape = dims{extent, extent}};
  }

  static int expected(index_t row, index_t column) { return number_at(row * columns + column); }

  static int read_element(const array& stored, index_t row, index_t column) {
    return stored.read({{row, column}, {1, 1}}).elements<const int>()[0];
  }

  // Reads one element of each chunk, and returns how many of them are not as expected.
  static int read_each_chunk(const array& stored) {
    int wrong = 0;
    for (index_t row = 3; row < rows; row += extent)
      for (index_t column = 5; column < columns; column += extent)
        wrong += read_element(stored, row, column) != expected(row, column) ? 1 : 0;
    return wrong;
  }

  static std::uint64_t decoded(const executor& on) { return on.statistics().tiles_decoded; }
};

TEST_F(DecodedChunks, SingleElementsDecodeTheirChunkOnce) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  for (index_t row = 16; row < 26; ++row)
    for (index_t column = 32; column < 42; ++column)
      ASSERT_EQ(read_element(at("x"), row, column), expected(row, column));
  const executor_statistics did = on.statistics();
  EXPECT_EQ(did.tiles_decoded, 1U);
  EXPECT_EQ(did.tiles_found, 99U);
  EXPECT_EQ(did.bytes_read, chunk_bytes);
  EXPECT_EQ(did.stored_bytes_read, at("x").read_stored_chunk({1, 2}).size());
  EXPECT_EQ(on.kept_chunk_bytes(), kept_bytes);
}

TEST_F(DecodedChunks, ExpressionsAndReadsFindWhatEachOtherHasDecoded) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  const array stored = at("x");
  EXPECT_EQ(stored.read_at({20, 40}).elements<const int>()[0], expected(20, 40));
  EXPECT_EQ(stored.read_at({21, slice{33, 40, 3}}).elements<const int>()[1], expected(21, 36));
  EXPECT_EQ(eval(expr(stored).index({17, 47}) + 1).elements<const int>()[0], expected(17, 47) + 1);
  EXPECT_EQ(read_element(stored, 31, 32), expected(31, 32));
  EXPECT_EQ(decoded(on), 1U);
  EXPECT_EQ(on.statistics().tiles_found, 3U);
}

// Points in three chunks, one of them absent; the second call finds what the first has decoded.
TEST_F(DecodedChunks, ArePointsThatCallsFindAgain) {
  transaction change = file_.begin();
  change.update("x").write({{0, 0}, {extent, extent}}, expr(0));
  change.commit();
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  const expr x(at("x"));
  const tensor points = tensor::of<std::int64_t>({{3, 5}, {20, 40}, {63, 0}, {21, 41}, {4, 4}});
  const std::vector<int> wanted{0, expected(20, 40), expected(63, 0), expected(21, 41), 0};
  for (int turn = 0; turn < 2; ++turn) {
    const tensor got = eval(gather_nd(x, points));
    for (std::size_t k = 0; k < wanted.size(); ++k)
      EXPECT_EQ(got.elements<const int>()[k], wanted[k]);
  }
  const auto did = on.statistics();
  EXPECT_EQ(did.tiles_found, 2U);
  EXPECT_EQ(did.tiles_decoded, 3U + 1);  // an absent chunk is filled each time
  EXPECT_EQ(on.kept_chunk_bytes(), 2 * kept_bytes);
  EXPECT_EQ(eval(take(x, tensor::of<std::int64_t>({22}), 0)).elements<const int>()[41],
            expected(22, 41));
  EXPECT_EQ(on.statistics().tiles_decoded, 4U + 2);
}

// decoded.1
TEST_F(DecodedChunks, AreDecodedOnceByAllThreads) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      const executor::scope within(on);
      const array stored = at("x");
      std::mt19937 random(seed);
      wrong += read_each_chunk(stored);
      for (int turn = 0; turn < 200; ++turn) {
        const auto row = static_cast<index_t>(random() % rows);
        const auto column = static_cast<index_t>(random() % columns);
        wrong += read_element(stored, row, column) != expected(row, column) ? 1 : 0;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(decoded(on), 12U);
  EXPECT_EQ(on.statistics().tiles_found, 4U * (12 + 200) - 12);
}

TEST_F(DecodedChunks, GenerationsShareTheChunksThatTheyHaveInCommon) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const array before = at("x");
  {
    const executor::scope within(on);
    EXPECT_EQ(read_each_chunk(before), 0);
  }
  transaction change = file_.begin();
  change.update("x").write({{16, 16}, {16, 16}}, tensor::full({16, 16}, -1, dtype::int32));
  change.rename("x", "y");
  change.commit();

  const executor::scope within(on);
  const array after = at("y");
  EXPECT_EQ(decoded(on), 12U);
  EXPECT_EQ(read_element(after, 20, 20), -1);
  EXPECT_EQ(decoded(on), 13U);
  EXPECT_EQ(read_each_chunk(after), 1);
  EXPECT_EQ(read_each_chunk(before), 0);
  EXPECT_EQ(decoded(on), 13U);
}

// Raw chunks of one shape have one length. Nobody pins the old generations, so new chunks are
// stored where old ones were.
TEST_F(DecodedChunks, PlacesThatAreUsedAgainAreDecodedAgain) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  array_spec raw = spec();
  raw.shape = {extent, extent};
  raw.codec.compression = std::nullopt;
  const auto all = [](int value) { return tensor::full({extent, extent}, value, dtype::int32); };
  write_new("raw", raw, all(-1));
  constexpr int turns = 12;
  std::set<std::uint64_t> places;
  for (int turn = 1; turn <= turns; ++turn) {
    transaction change = file_.begin();
    change.update("raw").write(expr(all(turn)));
    change.commit();
    const array stored = at("raw");
    EXPECT_EQ(read_element(stored, 5, 5), turn);
    EXPECT_EQ(stored.read_at({7, 3}).elements<const int>()[0], turn);
    places.insert(stored.stored_chunks().at(0).offset);
  }
  EXPECT_LT(places.size(), std::size_t{turns}) << "no place was used again";
  EXPECT_EQ(decoded(on), std::uint64_t{turns});
}

TEST_F(DecodedChunks, TransactionsReadTheirOwnChanges) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  transaction change = file_.begin();
  EXPECT_EQ(read_element(*change.find("x"), 20, 20), expected(20, 20));
  EXPECT_EQ(on.kept_chunk_bytes(), kept_bytes) << "nothing is changed yet";
  const writable_array x = change.update("x");
  for (const int value : {-1, -2, -3}) {
    x.write({{20, 20}, {1, 1}}, tensor::full({1, 1}, value, dtype::int32));
    const array changed = *change.find("x");
    EXPECT_EQ(read_element(changed, 20, 20), value);
    EXPECT_EQ(changed.read_at({20, 20}).elements<const int>()[0], value);
    EXPECT_EQ(read_element(at("x"), 20, 20), expected(20, 20));
  }
  EXPECT_EQ(on.kept_chunk_bytes(), kept_bytes) << "changed chunks are not kept";
  change.commit();
  EXPECT_EQ(read_element(at("x"), 20, 20), -3);
}

TEST_F(DecodedChunks, WholeChunksAreNotKept) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  const array stored = at("x");
  stored.read();
  stored.read({{16, 0}, {32, 48}});
  eval(sum(expr(stored)));
  EXPECT_EQ(on.kept_chunk_bytes(), 0U);
  EXPECT_EQ(decoded(on), 12U + 6 + 12);
}

// While it lives, the default pool has room for half of a block of that size, and no more.
class full_default_pool {
 public:
  explicit full_default_pool(std::size_t block_bytes) {
    memory_pool& pool = memory_pool::default_pool();
    pool.trim();
    // The limit is so large that an eighth of it has room for several chunks: the pool is full
    // because of other storages.
    pool.set_limit_bytes(pool.statistics().mapped_bytes + others_bytes + block_bytes);
    held_.push_back(storage::allocate(others_bytes));
    EXPECT_EQ(code_of([&] {
                for (;;) held_.push_back(storage::allocate(block_bytes));
              }),
              errc::out_of_memory);
    pool.set_limit_bytes(pool.statistics().mapped_bytes + block_bytes / 2);
  }
  ~full_default_pool() { memory_pool::default_pool().set_limit_bytes(0); }
  full_default_pool(const full_default_pool&) = delete;
  full_default_pool& operator=(const full_default_pool&) = delete;

 private:
  static constexpr std::size_t others_bytes = std::size_t{64} << 20;

  std::vector<storage> held_;
};

TEST_F(DecodedChunks, ThatFindNoRoomInTheDefaultPoolAreNotKept) {
  constexpr index_t side = 1000;
  array_spec large = spec();
  large.shape = {side, side};
  large.chunk_shape = dims{512, 512};  // the array's edges cut some of them off
  write_new("large", large, counting({side, side}, dtype::int32));
  memory_pool own;
  executor on({.threads = 2, .memory_bytes = std::size_t{64} << 20});
  const executor::scope within(on.with_pool(own));
  const array stored = at("large");
  {
    const full_default_pool full(std::size_t{512} << 10);
    for (const index_t row : {index_t{700}, index_t{3}, index_t{700}})
      EXPECT_EQ(read_element(stored, row, 9), number_at(row * side + 9));
    EXPECT_EQ(on.kept_chunk_bytes(), 0U);
    EXPECT_EQ(decoded(on), 3U);
  }
  EXPECT_EQ(read_element(stored, 700, 9), number_at(700 * side + 9));
  EXPECT_GT(on.kept_chunk_bytes(), 0U);
}

// A chunk at the edge is encoded and decoded as a whole, and a dense array is read for its
// checksums: in memory from the pool of the call.
TEST_F(DecodedChunks, AreCodedInThePoolOfTheCall) {
  constexpr index_t side = 1000;
  array_spec large = spec();
  large.shape = {side, side};
  large.chunk_shape = dims{512, 512};
  const tensor values = counting({side, side}, dtype::int32);
  memory_pool own;
  const executor on({.threads = 2, .memory_bytes = std::size_t{64} << 20});
  const executor::scope within(on.with_pool(own));
  const full_default_pool full(std::size_t{512} << 10);
  transaction change = file_.begin();
  change.create("chunked", large).write(region::all({side, side}), values);
  change.create("dense", {.dtype = dtype::int32, .shape = {side, side}})
      .write(region::all({side, side}), values);
  change.commit();
  EXPECT_TRUE(equal_bits(at("chunked").read(), values));
  EXPECT_TRUE(equal_bits(at("dense").read(), values));
}

TEST_F(DecodedChunks, CallsThatTouchManyKeepNone) {
  executor on({.threads = 2, .memory_bytes = std::size_t{128} << 10});  // room for 8 chunks
  const executor::scope within(on);
  const array stored = at("x");
  const tensor values = counting({rows, columns}, dtype::int32);
  EXPECT_TRUE(
      equal_bits(stored.read({{1, 1}, {62, 46}}), values.narrow(0, 1, 62).narrow(1, 1, 46)));
  EXPECT_TRUE(equal_bits(stored.read_at({slice{1, 60, 17}, slice{}}),
                         values.sliced(0, {.start = 1, .stop = 60, .step = 17})));
  EXPECT_EQ(on.kept_chunk_bytes(), 0U);
  stored.read({{1, 1}, {30, 30}});
  EXPECT_EQ(on.kept_chunk_bytes(), 4 * kept_bytes);
  EXPECT_EQ(read_each_chunk(stored), 0);
  EXPECT_EQ(on.kept_chunk_bytes(), 8 * kept_bytes);
}

// cache.4: a call holds the chunks that it keeps until it ends. The row alone would be kept.
TEST_F(DecodedChunks, OfAnArrayThatIsReadWholeAsWellAreNotKept) {
  executor on({.threads = 2, .memory_bytes = std::size_t{128} << 10});  // room for 8 chunks
  const executor::scope within(on);
  const array stored = at("x");
  const expr all(stored);
  const expr row = all.narrow(0, 5, 1);
  const tensor before = eval(row - all);
  const tensor after = eval(all - row);
  EXPECT_EQ(on.kept_chunk_bytes(), 0U);
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      const int wanted = expected(i, j) - expected(5, j);
      ASSERT_EQ(after.at({i, j}), scalar(wanted)) << i << ", " << j;
      ASSERT_EQ(before.at({i, j}), scalar(-wanted)) << i << ", " << j;
    }
  eval(row + 1);
  EXPECT_EQ(on.kept_chunk_bytes(), 3 * kept_bytes);
}

// cache.4
TEST_F(DecodedChunks, OfManyArraysOfOneCallAreKeptWhileTheyFitTogether) {
  constexpr int count = 6;
  executor on({.threads = 2, .memory_bytes = std::size_t{128} << 10});  // room for 8 chunks
  for (int k = 0; k < count; ++k)
    write_new("y" + std::to_string(k), spec(), tensor::full({rows, columns}, k + 1, dtype::int32));
  const executor::scope within(on);
  expr total = expr(0);
  for (int k = 0; k < count; ++k) total = total + expr(at("y" + std::to_string(k))).index({1, 2});
  EXPECT_EQ(eval(total).item(), scalar(1 + 2 + 3 + 4 + 5 + 6));
  EXPECT_EQ(on.kept_chunk_bytes(), 4 * kept_bytes);
}

// The order of a fold follows from the strides of a tile. One at the edge of an array has no gaps
// between its rows, whether the budget lets it be kept or not.
TEST_F(DecodedChunks, AtTheEdgeAreSummedInOneOrder) {
  std::mt19937 random(3);
  const tensor values = tensor::empty({64, 100}, dtype::float64);
  for (double& value : values.elements<double>())
    value = static_cast<double>(random()) / 4294967296.0 + 0.5;
  write_new("edge",
            {.dtype = dtype::float64,
             .shape = {64, 100},
             .kind = array_kind::chunked,
             .chunk_shape = dims{64, 64}},
            values);
  const expr part = expr(at("edge")).narrow(0, 0, 63).narrow(1, 64, 36);
  executor small({.threads = 1, .memory_bytes = std::size_t{256} << 10});
  executor large({.threads = 1, .memory_bytes = std::size_t{8} << 20});
  for (const expr& folded : {sum(part), prod(part), prod(part, dims{0})}) {
    const auto by = [&](const executor& on) {
      const executor::scope within(on);
      return eval(folded);
    };
    const tensor unkept = by(small);
    EXPECT_TRUE(equal_bits(by(large), unkept));
    EXPECT_TRUE(equal_bits(by(large), unkept));  // it is found
  }
  EXPECT_EQ(small.kept_chunk_bytes(), 0U);
  EXPECT_GT(large.kept_chunk_bytes(), 0U);
}

// decoded.2
TEST_F(DecodedChunks, DamagedOnesAreReportedEachTime) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  const array stored = at("x");
  const std::uint64_t place = stored.stored_chunks(dims{0, 0}, 1).at(0).offset;  // of chunk (0, 1)
  test::flip_byte(path_, place);
  for (int turn = 0; turn < 2; ++turn) {
    const std::string text = test::text_of([&] { read_element(stored, 2, 17); });
    EXPECT_NE(text.find("read chunk (0, 1) of 'x'"), std::string::npos) << text;
    EXPECT_NE(text.find("[corrupt]"), std::string::npos) << text;
    EXPECT_EQ(code_of([&] { stored.read_at({2, 17}); }), errc::corrupt);
  }
  EXPECT_EQ(on.kept_chunk_bytes(), 0U);
  test::flip_byte(path_, place);
  EXPECT_EQ(read_element(stored, 2, 17), expected(2, 17));
  EXPECT_EQ(decoded(on), 1U);
}

TEST_F(DecodedChunks, AbsentOnesReadAsTheFillValue) {
  array_spec sparse = spec();
  sparse.fill_value = 7;
  transaction change = file_.begin();
  change.create("sparse", sparse);
  change.commit();
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  const array stored = at("sparse");
  const tensor part = stored.read({{10, 10}, {20, 20}});
  EXPECT_TRUE(equal_bits(part, tensor::full({20, 20}, 7, dtype::int32)));
  EXPECT_EQ(stored.read_at({63, 47}).elements<const int>()[0], 7);
  EXPECT_EQ(on.kept_chunk_bytes(), 0U);
}

TEST_F(DecodedChunks, ShapesThatGrowAndShrinkReadTheirOwnElements) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  const auto resized = [&](const dims& shape) {
    transaction change = file_.begin();
    change.resize("x", shape);
    change.commit();
    return at("x");
  };
  const array cut = resized({60, 40});
  EXPECT_EQ(read_element(cut, 59, 39), expected(59, 39));
  const std::uint64_t until_cut = decoded(on);
  const array grown = resized({64, 48});
  EXPECT_EQ(read_element(grown, 59, 39), expected(59, 39));
  EXPECT_EQ(read_element(grown, 59, 40), 0);
  EXPECT_EQ(grown.read_at({60, 39}).elements<const int>()[0], 0);
  EXPECT_EQ(decoded(on), until_cut + 1) << "the same chunk is not cut off any more";
  EXPECT_EQ(read_element(resized({50, 35}), 49, 34), expected(49, 34));
  EXPECT_EQ(read_element(resized({64, 48}), 59, 39), 0);
  EXPECT_EQ(read_element(cut, 59, 39), expected(59, 39));
}

// decoded.4
TEST_F(DecodedChunks, GoWithTheLastHandleOfTheirContainer) {
  executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(on);
  std::optional<array> last;
  {
    const container second = container::open(path_, open_mode::read);
    last = second.latest().at("x");
    read_element(*last, 0, 0);
    read_element(at("x"), 0, 0);
  }
  EXPECT_EQ(on.kept_chunk_bytes(), 2 * kept_bytes) << "each container has its own";
  read_element(*last, 1, 1);
  EXPECT_EQ(decoded(on), 2U);
  last.reset();
  EXPECT_EQ(on.kept_chunk_bytes(), kept_bytes);
  on.forget_chunks();
  EXPECT_EQ(on.kept_chunk_bytes(), 0U);
  EXPECT_EQ(read_element(at("x"), 0, 0), expected(0, 0));
  EXPECT_EQ(decoded(on), 3U);
}

// Reads of old and new generations, beside commits, with room for few chunks.
TEST_F(DecodedChunks, HistoriesReadWhatEachGenerationStores) {
  executor on({.threads = 2, .memory_bytes = std::size_t{96} << 10});  // room for 6 chunks
  const executor::scope within(on);
  std::mt19937 random(17);
  const auto below = [&](index_t n) { return static_cast<index_t>(random()) % n; };
  std::vector<std::pair<array, tensor>> generations;
  generations.emplace_back(at("x"), counting({rows, columns}, dtype::int32));
  for (int turn = 0; turn < 400; ++turn) {
    const region part{{below(rows), below(columns)}, {1, 1}};
    region box = part;
    box.shape = {1 + below(std::min<index_t>(20, rows - part.start[0])),
                 1 + below(std::min<index_t>(20, columns - part.start[1]))};
    const auto& [stored, values] = generations[random() % generations.size()];
    const region& chosen = turn % 2 == 0 ? part : box;
    const tensor wanted = values.narrow(0, chosen.start[0], chosen.shape[0])
                              .narrow(1, chosen.start[1], chosen.shape[1]);
    ASSERT_TRUE(equal_bits(stored.read(chosen), wanted)) << turn;
    ASSERT_LE(on.kept_chunk_bytes(), 6 * kept_bytes);
    if (turn % 20 != 19) continue;
    const tensor next = generations.back().second.clone();
    fill(next.narrow(0, box.start[0], box.shape[0]).narrow(1, box.start[1], box.shape[1]), turn);
    transaction change = file_.begin();
    change.update("x").write(expr(next));
    change.commit();
    generations.emplace_back(at("x"), next);
    if (generations.size() > 4) generations.erase(generations.begin());
  }
  EXPECT_GT(on.statistics().tiles_found, 0U);
}

}  // namespace
}  // namespace shale
