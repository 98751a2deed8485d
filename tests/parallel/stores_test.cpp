#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <vector>

#include "parallel/blocks/nontemporal_copy.hpp"
#include "parallel/stores/store_choice.hpp"
#include "shale/tensor.hpp"
#include "support/random_layouts.hpp"

namespace shale::parallel {
namespace {

TEST(NontemporalCopy, CopiesAnyLengthToAnyAlignment) {
  test::random_choices choose(7);
  std::vector<std::byte> from(5000);
  for (std::byte& value : from) value = static_cast<std::byte>(choose(1, 255));
  for (int round = 0; round < 2000; ++round) {
    const auto bytes = static_cast<std::size_t>(choose(0, round % 2 == 0 ? 200 : 4000));
    const auto source = static_cast<std::size_t>(choose(0, 127));
    const auto target = static_cast<std::size_t>(choose(0, 127));
    std::vector<std::byte> to(5000), wanted(5000);
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source), bytes,
                wanted.begin() + static_cast<std::ptrdiff_t>(target));
    copy_nontemporally(to.data() + target, from.data() + source, bytes);
    order_nontemporal_stores();
    ASSERT_EQ(to, wanted) << bytes << " bytes from " << source << " to " << target;
  }
}

// Runs units of a trial until it has decided. `cost` is the time of a unit of each mode.
store_mode decision_of(store_trial& trial, double ordinary, double nontemporal) {
  while (!trial.decision()) {
    const store_mode mode = trial.next(2);
    trial.add(mode, mode == store_mode::nontemporal ? nontemporal : ordinary);
  }
  return *trial.decision();
}

// The passes until the decision is reviewed.
int passes_until_review(store_trial& trial) {
  for (int passes = 1;; ++passes) {
    trial.pass_begins();
    if (!trial.decision()) return passes;
  }
}

TEST(StoreTrial, TakesWhatIsFaster) {
  store_trial faster, slower, equal;
  EXPECT_EQ(decision_of(faster, 1.0, 0.7), store_mode::nontemporal);
  EXPECT_EQ(decision_of(slower, 1.0, 1.3), store_mode::ordinary);
  EXPECT_EQ(decision_of(equal, 1.0, 0.99), store_mode::ordinary);
}

TEST(StoreTrial, IsNotMisledByFewSlowUnits) {
  store_trial trial;
  for (std::size_t unit = 0; !trial.decision(); ++unit) {
    const store_mode mode = trial.next(1);
    const double usual = mode == store_mode::nontemporal ? 0.7 : 1.0;
    trial.add(mode, unit % 5 == 1 ? 100.0 : usual);
  }
  EXPECT_EQ(trial.decision(), store_mode::nontemporal);
}

TEST(StoreTrial, GivesNeighboursOneMode) {
  store_trial trial;
  std::vector<store_mode> modes;
  for (int unit = 0; unit < 12; ++unit) modes.push_back(trial.next(3));
  for (int unit = 0; unit < 12; ++unit)
    EXPECT_EQ(modes[static_cast<std::size_t>(unit)],
              unit / 3 % 2 == 0 ? store_mode::ordinary : store_mode::nontemporal);
}

// A clear decision is reviewed ever more rarely, a doubtful one soon.
TEST(StoreTrial, IsReviewed) {
  store_trial trial;
  EXPECT_EQ(decision_of(trial, 1.0, 0.7), store_mode::nontemporal);
  EXPECT_EQ(passes_until_review(trial), 16);
  EXPECT_EQ(decision_of(trial, 1.0, 0.7), store_mode::nontemporal);
  EXPECT_EQ(passes_until_review(trial), 64);
  EXPECT_EQ(decision_of(trial, 1.0, 1.3), store_mode::ordinary);
  EXPECT_EQ(passes_until_review(trial), 256);
  EXPECT_EQ(decision_of(trial, 1.0, 1.0), store_mode::ordinary);
  EXPECT_EQ(passes_until_review(trial), 4);
}

// Runs a pass of 48 units that write 4 MiB together, and returns the mode of the last unit. A unit
// of the mode `slow` takes longer.
store_mode last_mode(store_pattern pattern, store_mode slow) {
  const tensor out = tensor::empty({1 << 20}, dtype::float32);
  const std::array operands{loop_operand{out, true}};
  store_choice stores(operands, pattern, true, 1);
  store_mode last{};
  for (int unit = 0; unit < 49; ++unit)
    stores.run(out.size_bytes() / 48, [&](store_mode mode) {
      last = mode;
      std::this_thread::sleep_for(std::chrono::microseconds(mode == slow ? 2000 : 50));
    });
  return last;
}

// A kernel that is slower than memory says nothing about the stores of others.
TEST(StoreChoice, IsMadeForEachPattern) {
  EXPECT_EQ(last_mode(store_pattern::heavy, store_mode::nontemporal), store_mode::ordinary);
  EXPECT_EQ(last_mode(store_pattern::crossed, store_mode::ordinary),
            has_nontemporal_stores ? store_mode::nontemporal : store_mode::ordinary);
  EXPECT_EQ(last_mode(store_pattern::light, store_mode::nontemporal), store_mode::ordinary);
}

}  // namespace
}  // namespace shale::parallel
