#include "ops/kernels/expected_scans.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace shale::test {
namespace {

std::vector<extents> scanned_extents() {
  return {{1, 1}, {1, 600}, {2, 900}, {3, 40}, {5, 5}, {700, 3}, {1030, 2}, {40, 130}, {5000, 1}};
}

struct scanned {
  std::vector<std::byte> results;  // row-major
  std::vector<std::byte> states;
};

/// Scans a block along its inner or its outer axis. Every state first takes in `before`, one value.
scanned scan_block(ops::isa isa, ops::scan kind, dtype type, block& values, block& results,
                   bool along_inner, const std::byte* before) {
  const ops::kernels::kernel_table& table = ops::kernels_for(isa);
  const ops::scanner& how = table.scanners[static_cast<int>(kind)][static_cast<int>(type)];
  const ops::reducer& fold =
      table.reducers[static_cast<int>(ops::reduction_of(kind))][static_cast<int>(type)];
  EXPECT_NE(how.scan, nullptr);
  const index_t count = along_inner ? values.outer() : values.inner();
  const auto bytes = static_cast<index_t>(fold.state_bytes);
  std::vector<std::uint64_t> memory(static_cast<std::size_t>(count * bytes) / 8);
  auto* const states = reinterpret_cast<std::byte*>(memory.data());
  fold.start(states, count);
  for (index_t k = 0; k < count; ++k) {
    std::byte* data[] = {states + k * bytes, const_cast<std::byte*>(before)};
    const index_t strides[] = {0, 0, 0, 0};
    fold.accumulate(data, strides, 1, 1);
  }
  std::byte* data[] = {results.first(), states, values.first()};
  const index_t strides[] = {results.layout().inner_stride, along_inner ? 0 : bytes,
                             values.layout().inner_stride,  results.layout().outer_stride,
                             along_inner ? bytes : 0,       values.layout().outer_stride};
  how.scan(data, strides, values.inner(), values.outer());
  EXPECT_TRUE(results.untouched_between());

  scanned all;
  const std::size_t item = item_bytes(how.result);
  for (index_t row = 0; row < results.outer(); ++row)
    for (index_t column = 0; column < results.inner(); ++column)
      all.results.insert(all.results.end(), results.element(column, row),
                         results.element(column, row) + item);
  all.states.resize(static_cast<std::size_t>(count) * item);
  fold.finish(states, all.states.data(), count, 0);
  return all;
}

/// Checks that all instruction sets and all layouts of `values` give the same bits, and returns
/// those of the dense one. Every state first takes in `before`.
scanned expect_equal_scans(const expected_scan& tested, block& dense, block& spread,
                           bool along_inner, const std::byte* before, generator& random) {
  const extents size{dense.inner(), dense.outer()};
  const std::size_t out_bytes = item_bytes(tested.out);
  const auto out = static_cast<index_t>(out_bytes);
  const auto scan_into = [&](ops::isa isa, block& values, block& into) {
    return scan_block(isa, tested.kind, tested.in, values, into, along_inner, before);
  };
  scanned first;
  for (const ops::isa isa : usable_isas()) {
    block into(out_bytes, {out, out * size.inner}, size.inner, size.outer);
    const auto got = scan_into(isa, dense, into);
    if (first.results.empty()) first = got;
    EXPECT_EQ(got.results, first.results) << name(isa) << " differs from the baseline";
    EXPECT_EQ(got.states, first.states);
    block elsewhere(out_bytes, distinct_layout(out_bytes, size, random), size.inner, size.outer);
    EXPECT_EQ(scan_into(isa, spread, elsewhere).results, first.results)
        << name(isa) << " depends on the layout";
    if (tested.in == tested.out) {
      block same = dense;
      EXPECT_EQ(scan_into(isa, same, same).results, first.results) << name(isa) << " in place";
    }
  }
  return first;
}

}  // namespace

void expect_scan(const expected_scan& tested) {
  generator random(static_cast<unsigned>(tested.kind) * 64 + static_cast<unsigned>(tested.in));
  const std::size_t in_bytes = item_bytes(tested.in);
  const auto item = static_cast<index_t>(in_bytes);
  const auto out = static_cast<index_t>(item_bytes(tested.out));
  std::vector<std::byte> before(in_bytes);
  for (const extents& size : scanned_extents()) {
    for (const bool along_inner : {true, false}) {
      block dense(in_bytes, {item, item * size.inner}, size.inner, size.outer);
      block spread(in_bytes, distinct_layout(in_bytes, size, random), size.inner, size.outer);
      for (index_t row = 0; row < size.outer; ++row)
        for (index_t column = 0; column < size.inner; ++column) {
          tested.draw(dense.element(column, row), random);
          std::memcpy(spread.element(column, row), dense.element(column, row), in_bytes);
        }
      tested.draw(before.data(), random);
      const scanned first =
          expect_equal_scans(tested, dense, spread, along_inner, before.data(), random);
      if (testing::Test::HasFailure()) return;
      for (index_t lane = 0; lane < (along_inner ? size.outer : size.inner); ++lane) {
        std::vector<std::byte> so_far = before;
        index_t count = 1;
        for (index_t k = 0; k < (along_inner ? size.inner : size.outer); ++k) {
          const index_t column = along_inner ? k : lane, row = along_inner ? lane : k;
          const std::byte* const next = dense.element(column, row);
          so_far.insert(so_far.end(), next, next + item);
          const std::byte* const got = first.results.data() + (row * size.inner + column) * out;
          ASSERT_TRUE(tested.agrees(got, so_far.data(), ++count))
              << "scan " << static_cast<int>(tested.kind) << ' ' << name(tested.in) << " of "
              << size.outer << " x " << size.inner << (along_inner ? " rows" : " columns") << " at "
              << row << ", " << column << ": " << tested.show(got);
        }
        ASSERT_TRUE(tested.agrees(first.states.data() + lane * out, so_far.data(), count));
      }
    }
  }
}

}  // namespace shale::test
