// Tests which tiles an executor keeps decoded, how often threads load them, and when they go.
#include "parallel/executor/decoded_tile_cache.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "shale/error.hpp"
#include "shale/memory_pool.hpp"
#include "support/bounded.hpp"
#include "support/child_threads.hpp"
#include "support/failures.hpp"

namespace shale::parallel {
namespace {

constexpr std::size_t kibibyte = 1024;

// A tile whose bytes all have one value.
tensor bytes_of(int value, std::size_t count) {
  return tensor::full({static_cast<index_t>(count)}, value, dtype::uint8);
}

int first_of(const tensor& tile) { return tile.elements<const std::uint8_t>()[0]; }

class DecodedTiles : public testing::Test {
 protected:
  static stored_tile named(const tile_owner& owner, int number) {
    return {.owner = owner.number(),
            .offset = 64 * static_cast<std::uint64_t>(number),
            .bytes = 10,
            .checksum = 1};
  }

  // Asks for a tile of that size whose bytes are its number. By default, it counts 2 KiB.
  decoded_tile_cache::result get(int number,
                                 std::size_t bytes = 2 * kibibyte -
                                                     decoded_tile_cache::overhead_bytes) {
    return tiles_.get(named(owner_, number), [&] {
      ++loads_;
      return bytes_of(number, bytes);
    });
  }

  // Whether the tile is kept; if not, it is loaded.
  bool finds(int number) {
    const decoded_tile_cache::result made = get(number);
    EXPECT_EQ(first_of(made.values), number);
    return made.found;
  }

  static constexpr std::size_t budget_ = 64 * kibibyte;
  static constexpr std::size_t capacity_ = budget_ / 8;

