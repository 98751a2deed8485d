// Tests random sequences of changes to chunked arrays, of their shapes above all, against plain
// vectors.
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "array/plain_array.hpp"
#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "support/instrumented.hpp"
#include "support/long_run.hpp"

namespace shale {
namespace {

using test::findings_of;
using test::plain;
using test::read_plain;

class history {
 public:
  history(container& file, unsigned seed) : file_(file), random_(seed) {}

  void run(int commits) {
    for (int i = 0; i < commits && !testing::Test::HasFailure(); ++i) {
      std::map<std::string, plain> changed = told_;
      transaction change = file_.begin();
      for (index_t left = pick(4) + 1; left > 0; --left) step(change, changed);
      if (pick(5) == 0) {
        change.abort();
      } else {
        change.commit();
        told_ = changed;
        held_.emplace_back(file_.latest(), told_);
      }
      compare();
      if (held_.size() > 6) held_.erase(held_.begin() + pick(6));
    }
    EXPECT_EQ(findings_of(file_), "");
  }

 private:
  index_t pick(index_t below) { return static_cast<index_t>(random_()) % below; }

  dims random_shape(index_t rank) {
    dims shape;
    for (index_t axis = 0; axis < rank; ++axis) shape.push_back(pick(rank == 3 ? 8 : 14));
    return shape;
  }

  plain random_values(const dims& shape) {
    plain made{shape, std::vector<int>(plain::count(shape))};
    const int base = static_cast<int>(pick(1000)) - 3;
    // Runs of the fill value make chunks absent.
    const bool filled = pick(4) == 0;
    for (std::size_t i = 0; i < made.elements.size(); ++i)
      made.elements[i] = filled ? fill : base + static_cast<int>(i);
    return made;
  }

  void step(transaction& change, std::map<std::string, plain>& state) {
    const std::string name = "n" + std::to_string(pick(4));
    const auto found = state.find(name);
    if (found == state.end()) {
      const index_t rank = 1 + pick(3);
      dims chunk;
      for (index_t axis = 0; axis < rank; ++axis) chunk.push_back(1 + pick(5));
      const dims shape = random_shape(rank);
      change.create(name, {.dtype = dtype::int32,
                           .shape = shape,
                           .kind = array_kind::chunked,
                           .chunk_shape = chunk,
                           .fill_value = fill});
      state[name] = {shape, std::vector<int>(plain::count(shape), fill)};
      return;
    }
    plain& array = found->second;
    const index_t rank = array.shape.size();
    switch (pick(8)) {
      case 0:
        change.remove(name);
        state.erase(found);
        return;
      case 1: {
        const std::string other = "m" + std::to_string(pick(3));
        if (state.contains(other)) return;
        change.rename(name, other);
        auto moved = state.extract(found);
        moved.key() = other;
        state.insert(std::move(moved));
        return;
      }
      case 2:
      case 3: {
        const dims shape = random_shape(rank);
        change.resize(name, shape);
        array.resize(shape, fill);
        return;
      }
      case 4:
      case 5: {
        const index_t axis = pick(rank);
        dims added = array.shape;
        dims start = dims::filled(rank, 0);
        start[axis] = added[axis];
        added[axis] = pick(6);
        const plain values = random_values(added);
        change.append(name, values.as_tensor(), axis);
        dims shape = array.shape;
        shape[axis] += added[axis];
        array.resize(shape, fill);
        array.write(start, values);
        return;
      }
      default: {
        if (array.elements.empty()) return;
        region part = region::all(array.shape);
        for (index_t axis = 0; axis < rank; ++axis) {
          part.start[axis] = pick(array.shape[axis]);
          part.shape[axis] = 1 + pick(array.shape[axis] - part.start[axis]);
        }
        const plain values = random_values(part.shape);
        change.update(name).write(part, values.as_tensor());
        array.write(part.start, values);
      }
    }
  }

  void compare() const {
    const snapshot now = file_.latest();
    expect(now, told_);
    for (const auto& [view, state] : held_) expect(view, state);
  }

  static void expect(const snapshot& view, const std::map<std::string, plain>& state) {
    std::vector<std::string> names;
    for (const auto& entry : state) names.push_back(entry.first);
    ASSERT_EQ(view.names(), names);
    for (const auto& [name, values] : state)
      ASSERT_EQ(read_plain(view.at(name)), values) << name << to_string(values.shape);
  }

  static constexpr int fill = 4;

  container& file_;
  std::mt19937 random_;
  std::map<std::string, plain> told_;
  std::vector<std::pair<snapshot, std::map<std::string, plain>>> held_;
};

class GrowthHistory : public test::fresh_container {};

TEST_F(GrowthHistory, IsThatOfPlainVectors) {
  const std::uint64_t seeds = test::run_long() ? 300 : test::cases(12);
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    container file = container::create(directory_ / ("history" + std::to_string(seed)));
    history(file, seed).run(40);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace shale
