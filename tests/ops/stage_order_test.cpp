// Tests the levels of stages, how long results are held, and that a node is staged once.
#include "ops/evaluation/stage_order.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "ops/evaluation/computed_stages.hpp"
#include "ops/graph/node_access.hpp"
#include "shale/evaluate.hpp"
#include "shale/expr.hpp"
#include "shale/functions.hpp"
#include "shale/linalg.hpp"
#include "shale/manipulation.hpp"
#include "shale/reductions.hpp"
#include "shale/scans.hpp"
#include "shale/take.hpp"
#include "support/random_layouts.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using detail::stage;
using ops::node_of;
using ops::stage_order;
using test::elements_of;
using test::random_choices;

// The numbers 1, 2, 3, … .
tensor counted(const dims& shape) {
  tensor made = tensor::empty(shape, dtype::int64);
  std::int64_t next = 0;
  for (auto& element : made.elements<std::int64_t>()) element = ++next;
  return made;
}

// A sum with more nodes than a view copies: each element and twice the sum of the numbers below
// 1,500.
expr long_sum(const tensor& values) {
  expr result = values;
  for (std::int64_t k = 0; k < 1500; ++k) result = result + 2 * k;
  return result;
}
constexpr std::int64_t long_sum_adds = 1500 * 1499;

// What tells a stage from others. Stages that give a node as it is are one, whichever was made
// first.
const void* identity_of(const stage& made) {
  if (made.reduces || made.scans || made.factor) return &made;
  return made.input.get();
}

// By the identity of a stage: the number of the reader that reads its result last.
using last_readers = std::map<const void*, std::size_t>;

void note_stages_read(const ops::node& value, std::size_t number, last_readers& last,
                      std::set<const ops::node*>& seen) {
  if (!seen.insert(&value).second) return;
  if (const auto* leaf = std::get_if<detail::staged_leaf>(&value.content)) {
    last[identity_of(*leaf->from)] = number;
    return;
  }
  for (const auto& input : ops::inputs_of(value, ops::walk::through_stages))
    note_stages_read(*input, number, last, seen);
}

// Everything that reads results, in the order in which it runs.
std::vector<std::vector<stage_order::reader>> readers_by_level(const ops::stage_levels& levels,
                                                               const std::vector<expr>& outputs) {
  std::vector<std::vector<stage_order::reader>> result;
  for (const auto& level : levels) {
    result.emplace_back();
    for (const auto& made : level) result.back().push_back({made->input.get()});
  }
  result.emplace_back();
  for (const expr& output : outputs) result.back().push_back({node_of(output).get()});
  return result;
}

// Values that are computed from each other in random ways, some of them stages.
std::vector<expr> random_values(random_choices& choose) {
  std::vector<expr> values{counted({4}), counted({4})};
  const auto chosen = [&]() -> const expr& {
    return values[static_cast<std::size_t>(choose(0, static_cast<index_t>(values.size()) - 1))];
  };
  for (int step = 0; step < 25; ++step) {
    const expr a = chosen(), b = chosen();
    switch (choose(0, 5)) {
      case 0:
        values.push_back(a - sum(b));
        break;
      case 1:
        values.push_back(cumulative_sum(a, 0) + b);
        break;
      case 2:
        values.push_back(cummax(a, 0));
        break;
      case 3:
        values.push_back(take(a, tensor::of<std::int64_t>({3, 0, 0, 1}), 0));
        break;
      default:
        values.push_back(a + b);
    }
  }
  return values;
}

// stages.1, stages.2
TEST(StageOrder, ReleasesResultsAfterTheirLastReaders) {
  random_choices choose(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<expr> values = random_values(choose);
    std::vector<expr> outputs{values.back()};
    while (choose(0, 2) > 0) outputs.push_back(values[static_cast<std::size_t>(choose(2, 26))]);
    stage_order ordered;
    for (const expr& output : outputs) ordered.add(node_of(output));
    const ops::stage_levels levels = ordered.levels();
    const auto readers = readers_by_level(levels, outputs);

    last_readers expected;
    last_readers computed_in;
    for (std::size_t level = 0; level < levels.size(); ++level)
      for (const auto& made : levels[level]) computed_in[identity_of(*made)] = level;
    std::size_t number = 0;
    for (std::size_t level = 0; level < readers.size(); ++level)
      for (const auto& reader : readers[level]) {
        last_readers now;
        std::set<const ops::node*> seen;
        note_stages_read(*reader[0], number, now, seen);
        for (const auto& [read, by] : now) {
          ASSERT_LT(computed_in.at(read), level);
          expected[read] = by;
        }
        ++number;
      }
    last_readers got;
    number = 0;
    for (std::size_t level = 0; level < readers.size(); ++level)
      for (const auto& released : ordered.read_last(readers[level], level)) {
        for (const stage* result : released)
          ASSERT_TRUE(got.emplace(identity_of(*result), number).second) << "released twice";
        ++number;
      }
    ASSERT_EQ(got, expected);
    ASSERT_EQ(got.size(), computed_in.size());
  }
}

// stages.3: without it, the chain is walked once for each of the outputs.
TEST(StageOrder, LooksAtNodesOnceForAllReaders) {
  const expr x = counted({10});
  expr common = x - sum(x);
  for (int k = 0; k < 500; ++k) common = common * 3;
  std::vector<expr> outputs;
  for (int k = 0; k < 100; ++k) outputs.push_back(common + k);
  stage_order ordered;
  for (const expr& output : outputs) ordered.add(node_of(output));
  const ops::stage_levels levels = ordered.levels();
  ASSERT_EQ(levels.size(), 1u);
  ASSERT_EQ(levels[0].size(), 1u);
  const auto readers = readers_by_level(levels, outputs);
  const auto released = ordered.read_last(readers[1], 1);
  for (std::size_t k = 0; k + 1 < outputs.size(); ++k) EXPECT_TRUE(released[k].empty());
  EXPECT_EQ(released.back(), stage_order::stages{levels[0][0].get()});
  EXPECT_LT(ordered.nodes_looked_at(), 3000u);  // 100 chains have 100,000
}

