// Tests sorts of operands that are larger than the memory budget: against the stable order of the
// oracle, for all dtypes, any number of threads, and any number of runs.
#include "ops/sorting/sorted_runs.hpp"

#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/sorting.hpp"
#include "shale/tile_source.hpp"
#include "support/element_types.hpp"
#include "support/failures.hpp"
#include "support/full_disk.hpp"
#include "support/instrumented.hpp"
#include "support/order_oracle.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"
#include "support/temporary_folder.hpp"
#include "support/tensor_tiles.hpp"

namespace shale {
namespace {

using test::any_elements;
using test::code_of;
using test::elements_of;
using test::random_choices;
using test::run_on;
using test::same_bits;
using test::wanted_order;

// The smallest budget that counts as it is.
constexpr std::size_t budget_bytes = std::size_t{256} << 10;

/// Copies tensors into files, which do not lie in memory.
class mapped_copies {
 public:
  tensor of(const tensor& values) {
    const tensor whole = values.contiguous();
    const storage bytes = create_file(folder_ / std::to_string(count_++), whole.size_bytes());
    std::memcpy(bytes.data(), whole.data(), whole.size_bytes());
    return tensor(bytes, whole.dtype(), layout(whole.shape()));
  }

 private:
  test::scratch_directory folder_;
  int count_ = 0;
};

bool lies_in_a_file(const tensor& values) { return values.storage().kind() == storage_kind::file; }

template <class T>
class SortedRuns : public testing::Test {
 protected:
  /// The elements of so many slabs of `sort`, and a few more.
  index_t slabs(index_t count) const {
    return count * ops::sorted_at_once({dtype_of<T>(), false, false}, small_) + 7;
  }

  void expect_sorted(const tensor& values, index_t axis, descending order) {
    const wanted_order<T> wanted(values, axis, order);
    const tensor mapped = copies_.of(values);
    for (const int threads : {1, 2, 4}) {
      executor on({.threads = threads, .memory_bytes = budget_bytes});
      const executor::scope within(on);
      const tensor sorted = sort(mapped, axis, order);
      ASSERT_TRUE(lies_in_a_file(sorted));
      ASSERT_EQ(sorted.shape(), values.shape());
      ASSERT_EQ(sorted.dtype(), values.dtype());
      ASSERT_TRUE(same_bits(elements_of<T>(sorted), wanted.elements)) << threads;
      const tensor indices = argsort(mapped, axis, order);
      ASSERT_TRUE(lies_in_a_file(indices));
      ASSERT_EQ(indices.shape(), values.shape());
      ASSERT_EQ(elements_of<std::int64_t>(indices), wanted.indices) << threads;
    }
  }

  executor small_{{.threads = 1, .memory_bytes = budget_bytes}};
  mapped_copies copies_;
};
using element_list =
    test::element_types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                        std::uint16_t, std::uint32_t, std::uint64_t, float16, bfloat16, float,
                        double, float8_e4m3fn, float8_e5m2>;
TYPED_TEST_SUITE(SortedRuns, element_list);

// runs.1, runs.2
TYPED_TEST(SortedRuns, OfOneLaneAreMergedInTheStableOrder) {
  for (std::uint64_t seed = 0; seed < test::cases(3); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const tensor values = any_elements<TypeParam>(choose, {this->slabs(3)});
    this->expect_sorted(values, 0, seed % 2 == 0 ? descending::no : descending::yes);
  }
}

TYPED_TEST(SortedRuns, OfSeveralLanesDoNotMix) {
  random_choices choose(17);
  const tensor rows = any_elements<TypeParam>(choose, {3, this->slabs(1)});
  this->expect_sorted(rows, 1, descending::no);
  this->expect_sorted(rows.reshape({this->slabs(1), 3}), 0, descending::yes);
}

TYPED_TEST(SortedRuns, AreNotNeededByShortLanes) {
  random_choices choose(18);
  const tensor values = any_elements<TypeParam>(choose, {2, 31, this->slabs(2) / 62 + 1});
  for (index_t axis = 0; axis < 3; ++axis)
    this->expect_sorted(values, axis, axis == 1 ? descending::yes : descending::no);
}

class SortsInFiles : public testing::Test {
 protected:
  tensor in_small_budget(tensor (*order)(const expr&, index_t, descending), const expr& x,
                         descending direction = descending::no) {
    return run_on(small_, [&] { return order(x, -1, direction); });
  }

