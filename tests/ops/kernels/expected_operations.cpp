#include "ops/kernels/expected_operations.hpp"

#include <gtest/gtest.h>

namespace shale::test {
namespace {

void fill(block& target, const expected_operation& tested, generator& random) {
  for (index_t row = 0; row < target.outer(); ++row)
    for (index_t column = 0; column < target.inner(); ++column)
      tested.draw(target.element(column, row), random);
}

/// Compares every element of `got` with the oracle, or with the results `first` of another
/// instruction set.
void expect_elements(const expected_operation& tested, ops::isa isa, const block& got,
                     const block& a, const block& b, const block* first) {
  std::byte wanted[16];
  for (index_t row = 0; row < got.outer(); ++row) {
    for (index_t column = 0; column < got.inner(); ++column) {
      const std::byte* value = got.element(column, row);
      if (first) {
        ASSERT_TRUE(tested.same_out(value, first->element(column, row)))
            << "operation " << static_cast<int>(tested.op) << ' ' << name(tested.in) << ' '
            << name(isa) << " differs from the baseline: " << tested.show_out(value);
        continue;
      }
      const std::byte *x = a.element(column, row), *y = b.element(column, row);
      tested.oracle(wanted, x, y);
      ASSERT_TRUE(tested.agrees(value, wanted))
          << "operation " << static_cast<int>(tested.op) << ' ' << name(tested.in) << " of "
          << tested.show_in(x) << " (and " << tested.show_in(y) << "): got "
          << tested.show_out(value) << ", wanted " << tested.show_out(wanted);
    }
  }
}

}  // namespace

void expect_operation(const expected_operation& tested) {
  ASSERT_EQ(ops::result_dtype(tested.op, tested.in), tested.out);
  const bool two = ops::arity(tested.op) == 2;
  const std::size_t in = item_bytes(tested.in), out = item_bytes(tested.out);
  generator random(static_cast<unsigned>(tested.op) * 100 + static_cast<unsigned>(tested.in));
  for (const extents& size : some_extents()) {
    for (int variant = 0; variant < 3; ++variant) {
      block a(in, input_layout(in, size, random), size.inner, size.outer);
      block b(in, input_layout(in, size, random), size.inner, size.outer);
      const block empty(out, distinct_layout(out, size, random), size.inner, size.outer);
      fill(a, tested, random);
      fill(b, tested, random);
      block first = empty;
      for (const ops::isa isa : usable_isas()) {
        const ops::kernel kernel =
            ops::kernels_for(isa)
                .operations[static_cast<int>(tested.op)][static_cast<int>(tested.in)];
        ASSERT_NE(kernel, nullptr) << static_cast<int>(tested.op) << ' ' << name(tested.in);
        block got = empty;
        if (two) run(kernel, {&got, &a, &b});
        else run(kernel, {&got, &a});
        ASSERT_TRUE(got.untouched_between())
            << static_cast<int>(tested.op) << ' ' << name(tested.in);
        const bool baseline = isa == ops::isa::baseline;
        if (baseline) first = got;
        expect_elements(tested, isa, got, a, b, baseline ? nullptr : &first);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace shale::test
