// Tests that kernels of random numbers give the same bits for every instruction set, and for every
// way to ask for a position (random.1).
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ops/kernels/dispatch/dispatch.hpp"

namespace shale::test {
namespace {

using ops::distribution;
using ops::random_draw;
using ops::random_kernel;

struct drawn_as {
  distribution kind;
  dtype type;
};

std::vector<drawn_as> all_kernels() {
  std::vector<drawn_as> result;
  for (const distribution kind :
       {distribution::uniform, distribution::normal, distribution::log_normal,
        distribution::exponential, distribution::cauchy})
    for (const dtype type : {dtype::float32, dtype::float64}) result.push_back({kind, type});
  result.push_back({distribution::geometric, dtype::float64});
  result.push_back({distribution::bernoulli, dtype::boolean});
  for (const distribution kind :
       {distribution::integers, distribution::integers_of_64, distribution::words})
    result.push_back({kind, dtype::uint64});
  return result;
}

random_draw some_draw(distribution kind, std::uint64_t seed) {
  random_draw draw;
  draw.seed = seed;
  draw.first = kind == distribution::geometric ? 0.01 : 1.7;
  draw.second = 3.3;
  draw.highest = 4.9999;
  draw.whole = std::uint64_t{1} << 62;
  draw.count = kind == distribution::integers ? 0xfedcba98u : 0xfedcba9876543210u;
  return draw;
}

using bytes = std::vector<std::byte>;

const random_kernel& kernel_of(ops::isa set, const drawn_as& what) {
  const auto& table = ops::kernels_for(set);
  return table.random[static_cast<int>(what.kind)][static_cast<int>(what.type)];
}

bytes run(ops::isa set, const drawn_as& what, const random_draw& draw, std::uint64_t first,
          std::int64_t count) {
  bytes result(static_cast<std::size_t>(count) * item_bytes(what.type));
  kernel_of(set, what).run(draw, first, count, result.data());
  return result;
}

bytes gathered(ops::isa set, const drawn_as& what, const random_draw& draw,
               const std::vector<std::uint64_t>& positions) {
  bytes result(positions.size() * item_bytes(what.type));
  kernel_of(set, what).gather(draw, positions.data(), static_cast<std::int64_t>(positions.size()),
                              result.data());
  return result;
}

TEST(RandomKernels, GiveTheSameBitsForEveryInstructionSet) {
  std::mt19937_64 choose(3);
  for (const drawn_as& what : all_kernels())
    for (int trial = 0; trial < 20; ++trial) {
      const random_draw draw = some_draw(what.kind, choose());
      const std::uint64_t first = trial == 0 ? 0 : choose();
      const auto count = static_cast<std::int64_t>(trial == 0 ? 100000 : choose() % 700);
      const bytes wanted = run(ops::isa::baseline, what, draw, first, count);
      for (const ops::isa set : {ops::isa::avx2, ops::isa::avx512})
        if (ops::supports(set)) {
          ASSERT_TRUE(run(set, what, draw, first, count) == wanted)
              << ops::name(set) << ", distribution " << static_cast<int>(what.kind) << ", "
              << name(what.type) << ", trial " << trial;
        }
    }
}

TEST(RandomKernels, GiveAPositionTheSameBitsInEveryRun) {
  std::mt19937_64 choose(4);
  for (const ops::isa set : {ops::isa::baseline, ops::isa::avx2, ops::isa::avx512}) {
    if (!ops::supports(set)) continue;
    for (const drawn_as& what : all_kernels()) {
      const std::size_t item = item_bytes(what.type);
      const random_draw draw = some_draw(what.kind, choose());
      constexpr std::uint64_t first = 0xfffffff0;  // positions cross 2^32
      const bytes all = run(set, what, draw, first, 1000);
      for (int trial = 0; trial < 50; ++trial) {
        const auto start = choose() % 1000;
        const auto count = choose() % (1001 - start);
        const bytes part = run(set, what, draw, first + start, static_cast<std::int64_t>(count));
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(start * item);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), from)) << start << " " << count;
      }
      std::vector<std::uint64_t> positions(700);
      for (auto& position : positions) position = first + choose() % 1000;
      const bytes some = gathered(set, what, draw, positions);
      for (std::size_t i = 0; i < positions.size(); ++i)
        ASSERT_EQ(
            std::memcmp(some.data() + i * item, all.data() + (positions[i] - first) * item, item),
            0)
            << ops::name(set) << ", distribution " << static_cast<int>(what.kind) << ", element "
            << i;
    }
  }
}

}  // namespace
}  // namespace shale::test