  memory_tokens tokens_{budget_};
  const tile_owner owner_;
  decoded_tile_cache tiles_{tokens_};
  std::atomic<int> loads_ = 0;
};

// decoded.1. A thread that has begun may come to the tile when it is loaded already, on a busy machine
// all of them may. So there are many tiles.
TEST_F(DecodedTiles, AreLoadedOnceByAllThreads) {
  constexpr int threads = 8;
  for (int number = 0; number < 32; ++number) {
    std::atomic<int> begun = 0;
    std::atomic<int> found = 0;
    std::atomic<int> right = 0;
    std::vector<std::thread> workers;
    workers.reserve(threads);
    for (int k = 0; k < threads; ++k)
      workers.emplace_back([&] {
        ++begun;
        const auto made = tiles_.get(named(owner_, number), [&] {
          while (begun < threads) std::this_thread::yield();
          ++loads_;
          return bytes_of(number, kibibyte);
        });
        found += made.found ? 1 : 0;
        right += first_of(made.values) == number ? 1 : 0;
      });
    for (auto& each : workers) each.join();
    EXPECT_EQ(loads_, number + 1);
    EXPECT_EQ(found, threads - 1);
    EXPECT_EQ(right, threads);
    EXPECT_TRUE(get(number).found);
  }
}

// decoded.2: each call runs its own load once, whether it has waited for another one or not.
TEST_F(DecodedTiles, FailedLoadsAreReportedByEachCallAndLeaveNothing) {
  constexpr int threads = 8;
  std::atomic<int> begun = 0;
  std::mutex mutex;
  std::set<std::string> told;
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int k = 0; k < threads; ++k)
    workers.emplace_back([&, k] {
      ++begun;
      const std::string text = test::text_of([&] {
        tiles_.get(named(owner_, 5), [&]() -> tensor {
          while (begun < threads) std::this_thread::yield();
          ++loads_;
          throw error(errc::corrupt, "load " + std::to_string(k));
        });
      });
      const std::lock_guard lock(mutex);
      told.insert(text);
    });
  for (auto& each : workers) each.join();
  EXPECT_EQ(loads_, threads);
  EXPECT_EQ(told.size(), static_cast<std::size_t>(threads));
  EXPECT_EQ(tiles_.held_bytes(), 0U);
  EXPECT_FALSE(finds(5));
  EXPECT_TRUE(finds(5));
}

// decoded.3
TEST_F(DecodedTiles, TakeAtMostTheirShareAndTheOldestGoFirst) {
  ASSERT_EQ(tiles_.capacity_bytes(), capacity_);
  for (int number = 0; number < 4; ++number) EXPECT_FALSE(finds(number));
  EXPECT_EQ(tiles_.held_bytes(), capacity_);
  EXPECT_EQ(tokens_.held_bytes(), capacity_);
  EXPECT_TRUE(finds(0));
  EXPECT_FALSE(finds(4));  // in the place of 1
  EXPECT_EQ(tiles_.held_bytes(), capacity_);
  for (const int number : {0, 2, 3, 4}) EXPECT_TRUE(finds(number)) << number;
  EXPECT_FALSE(finds(1));  // in the place of 0
  EXPECT_FALSE(finds(0));
  EXPECT_EQ(tokens_.held_bytes(), capacity_);
}

// decoded.3
TEST_F(DecodedTiles, OfFewBytesCountWhatTheirNamesTake) {
  for (int number = 0; number < 100; ++number) get(number, 1);
  EXPECT_EQ(tiles_.held_bytes(), 7 * (1 + decoded_tile_cache::overhead_bytes));
  EXPECT_EQ(tokens_.held_bytes(), tiles_.held_bytes());
  tiles_.clear();
  EXPECT_EQ(tokens_.held_bytes(), 0U);
}

// decoded.3
TEST_F(DecodedTiles, LeaveALimitedPoolToItsOtherUsers) {
  constexpr std::size_t mebibyte = 1024 * kibibyte, share = 512 * mebibyte;
  memory_tokens tokens(8 * share);
  decoded_tile_cache tiles(tokens);
  ASSERT_EQ(tiles.capacity_bytes(), share);
  memory_pool& pool = memory_pool::default_pool();
  ASSERT_EQ(pool.limit_bytes(), 0U);
  pool.set_limit_bytes(256 * mebibyte);
  EXPECT_EQ(tiles.capacity_bytes(), 32 * mebibyte);
  for (int number = 0; number < 6; ++number)
    tiles.get(named(owner_, number), [&] { return bytes_of(number, 8 * mebibyte); });
  EXPECT_EQ(tiles.held_bytes(), 3 * (8 * mebibyte + decoded_tile_cache::overhead_bytes));
  pool.set_limit_bytes(0);
  EXPECT_EQ(tiles.capacity_bytes(), share);
}

TEST_F(DecodedTiles, ThatAreTooLargeReplaceNoOthers) {
  EXPECT_FALSE(finds(0));
  EXPECT_FALSE(get(9, capacity_ + 1).found);
  EXPECT_FALSE(get(9, capacity_ + 1).found);
  EXPECT_EQ(tiles_.held_bytes(), 2 * kibibyte);
  EXPECT_TRUE(finds(0));
}

// decoded.3
TEST_F(DecodedTiles, LeaveRunningCallsWhatTheseHold) {
  for (int number = 0; number < 3; ++number) EXPECT_FALSE(finds(number));
  {
    const held_tokens call(tokens_, budget_ - 6 * kibibyte);
    EXPECT_FALSE(finds(3));  // in the place of 0
    EXPECT_EQ(tokens_.held_bytes(), budget_);
    EXPECT_TRUE(finds(1));
    EXPECT_FALSE(finds(0));
    EXPECT_EQ(tokens_.held_bytes(), budget_);
  }
  EXPECT_EQ(tokens_.held_bytes(), 6 * kibibyte);
  const held_tokens call(tokens_, 2 * budget_);
  EXPECT_FALSE(finds(7));
  EXPECT_FALSE(finds(7)) << "calls hold everything";
}

// decoded.4
TEST_F(DecodedTiles, GoWithTheirOwner) {
  decoded_tile_cache others{tokens_};
  auto owner = std::make_unique<const tile_owner>();
  const stored_tile tile = named(*owner, 1);
  const auto load = [] { return bytes_of(1, kibibyte); };
  tiles_.get(tile, load);
  others.get(tile, load);
  EXPECT_FALSE(finds(1)) << "another owner";
  EXPECT_EQ(tokens_.held_bytes(), 3 * (kibibyte + decoded_tile_cache::overhead_bytes));
  owner.reset();
  EXPECT_EQ(tokens_.held_bytes(), 2 * kibibyte);
  EXPECT_EQ(others.held_bytes(), 0U);
  EXPECT_TRUE(finds(1));
}

TEST_F(DecodedTiles, AreNotKeptIfTheirOwnerGoesWhileTheyAreLoaded) {
  auto owner = std::make_unique<const tile_owner>();
  const auto made = tiles_.get(named(*owner, 1), [&] {
    owner.reset();
    return bytes_of(1, kibibyte);
  });
  EXPECT_EQ(first_of(made.values), 1);
  EXPECT_EQ(tiles_.held_bytes(), 0U);
}

TEST_F(DecodedTiles, AreForgottenOnRequestAndWithTheExecutor) {
  EXPECT_FALSE(finds(0));
  tiles_.clear();
  EXPECT_EQ(tokens_.held_bytes(), 0U);
  EXPECT_FALSE(finds(0));
  {
    decoded_tile_cache others{tokens_};
    others.get(named(owner_, 0), [] { return bytes_of(0, kibibyte); });
    EXPECT_EQ(tokens_.held_bytes(), 3 * kibibyte + decoded_tile_cache::overhead_bytes);
  }
  EXPECT_EQ(tokens_.held_bytes(), 2 * kibibyte);
  EXPECT_TRUE(finds(0));
}

// Two arrays may name the same bytes, and decode them in different ways.
TEST_F(DecodedTiles, DifferByEveryPartOfTheirNames) {
  const stored_tile tile{
      .owner = 1, .offset = 2, .bytes = 3, .checksum = 4, .flags = 5, .form = "int8"};
  std::vector<stored_tile> names(7, tile);
  names[1].owner = 9;
  names[2].offset = 9;
  names[3].bytes = 9;
  names[4].checksum = 9;
  names[5].flags = 9;
  names[6].form = "uint8";
  for (const bool found : {false, true})
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto value = static_cast<int>(k);
      const auto made = tiles_.get(names[k], [&] { return bytes_of(value, 1); });
      EXPECT_EQ(made.found, found) << k;
      EXPECT_EQ(first_of(made.values), value);
    }
}

// decoded.5
TEST_F(DecodedTiles, AreLoadedAnewInAChildThatIsForkedMeanwhile) {
  std::atomic<bool> loading = false;
  std::atomic<bool> let = false;
  std::thread loader([&] {
    tiles_.get(named(owner_, 5), [&] {
      loading = true;
      while (!let) std::this_thread::yield();
      return bytes_of(5, kibibyte);
    });
  });
  while (!loading) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    test::start_no_housekeeper();
    const test::hang_alarm limit;  // the child has no thread that would end the load
    const bool loaded = !finds(5) && finds(5);
    ::_exit(loaded ? 0 : 1);
  }
  let = true;
  loader.join();
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(get(5).found);
}

}  // namespace
}  // namespace shale::parallel