  executor small_{{.threads = 2, .memory_bytes = budget_bytes}};
  mapped_copies copies_;
  generator seeded_{11};
};

// runs.4: rounds that take from one run alone, or a whole part of each, come to an end.
TEST_F(SortsInFiles, OrderedElementsAreAsAnyOther) {
  constexpr index_t count = 100000;
  const tensor rising = eval(astype(arange(count), dtype::int32));
  const tensor falling = rising.flip({0}).clone(), equal = tensor::full({count}, 7, dtype::int32);
  for (const tensor& values : {rising, falling, equal})
    for (const descending order : {descending::no, descending::yes}) {
      const wanted_order<std::int32_t> wanted(values, 0, order);
      const tensor mapped = copies_.of(values);
      EXPECT_EQ(elements_of<std::int32_t>(in_small_budget(sort, mapped, order)), wanted.elements);
      EXPECT_EQ(elements_of<std::int64_t>(in_small_budget(argsort, mapped, order)), wanted.indices);
    }
}

TEST_F(SortsInFiles, ExpressionsAndTilesAreSortedAsInMemory) {
  random_choices choose(5);
  const tensor values = any_elements<float>(choose, {150000}).contiguous();
  const expr centred = expr(values) - max(where(isfinite(values), values, 0));
  EXPECT_TRUE(equal_bits(in_small_budget(sort, centred), sort(eval(centred))));
  EXPECT_TRUE(equal_bits(in_small_budget(argsort, centred), argsort(eval(centred))));
  const auto tiles = std::make_shared<test::tensor_tiles>(values, dims{1000});
  EXPECT_TRUE(equal_bits(in_small_budget(sort, expr(tiles)), sort(values)));
}

// runs.3: the operand and the runs are read once; the operand's elements in memory, the runs and
// the result are written once.
TEST_F(SortsInFiles, ElementsAreReadTwice) {
  const tensor mapped = copies_.of(eval(uniform(seeded_, {200000}, 0, 1, dtype::float32)));
  const std::size_t bytes = mapped.size_bytes();
  in_small_budget(sort, mapped);
  EXPECT_EQ(small_.statistics().bytes_read, 2 * bytes);
  EXPECT_EQ(small_.statistics().bytes_written, 3 * bytes);
  EXPECT_LE(small_.statistics().scratch_bytes_peak, budget_bytes);
}

TEST_F(SortsInFiles, ResultsAreWritableAndHaveNoName) {
  const test::scratch_directory folder;
  const tensor mapped = copies_.of(eval(astype(arange(100000), dtype::int32)));
  const test::temporary_folder in_it(folder.path().c_str());
  const tensor sorted = in_small_budget(sort, mapped, descending::yes);
  EXPECT_TRUE(sorted.is_contiguous());
  EXPECT_TRUE(sorted.writable());
  fill(sorted, 3);
  EXPECT_EQ(sorted.at({99999}).as<int>(), 3);
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
  const std::string missing = folder / "missing";
  const test::temporary_folder nowhere(missing.c_str());
  EXPECT_EQ(code_of([&] { in_small_budget(sort, mapped); }), errc::not_found);
}

TEST_F(SortsInFiles, ThatDoNotFitAreErrors) {
  const tensor mapped = copies_.of(eval(astype(arange(200000), dtype::int32)));
  const test::short_files little(rlim_t{100000});
  EXPECT_EQ(code_of([&] { in_small_budget(sort, mapped); }), errc::out_of_space);
}

// Nothing is written to a device that has too little space for the result.
TEST_F(SortsInFiles, TooLargeAResultIsAnErrorAtOnce) {
  struct statvfs disk {};
  ASSERT_EQ(::statvfs(detail::scratch_folder().c_str(), &disk), 0);
  if (disk.f_blocks == 0) GTEST_SKIP() << "nobody counts the blocks of temporary files";
  const expr x = zeros({index_t{1} << 50, 1 << 12}, dtype::float32);
  EXPECT_EQ(code_of([&] { in_small_budget(sort, x); }), errc::out_of_space);
}

// So many runs that the budget has no room for a part of each.
TEST_F(SortsInFiles, TooSmallABudgetIsAnError) {
  const expr x = uniform(seeded_, {1 << 20});
  EXPECT_EQ(code_of([&] { in_small_budget(argsort, x); }), errc::out_of_memory);
  executor larger({.threads = 2, .memory_bytes = 8 * budget_bytes});
  EXPECT_EQ(run_on(larger, [&] { return argsort(x); }).shape(), dims{1 << 20});
}

TEST_F(SortsInFiles, AreCancelled) {
  const tensor mapped = copies_.of(tensor::zeros({200000}, dtype::float32));
  small_.cancel();
  EXPECT_EQ(code_of([&] { in_small_budget(sort, mapped); }), errc::cancelled);
}

// The file has 16 times the budget, or 4 times in builds with slow loops.
TEST(OrdersOfFiles, StayInsideTheBudget) {
  constexpr long budget_mib = 8;
  constexpr index_t count = (test::instrumented ? 4 : 16) * (budget_mib << 20) / 4;
  const test::scratch_directory folder;
  const std::string path = folder / "numbers";
  {
    // The factor is odd, so each number below the power of two occurs once.
    const storage bytes = create_file(path, static_cast<std::size_t>(count) * 4);
    auto* const numbers = reinterpret_cast<std::int32_t*>(bytes.data());
    for (index_t i = 0; i < count; ++i)
      numbers[i] = static_cast<std::int32_t>(static_cast<std::uint64_t>(i) * 2654435761u &
                                             static_cast<std::uint64_t>(count - 1));
  }
  for (const char* const mode :
       {"sort", "argsort", "topk", "median", "histogram", "masked_select"}) {
    const std::string command =
        std::string(SHALE_SORT_PEER) + " " + mode + " " + std::to_string(budget_mib) + " " + path;
    std::FILE* const output = ::popen(command.c_str(), "r");
    long peak_resident_kib = 0, wrong = -1;
    EXPECT_EQ(std::fscanf(output, "%ld %ld", &peak_resident_kib, &wrong), 2);
    EXPECT_EQ(::pclose(output), 0);
    EXPECT_EQ(wrong, 0) << mode;
    if (!test::instrumented) {
      EXPECT_LE(peak_resident_kib, (budget_mib + 16) << 10) << mode;
    }
  }
}

}  // namespace
}  // namespace shale
