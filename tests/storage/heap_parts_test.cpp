// Compares the parts of the pool's heap with models that know nothing about bins and hashes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "storage/pool/heap/block_supply.hpp"
#include "storage/pool/heap/block_table.hpp"
#include "storage/pool/heap/size_bins.hpp"
#include "storage/pool/heap/size_classes.hpp"

namespace shale::detail {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t granule = detail::granule_bytes;

std::byte* address_at(std::size_t number) {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(number));
}

TEST(BlockSupply, GivesDescriptorsThatNobodyElseHas) {
  block_supply supply;
  std::set<pool_block*> held;
  std::mt19937 random(1);
  for (int step = 0; step < 5000; ++step) {
    if (random() % 5 < 3 || held.empty()) {
      pool_block* const got = supply.get();
      ASSERT_NE(got, nullptr);
      ASSERT_TRUE(held.insert(got).second);
    } else {
      const auto victim = held.lower_bound(*std::next(held.begin(), random() % held.size()));
      supply.put(**victim);
      held.erase(victim);
    }
  }
  // The same number of descriptors needs no new memory.
  std::set<pool_block*> before = held;
  for (pool_block* const block : held) supply.put(*block);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before.erase(supply.get()), 1u);
}

// Consecutive addresses, addresses one segment apart, and random addresses.
TEST(BlockTable, AgreesWithAMap) {
  for (const std::size_t stride : {granule, 64 * mib, 3 * granule}) {
    std::mt19937_64 random(stride);
    block_table table;
    std::map<std::size_t, std::unique_ptr<pool_block>> model;
    for (int step = 0; step < 60'000; ++step) {
      // The table grows and shrinks in turns.
      const bool growing = step / 10'000 % 2 == 0;
      const std::size_t address = 64 * mib + random() % 4000 * stride;
      const auto known = model.find(address);
      const pool_block* const found = table.find(address_at(address));
      ASSERT_EQ(found, known == model.end() ? nullptr : known->second.get());
      if (known == model.end() && random() % 8 < (growing ? 7 : 1)) {
        auto fresh = std::make_unique<pool_block>();
        fresh->address = address_at(address);
        ASSERT_TRUE(table.reserve());
        table.insert(*fresh);
        model.emplace(address, std::move(fresh));
      } else if (known != model.end() && random() % 8 < (growing ? 1 : 7)) {
        table.erase(*known->second);
        model.erase(known);
      }
      ASSERT_EQ(table.size(), model.size());
    }
    for (const auto& [address, block] : model) ASSERT_EQ(table.find(block->address), block.get());
  }
}

// Blocks of some sizes in bins, and the same sizes in an ordered model.
class binned_blocks {
 public:
  void insert(std::size_t bytes) {
    auto fresh = std::make_unique<pool_block>();
    fresh->bytes = bytes;
    bins.insert(*fresh);
    blocks.emplace(bytes, std::move(fresh));
  }
  void erase_nth(std::size_t n) {
    const auto victim = std::next(blocks.begin(), static_cast<std::ptrdiff_t>(n % blocks.size()));
    bins.erase(*victim->second);
    blocks.erase(victim);
  }
  // The size of the smallest block that fits; 0 if there is none.
  std::size_t found(std::size_t bytes) const {
    const pool_block* const fit = bins.good_fit(bytes, [](const pool_block&) { return true; });
    return fit == nullptr ? 0 : fit->bytes;
  }
  std::size_t best(std::size_t bytes) const {
    const auto fit = blocks.lower_bound(bytes);
    return fit == blocks.end() ? 0 : fit->first;
  }
  void expect_the_same_blocks() const {
    std::multiset<std::size_t> seen;
    bins.for_each([&](const pool_block& block) { seen.insert(block.bytes); });
    std::multiset<std::size_t> known;
    for (const auto& [bytes, block] : blocks) known.insert(bytes);
    EXPECT_EQ(seen, known);
    EXPECT_EQ(bins.largest_bytes(), known.empty() ? 0 : *known.rbegin());
  }

  size_bins bins;
  std::multimap<std::size_t, std::unique_ptr<pool_block>> blocks;
};

std::size_t any_granules_bytes(std::mt19937_64& random, double most_log2) {
  std::uniform_real_distribution<double> log2(0, most_log2);
  return static_cast<std::size_t>(std::exp2(log2(random))) * granule;
}

TEST(SizeBins, FitBestAmongFew) {
  std::mt19937_64 random(1);
  binned_blocks tested;
  for (int step = 0; step < 50'000; ++step) {
    // Sizes of all magnitudes up to the largest possible one, with many that are nearly equal.
    const double most_log2 = std::array{39.0, 12.0, 7.0}[step / 1000 % 3];
    if (tested.blocks.size() == 8 || (random() % 2 == 0 && !tested.blocks.empty()))
      tested.erase_nth(random());
    else tested.insert(any_granules_bytes(random, most_log2));
    const std::size_t wanted = any_granules_bytes(random, most_log2);
    ASSERT_EQ(tested.found(wanted), tested.best(wanted)) << wanted;
    if (step % 100 == 0) tested.expect_the_same_blocks();
  }
  EXPECT_EQ(tested.found(size_bins::bytes_max), tested.best(size_bins::bytes_max));
}

TEST(SizeBins, FitWellAmongMany) {
  std::mt19937_64 random(2);
  binned_blocks tested;
  for (int step = 0; step < 50'000; ++step) {
    if (random() % 100 < (step / 10'000 % 2 == 0 ? 60u : 40u) || tested.blocks.empty())
      tested.insert(any_granules_bytes(random, 10));
    else tested.erase_nth(random());
    const std::size_t wanted = any_granules_bytes(random, 10);
    const std::size_t found = tested.found(wanted);
    if (wanted <= 512 * kib - granule) {
      ASSERT_TRUE(found == tested.best(wanted) || tested.best(wanted) >= 512 * kib) << wanted;
    }
    // A block in the bin of the wanted size may be overlooked, but not a block in a larger bin.
    const std::size_t surely = tested.best(wanted + wanted / 32);
    ASSERT_TRUE(found >= wanted || (found == 0 && surely == 0)) << wanted;
    ASSERT_LE(found, surely == 0 ? tested.bins.largest_bytes() : surely + surely / 32) << wanted;
  }
  tested.expect_the_same_blocks();
}

TEST(SizeBins, FindNoneThatDoesNotSuit) {
  binned_blocks tested;
  for (std::size_t i = 1; i <= 12; ++i) tested.insert(i * mib);
  const auto fit = [&](auto suits) {
    const pool_block* const found = tested.bins.good_fit(2 * mib, suits);
    return found == nullptr ? 0 : found->bytes;
  };
  EXPECT_EQ(fit([](const pool_block& block) { return block.bytes % 5 == 0; }), 5 * mib);
  EXPECT_EQ(fit([](const pool_block&) { return false; }), 0u);
}

}  // namespace
}  // namespace shale::detail
