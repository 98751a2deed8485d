// Tests which units of a plan belong together, and the states that units of a scan hand on.
#include "parallel/fold/fold_chain.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "parallel/fold/unit_groups.hpp"
#include "support/random_tensors.hpp"

namespace shale::parallel {
namespace {

using test::random_choices;

/// States that are lists of the units whose elements they hold, as text: "(0)(3)".
class listed_units final : public fold_states {
 public:
  static constexpr std::size_t bytes = 256;

  storage make(index_t) const override {
    storage made = storage::allocate(bytes);
    text(made)[0] = '\0';
    return made;
  }
  void merge(storage& into, const storage& from, index_t) const override {
    const std::string all = std::string(text(into)) + text(from);
    ASSERT_LT(all.size(), bytes);
    std::copy(all.c_str(), all.c_str() + all.size() + 1, text(into));
  }
  void deliver(const storage&, const layout&) const override { FAIL() << "nothing is delivered"; }

  static char* text(const storage& states) {
    return reinterpret_cast<char*>(const_cast<std::byte*>(states.data()));
  }
  storage of(index_t unit) const {
    storage made = make(1);
    const std::string only = "(" + std::to_string(unit) + ")";
    std::copy(only.c_str(), only.c_str() + only.size() + 1, text(made));
    return made;
  }
};

/// A plan of units for a scan, or a reduction, along some axes of a random tensor.
struct folded_plan {
  dims shape;
  dims folded;
  plan units;
};

folded_plan random_plan(random_choices& choose, bool one_axis) {
  dims shape, folded, tile;
  const index_t rank = choose(1, 3);
  for (index_t axis = 0; axis < rank; ++axis) {
    shape.push_back(choose(1, 9));
    tile.push_back(choose(1, 5));
    if (!one_axis && choose(0, 1) == 0) folded.push_back(axis);
  }
  if (one_axis) folded.push_back(choose(0, rank - 1));
  std::vector<plan_operand> operands{{layout(shape), 4}};
  const region whole{dims::filled(rank, 0), shape};
  for (const plan_operand& operand : fold_operands(whole, shape, folded, one_axis))
    operands.push_back(operand);
  return {shape, folded, plan(operands, {.keep_axes = true, .tile_shape = tile})};
}

bool is_folded(const folded_plan& made, index_t axis) {
  return std::find(made.folded.begin(), made.folded.end(), axis) != made.folded.end();
}

// units.1: units of one group differ along folded axes only, and their leaves count through these.
TEST(UnitGroups, AreUnitsOfTheSameResults) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const folded_plan made = random_plan(choose, false);
    const unit_groups groups(made.units);
    std::map<index_t, std::vector<index_t>> kept_starts;
    std::set<std::pair<index_t, index_t>> places;
    for (index_t unit = 0; unit < made.units.tile_count(); ++unit) {
      const region box = made.units.tile(unit);
      const auto [group, leaf] = groups.place_of(unit);
      ASSERT_TRUE(places.insert({group, leaf}).second);
      ASSERT_LT(leaf, groups.leaves());
      std::vector<index_t> starts;
      index_t results = 1;
      for (index_t axis = 0; axis < made.shape.size(); ++axis) {
        // An axis of length 1 has no stride, so it may count as folded.
        if (is_folded(made, axis) || made.shape[axis] == 1) continue;
        starts.push_back(box.start[axis]);
        results *= box.shape[axis];
      }
      EXPECT_EQ(groups.results(box), results);
      EXPECT_EQ(groups.place_of_results(box).size(), results);
      const auto [known, is_new] = kept_starts.emplace(group, starts);
      EXPECT_EQ(known->second, starts);
    }
    EXPECT_EQ(static_cast<index_t>(places.size()),
              static_cast<index_t>(kept_starts.size()) * groups.leaves());
  }
}

// chain.1, chain.2: in ascending order, no unit waits, and each gets its predecessors in order.
TEST(FoldChain, GivesEachUnitWhatLiesBeforeIt) {
  const listed_units states;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const folded_plan made = random_plan(choose, true);
    const unit_groups groups(made.units);
    fold_chain chain(groups, states);
    std::map<index_t, std::string> before;  // by group
    for (index_t unit = 0; unit < made.units.tile_count(); ++unit) {
      const index_t group = groups.place_of(unit).group;
      EXPECT_EQ(chain.has_successor(unit), groups.place_of(unit).leaf + 1 < groups.leaves());
      const storage got = chain.take(unit, states.of(unit), 1);
      ASSERT_TRUE(got);
      EXPECT_EQ(std::string(listed_units::text(got)), before[group]);
      before[group] += "(" + std::to_string(unit) + ")";
    }
  }
}

struct line_of_units {
  explicit line_of_units(index_t units)
      : over(
            [&] {
              std::vector<plan_operand> operands{{layout({units}), 4}};
              for (const plan_operand& operand : fold_operands({{0}, {units}}, {units}, {0}, true))
                operands.push_back(operand);
              return operands;
            }(),
            {.keep_axes = true, .tile_shape = dims{1}}),
        groups(over) {}

  plan over;
  unit_groups groups;
};

TEST(FoldChain, WaitsForUnitsThatComeLater) {
  const listed_units states;
  const line_of_units line(40);
  fold_chain chain(line.groups, states);
  std::vector<std::string> got(40);
  std::vector<std::thread> threads;
  for (index_t unit = 39; unit >= 0; --unit)
    threads.emplace_back([&, unit] {
      got[static_cast<std::size_t>(unit)] =
          listed_units::text(chain.take(unit, states.of(unit), 1));
    });
  for (std::thread& thread : threads) thread.join();
  std::string wanted;
  for (index_t unit = 0; unit < 40; ++unit) {
    EXPECT_EQ(got[static_cast<std::size_t>(unit)], wanted);
    wanted += "(" + std::to_string(unit) + ")";
  }
}

// chain.3
TEST(FoldChain, NobodyWaitsAfterAFailure) {
  const listed_units states;
  const line_of_units line(8);
  fold_chain chain(line.groups, states);
  std::atomic<int> released = 0;
  std::vector<std::thread> threads;
  for (index_t unit = 2; unit < 8; ++unit)
    threads.emplace_back([&, unit] {
      if (!chain.take(unit, states.of(unit), 1)) ++released;
    });
  chain.loop_failed();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(released, 6);
  EXPECT_FALSE(chain.take(5, states.of(5), 1));
}

}  // namespace
}  // namespace shale::parallel