// stages.2
TEST(StagedOnce, ABroadcastValue) {
  constexpr index_t rows = 20, columns = 10;
  const tensor t = counted({columns}), b = counted({rows, columns});
  const expr w = expr(t) + 3;
  expr r = b;
  for (int k = 0; k < 70; ++k) r = r * w + 1;
  const auto planned = explain(r);
  EXPECT_EQ(planned.passes, 2);
  EXPECT_EQ(planned.staged_bytes_max, columns * sizeof(std::int64_t));
  const auto got = elements_of<std::int64_t>(eval(r));
  for (index_t i = 0; i < rows * columns; ++i) {
    auto expected = static_cast<std::uint64_t>(i + 1);
    for (int k = 0; k < 70; ++k)
      expected = expected * static_cast<std::uint64_t>(i % columns + 4) + 1;
    ASSERT_EQ(got[static_cast<std::size_t>(i)], static_cast<std::int64_t>(expected));
  }
}

// stages.2, graph.3
TEST(StagedOnce, AGraphThatIsTooLargeToCopy) {
  const tensor t = counted({50});
  const expr c = long_sum(t);
  const expr doubled = c.narrow(0, 1, 49) + c.narrow(0, 0, 49) + c.flip({0}).narrow(0, 0, 49);
  EXPECT_EQ(explain(doubled).staged_bytes_max, 50 * sizeof(std::int64_t));
  const auto got = elements_of<std::int64_t>(eval(doubled));
  for (std::int64_t i = 0; i < 49; ++i)
    ASSERT_EQ(got[static_cast<std::size_t>(i)], (i + 2) + (i + 1) + (50 - i) + 3 * long_sum_adds);
}

// stages.2
TEST(StagedOnce, AnInputOfGenerators) {
  const tensor t = counted({6});
  const expr v = expr(t) * 5;
  const expr first = tensor::of<std::int64_t>({0, 1, 2});
  const expr second = tensor::of<std::int64_t>({5, 5, 4});
  const std::vector<std::pair<expr, std::vector<std::int64_t>>> cases{
      {take(v, first, 0) + take(v, second, 0), {35, 40, 40}},
      {concat(std::vector<expr>{v, v}, 0), {5, 10, 15, 20, 25, 30, 5, 10, 15, 20, 25, 30}},
      {tile(v, {2}) + repeat(v, 2, 0), {10, 15, 25, 30, 40, 45, 25, 30, 40, 45, 55, 60}},
      {take(v, first, 0) + repeat(v, 2, 0).narrow(0, 0, 3), {10, 15, 25}},
      {correlate(v, tensor::of<std::int64_t>({1, 1})) +
           correlate(v, tensor::of<std::int64_t>({1, 0})),
       {20, 35, 50, 65, 80}},
  };
  for (std::size_t k = 0; k < cases.size(); ++k) {
    SCOPED_TRACE(k);
    const auto planned = explain(cases[k].first);
    EXPECT_EQ(planned.staged_bytes_max, 6 * sizeof(std::int64_t)) << planned.text;
    EXPECT_EQ(elements_of<std::int64_t>(eval(cases[k].first)), cases[k].second);
  }
}

// stages.2: the stages have different shapes.
TEST(StagedOnce, AReshapedValue) {
  const expr v = expr(counted({3, 4})).swapaxes(0, 1) + 1;
  const expr folded = sum(v.reshape({12})) * 100 + sum(v.reshape({2, 6}).narrow(0, 0, 1));
  // The value, both sums.
  EXPECT_EQ(explain(folded).staged_bytes_max, (12 + 2) * sizeof(std::int64_t));
  // By columns, the first six are 2, 6, 10, 3, 7 and 11.
  EXPECT_EQ(eval(folded).item().as<std::int64_t>(), 9000 + 39);
}

TEST(StagedOnce, BothFactorsOfAProduct) {
  const expr v = expr(counted({2, 2})) - 1;
  EXPECT_EQ(explain(matmul(v, v)).staged_bytes_max, 2 * 4 * sizeof(std::int64_t));
  EXPECT_EQ(elements_of<std::int64_t>(eval(matmul(v, v))),
            (std::vector<std::int64_t>{2, 3, 6, 11}));
}

// stages.2
TEST(StagedOnce, ForCallersThatEvaluatePartByPart) {
  const tensor t = counted({4}), b = counted({5, 4});
  const expr w = expr(t) + 1;
  const expr value = (expr(b) * w + w) * w + take(w, tensor::of<std::int64_t>({3, 2, 1, 0}), 0);
  const expr ready = ops::with_computed_stages(value);
  std::set<const std::byte*> computed;
  for (const auto& part : ops::post_order(node_of(ready), ops::walk::through_stages)) {
    EXPECT_FALSE(std::holds_alternative<detail::staged_leaf>(part->content));
    if (const auto* leaf = std::get_if<detail::tensor_leaf>(&part->content))
      computed.insert(leaf->values.storage().data());
  }
  EXPECT_EQ(computed.size(), 3u);  // b, w and the indices
  EXPECT_EQ(elements_of<std::int64_t>(eval(ready)), elements_of<std::int64_t>(eval(value)));
}

}  // namespace
}  // namespace shale
