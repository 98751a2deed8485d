// Tests products of operands that are larger than the memory budget: results are the same, and
// memory stays inside the budget.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "ops/linalg/products.hpp"
#include "shale/functions.hpp"
#include "shale/linalg.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::random_choices;
using test::random_tensor;

constexpr long budget_mib = 16;
// The operands have 12 times the budget, or 4 times in builds with slow loops.
constexpr std::int64_t elements = (test::instrumented ? 4 : 12) * (budget_mib << 20) / 4;

std::int32_t value_at(std::int64_t i) {
  return static_cast<std::int32_t>((static_cast<std::uint64_t>(i) * 2654435761u) % 1000003);
}

struct outcome {
  unsigned long long windows = 0;
  unsigned long long dropped = 0;
  long peak_resident_kib = 0;
  long long sum = 0;
};

class StreamedProducts : public testing::Test {
 protected:
  /// A file of `value_at(i)`, on the device and out of the page cache.
  void SetUp() override {
    const int file = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    std::vector<std::int32_t> piece(1 << 20);
    for (std::int64_t first = 0; first < elements;
         first += static_cast<std::int64_t>(piece.size())) {
      for (std::size_t i = 0; i < piece.size(); ++i)
        piece[i] = value_at(first + static_cast<std::int64_t>(i));
      ASSERT_EQ(pwrite(file, piece.data(), piece.size() * 4, first * 4),
                static_cast<ssize_t>(piece.size() * 4));
    }
    EXPECT_EQ(fdatasync(file), 0);
    EXPECT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(file);
  }

  outcome run(const std::string& mode) const {
    std::string command = SHALE_PRODUCTS_PEER;
    for (const std::string& word : {mode, std::to_string(budget_mib), path_}) command += " " + word;
    std::FILE* output = popen(command.c_str(), "r");
    outcome got;
    EXPECT_EQ(std::fscanf(output, "%llu %llu %ld %lld", &got.windows, &got.dropped,
                          &got.peak_resident_kib, &got.sum),
              4);
    EXPECT_EQ(pclose(output), 0);
    if (!test::instrumented) {
      EXPECT_LE(got.peak_resident_kib, (budget_mib + 16) << 10) << mode;
    }
    EXPECT_GE(got.windows, 12u) << mode;
    EXPECT_EQ(got.dropped, got.windows) << mode;
    return got;
  }

 private:
  test::scratch_directory folder_;
  const std::string path_ = folder_ / "numbers";
};

// Each element of the result wraps as int32. The elements are then summed.
template <std::size_t count>
long long sum_wrapped(const std::array<std::uint32_t, count>& results) {
  long long sum = 0;
  for (const std::uint32_t result_row : results) sum += static_cast<std::int32_t>(result_row);
  return sum;
}

TEST_F(StreamedProducts, OfVectorsStayInsideTheBudget) {
  std::array<std::uint32_t, 1> squares{}, mirrored{};
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto x = static_cast<std::uint32_t>(value_at(i));
    squares[0] += x * x;
    mirrored[0] += x * static_cast<std::uint32_t>(value_at(elements - 1 - i));
  }
  EXPECT_EQ(run("dot").sum, sum_wrapped(squares));
  EXPECT_EQ(run("dot_backwards").sum, sum_wrapped(mirrored));
}

// Every page of the file is used, with a few elements of each.
TEST_F(StreamedProducts, OfColumnsStayInsideTheBudget) {
  constexpr std::int64_t row = 8192;
  std::array<std::uint32_t, 1> dotted{};
  std::array<std::uint32_t, 4> multiplied{};
  for (std::int64_t first = 0; first < elements; first += row) {
    const auto element = [&](std::int64_t column) {
      return static_cast<std::uint32_t>(value_at(first + column));
    };
    dotted[0] += element(5) * element(77);
    for (std::size_t k = 0; k < 4; ++k)
      multiplied[k] += element(5 + static_cast<std::int64_t>(k / 2)) *
                       element(77 + static_cast<std::int64_t>(k % 2));
  }
  EXPECT_EQ(run("dot_columns").sum, sum_wrapped(dotted));
  EXPECT_EQ(run("columns").sum, sum_wrapped(multiplied));
}

