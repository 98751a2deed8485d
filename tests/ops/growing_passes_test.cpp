// Tests how values join passes.
#include "ops/evaluation/growing_passes.hpp"

#include <gtest/gtest.h>

#include <set>
#include <variant>
#include <vector>

#include "ops/graph/node_access.hpp"
#include "shale/evaluate.hpp"
#include "shale/expr.hpp"
#include "shale/functions.hpp"
#include "shale/manipulation.hpp"
#include "shale/reductions.hpp"

namespace shale {
namespace {

using ops::growing_pass;
using ops::growing_passes;
using ops::node_of;

// The values of these tests read no stages.
const ops::staged_values nothing_staged;

// A sum of as many different tensors as `leaves` says.
expr sum_of(int leaves, index_t extent = 4) {
  expr result = expr(tensor::zeros({extent}, dtype::float32));
  for (int i = 1; i < leaves; ++i) result = result + expr(tensor::zeros({extent}, dtype::float32));
  return result;
}

// A pass that has taken the output.
growing_pass& take(growing_passes& passes, const expr& output) {
  growing_pass& taken = passes.pass_for(node_of(output));
  taken.made.outputs.push_back({node_of(output), tensor(), nullptr});
  return taken;
}

// The stage of a reduction.
const detail::stage& stage_of(const expr& reduced) {
  return *std::get<detail::staged_leaf>(node_of(reduced)->content).from;
}

growing_pass& take_reduction(growing_passes& passes, const expr& reduced) {
  const detail::stage& current = stage_of(reduced);
  growing_pass& taken = passes.pass_for(current);
  taken.made.reductions.push_back({current.input, current.kind, current.parameter, tensor()});
  return taken;
}

TEST(GrowingPasses, TakeWhatFitsInAPlan) {
  growing_passes passes(nothing_staged);
  const growing_pass& first = take(passes, sum_of(40));
  EXPECT_EQ(&take(passes, sum_of(20)), &first);  // 60 leaves, 2 outputs
  EXPECT_NE(&take(passes, sum_of(2)), &first);
  ASSERT_EQ(passes.all().size(), 2u);
  EXPECT_EQ(passes.all()[0].leaves, 60u);
  EXPECT_EQ(passes.all()[1].leaves, 2u);
}

TEST(GrowingPasses, TakeALaterValueThatReadsTheSameLeaves) {
  growing_passes passes(nothing_staged);
  const expr values = sum_of(60);
  const growing_pass& first = take(passes, values);
  const growing_pass& second = take(passes, sum_of(20));
  EXPECT_NE(&second, &first);
  EXPECT_EQ(&take(passes, values * 2), &first);
  EXPECT_EQ(&take(passes, sum_of(20)), &second);
}

TEST(GrowingPasses, HaveOneShapeAndFoldTheSameAxes) {
  growing_passes passes(nothing_staged);
  const expr matrix = expr(tensor::zeros({4, 4}, dtype::float32));
  const growing_pass& values = take(passes, matrix + 1);
  const growing_pass& rows = take_reduction(passes, sum(matrix, {0}));
  const growing_pass& columns = take_reduction(passes, sum(matrix, {1}));
  EXPECT_EQ(&take_reduction(passes, mean(matrix, {0})), &rows);
  EXPECT_EQ(&take_reduction(passes, mean(matrix, {1})), &columns);
  EXPECT_EQ(&take(passes, matrix * 2), &values);
  take(passes, sum_of(1, 5));
  EXPECT_EQ(passes.all().size(), 4u);
}

TEST(GrowingPasses, SeparateReductionsThatReadPositionsFromSums) {
  growing_passes passes(nothing_staged);
  const expr values = sum_of(1);
  const growing_pass& sums = take_reduction(passes, sum(values));
  const growing_pass& positions = take_reduction(passes, argmax(values));
  EXPECT_NE(&positions, &sums);
  EXPECT_EQ(&take_reduction(passes, mean(values)), &sums);
  EXPECT_EQ(&take_reduction(passes, argmin(values)), &positions);
}

// Each of these passes would have room for one more value without a leaf of its own, so no pass is
// ever full. Values must not be compared with all of them.
TEST(GrowingPasses, WaitForFewValues) {
  growing_passes outputs(nothing_staged), reductions(nothing_staged);
  for (int i = 0; i < 5000; ++i) {
    const expr value = sum_of(1) + 1;
    take(outputs, value);
    take_reduction(reductions, i % 2 == 0 ? sum(value) : argmax(value));
    ASSERT_LE(outputs.with_room(), 8u);
    ASSERT_LE(reductions.with_room(), 16u);
  }
  EXPECT_GT(outputs.all().size(), 100u);
  EXPECT_LT(outputs.all().size(), 200u);
}

// Each value of a chain is computed from the one before. A pass looks at the nodes that it does not
// have yet, and not at the whole chain.
TEST(GrowingPasses, LookAtNewNodesOnly) {
  std::set<const ops::node*> seen;
  expr value = sum_of(1);
  ops::post_order(node_of(value), ops::walk::within_a_pass, seen);
  growing_passes passes(nothing_staged);
  for (int i = 0; i < 30; ++i) {
    value = value + i;
    const auto added = ops::post_order(node_of(value), ops::walk::within_a_pass, seen);
    EXPECT_EQ(added.size(), 2u);  // the number and the sum
    EXPECT_EQ(added.back(), node_of(value));
    EXPECT_EQ(take(passes, value).nodes, seen);
  }
  EXPECT_EQ(ops::post_order(node_of(value)).size(), seen.size());
  EXPECT_EQ(passes.all().size(), 1u);
  EXPECT_EQ(passes.all()[0].leaves, 1u);
}

// A value that is refused leaves the pass as it was.
TEST(GrowingPasses, ForgetWhatTheyRefuse) {
  growing_passes passes(nothing_staged);
  const growing_pass& first = take(passes, sum_of(40));
  const std::size_t nodes = first.nodes.size();
  const expr refused = sum_of(30);
  EXPECT_NE(&take(passes, refused), &first);
  EXPECT_EQ(first.nodes.size(), nodes);
  EXPECT_NE(&take(passes, refused * 2), &first);
}

TEST(GrowingPasses, ComputeWhatSinglePassesCompute) {
  std::vector<expr> parts, sums;
  for (int i = 0; i < 700; ++i) {
    parts.push_back(expr(tensor::full({2}, i, dtype::int64)) * 3);
    sums.push_back(sum(parts.back()));
  }
  const tensor joined = eval(concat(parts, 0));
  const std::vector<tensor> all = eval_all(parts);
  const std::vector<tensor> folded = eval_all(sums);
  for (int i = 0; i < 700; ++i) {
    EXPECT_EQ(joined.at({2 * i + 1}), scalar(3 * i));
    EXPECT_EQ(all[static_cast<std::size_t>(i)].at({0}), scalar(3 * i));
    EXPECT_EQ(folded[static_cast<std::size_t>(i)].at({}), scalar(6 * i));
  }
}

}  // namespace
}  // namespace shale
