// Compares how often values occur with their probabilities.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace shale::test {

/// The number of standard deviations by which chi-square lies above its expectation.
/// Source   E. B. Wilson, M. M. Hilferty, The distribution of chi-square, PNAS 17 (1931)
inline double surprise(const std::map<std::int64_t, double>& expected,
                       const std::vector<std::int64_t>& values) {
  std::map<std::int64_t, double> seen;
  for (const std::int64_t value : values) ++seen[value];
  double sum = 0;
  for (const auto& [value, probability] : expected) {
    const double wanted = probability * static_cast<double>(values.size());
    sum += (seen[value] - wanted) * (seen[value] - wanted) / wanted;
  }
  EXPECT_EQ(seen.size(), expected.size());
  const auto freedom = static_cast<double>(expected.size()) - 1;
  const double variance = 2 / (9 * freedom);
  return (std::cbrt(sum / freedom) - (1 - variance)) / std::sqrt(variance);
}

}  // namespace shale::test