TEST_F(StreamedProducts, OfMatricesStayInsideTheBudget) {
  constexpr std::int64_t few = 8, many = elements / few;
  std::array<std::uint32_t, few * few> tall{}, wide{};
  for (std::int64_t offset = 0; offset < many; ++offset) {
    std::array<std::uint32_t, few> row, column;
    for (std::int64_t i = 0; i < few; ++i) {
      row[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(value_at(offset * few + i));
      column[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(value_at(i * many + offset));
    }
    for (std::size_t i = 0; i < few; ++i) {
      for (std::size_t j = 0; j < few; ++j) {
        tall[i * few + j] += row[i] * row[j];
        wide[i * few + j] += column[i] * row[j];
      }
    }
  }
  EXPECT_EQ(run("tall").sum, sum_wrapped(tall));
  EXPECT_EQ(run("wide").sum, sum_wrapped(wide));
}

TEST_F(StreamedProducts, OfMatricesAndVectorsStayInsideTheBudget) {
  std::array<std::uint32_t, 4096> vector{};
  std::vector<std::array<std::uint32_t, 2>> batch(64 * 512);
  constexpr std::int64_t row = elements / 4096, short_row = elements / (64 * 512);
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto x = static_cast<std::uint32_t>(value_at(i));
    vector[static_cast<std::size_t>(i / row)] += x * static_cast<std::uint32_t>(i % row + 1);
    auto& pair = batch[static_cast<std::size_t>(i / short_row)];
    const auto first = static_cast<std::uint32_t>(i % short_row * 2 + 1);
    pair[0] += x * first;
    pair[1] += x * (first + 1);
  }
  EXPECT_EQ(run("vector").sum, sum_wrapped(vector));
  long long sum = 0;
  for (const auto& pair : batch) sum += sum_wrapped(pair);
  EXPECT_EQ(run("batch").sum, sum);
}

// Every way to cut the product gives the same integers as a product in one piece.
TEST(ProductsByBlocks, EqualThoseInOnePiece) {
  executor large({.threads = 2, .memory_bytes = std::size_t{1} << 30});
  const executor::scope within(large);
  const test::scratch_directory folder;
  random_choices choose(1);
  int number = 0;
  const auto mapped = [&](const tensor& values) {
    const std::string path = folder / std::to_string(number++);
    const storage bytes = create_file(path, values.size_bytes());
    const tensor made(bytes, values.dtype(), layout(values.shape()));
    eval_into(made, expr(values));
    return made;
  };
  const auto expect_equal = [&](const tensor& a, const tensor& b) {
    SCOPED_TRACE(to_string(a.shape()) + " by " + to_string(b.shape()));
    const tensor wanted = matmul(a, b);
    // The budget holds the result (for float16 also in float32) and the blocks.
    memory_pool pool({.limit_bytes = 3 * wanted.size_bytes() + (std::size_t{2} << 20)});
    executor small({.threads = 2, .memory_bytes = std::size_t{2} << 20, .pool = &pool});
    ASSERT_TRUE(equal_bits(test::run_on(small, [&] { return matmul(a, b); }), wanted));
  };
  const tensor a = mapped(random_tensor<std::int32_t>(choose, {700, 900}));
  const tensor b = mapped(random_tensor<std::int32_t>(choose, {900, 300}));
  expect_equal(a, b);
  expect_equal(b.swapaxes(0, 1), a.swapaxes(0, 1));
  expect_equal(a.swapaxes(0, 1).narrow(1, 0, 600), b.narrow(0, 100, 600));
  expect_equal(a.narrow(1, 0, 300), b.swapaxes(0, 1));
  expect_equal(a, b.clone());
  expect_equal(a.clone().flip({0, 1}), b);
  expect_equal(a.sliced(0, {.step = 2}), b.flip({0}));
  expect_equal(eval(astype(expr(a) % 100, dtype::int16)), b);
  expect_equal(a.select(0, 3), b);
  expect_equal(a.select(0, 3).broadcast_to({400, 900}), b);
  const tensor many = mapped(random_tensor<std::int32_t>(choose, {6, 5, 130, 70}));
  const tensor few = mapped(random_tensor<std::int32_t>(choose, {5, 70, 40}));
  expect_equal(many, few);
  expect_equal(many.select(1, 0).select(0, 0), many.swapaxes(2, 3));
  expect_equal(many.narrow(3, 0, 40), few.select(0, 0).swapaxes(0, 1));
  expect_equal(a.view({7, 100, 900}), b);
  // Sums of few small numbers are exact in float32.
  const tensor half = mapped(eval(astype(expr(a) % 3, dtype::float16)));
  expect_equal(half, mapped(eval(astype(expr(b) % 3, dtype::float16))));
}

// The budget may be smaller than any block.
TEST(ProductsByBlocks, NeedNoLargerBudgetThanTheirLeast) {
  random_choices choose(2);
  executor tiny({.threads = 1, .memory_bytes = 1000});
  const tensor a = random_tensor<std::int32_t>(choose, {3, 400000});
  const tensor b = random_tensor<std::int32_t>(choose, {400000, 2});
  const tensor got = tensor::empty({3, 2}, dtype::int32);
  ops::multiply_matrices(got, a.flip({0, 1}), b.flip({0, 1}), tiny);
  EXPECT_TRUE(equal_bits(got, matmul(a.flip({0}), b.flip({1}))));
}

TEST(ProductsByBlocks, AreCancelled) {
  random_choices choose(3);
  executor small({.threads = 2, .memory_bytes = 1000});
  const executor::scope within(small);
  const tensor a = random_tensor<std::int32_t>(choose, {600, 600});
  small.cancel();
  EXPECT_EQ(test::code_of([&] { matmul(a.flip({0, 1}), a); }), errc::cancelled);
}

}  // namespace
}  // namespace shale
