// Tests factorizations of matrices in files that are larger than the memory budget: results are
// right, and memory stays inside the budget.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <string>
#include <vector>

#include "shale/index.hpp"
#include "support/instrumented.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

constexpr long budget_mib = 8;
constexpr index_t columns = 32;
// The file has 16 times the budget, or 4 times in builds with slow loops.
constexpr index_t rows = (test::instrumented ? 4 : 16) * (budget_mib << 20) / 8 / columns;
constexpr std::array<double, 3> spectrum = {100, 10, 1};

/// Vectors of cosines are orthonormal, and those after the first one have the sum 0.
double cosine(index_t n, std::size_t k, index_t i) {
  const auto count = static_cast<double>(n);
  return std::sqrt(2 / count) * std::cos(std::numbers::pi * static_cast<double>(k) *
                                         (static_cast<double>(i) + 0.5) / count);
}

class TallFiles : public testing::Test {
 protected:
  /// A file of the matrix, on the device and out of the page cache.
  void SetUp() override {
    const int file = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    std::array<std::array<double, columns>, 3> right{};
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t j = 0; j < columns; ++j)
        right[k][j] = spectrum[k] * cosine(columns, k + 1, static_cast<index_t>(j));
    constexpr index_t together = 4096;
    std::vector<double> piece(together * columns);
    for (index_t first = 0; first < rows; first += together) {
      for (index_t i = 0; i < together; ++i) {
        double* const row = piece.data() + i * columns;
        for (std::size_t j = 0; j < columns; ++j) row[j] = 0;
        for (std::size_t k = 0; k < 3; ++k) {
          const double left = cosine(rows, k + 1, first + i);
          for (std::size_t j = 0; j < columns; ++j) row[j] += left * right[k][j];
        }
      }
      ASSERT_EQ(pwrite(file, piece.data(), piece.size() * 8, first * columns * 8),
                static_cast<ssize_t>(piece.size() * 8));
    }
    EXPECT_EQ(fdatasync(file), 0);
    EXPECT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(file);
  }

  void expect_inside_the_budget(const std::string& mode) const {
    std::string command = SHALE_TALL_PEER;
    for (const std::string& word : {mode, std::to_string(budget_mib), path_, folder_ / "target"})
      command += " " + word;
    std::FILE* const output = popen(command.c_str(), "r");
    long peak_resident_kib = 0, wrong = -1;
    EXPECT_EQ(std::fscanf(output, "%ld %ld", &peak_resident_kib, &wrong), 2);
    EXPECT_EQ(pclose(output), 0);
    EXPECT_EQ(wrong, 0);
    if (!test::instrumented) {
      EXPECT_LE(peak_resident_kib, (budget_mib + 64) << 10);
    }
  }

 private:
  test::scratch_directory folder_;
  const std::string path_ = folder_ / "matrix";
};

TEST_F(TallFiles, AreFactoredIntoFilesInsideTheBudget) { expect_inside_the_budget("qr"); }

TEST_F(TallFiles, HaveTheirSpectrumInsideTheBudget) { expect_inside_the_budget("svd"); }

TEST_F(TallFiles, HaveTheirComponentsInsideTheBudget) { expect_inside_the_budget("pca"); }

}  // namespace
}  // namespace shale
