// Factors a mapped file of float64 with 32 columns, in a process of its own: `tall_peer MODE
// BUDGET_MIB FILE TARGET`. The file is a matrix of rank 3 whose singular values are 100, 10 and 1,
// and whose vectors are cosines. Prints the peak of resident KiB, and how many numbers are wrong.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "shale/creation.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/low_rank.hpp"
#include "shale/mapped_file.hpp"
#include "shale/tall_qr.hpp"
#include "support/peak_resident.hpp"

namespace {

using namespace shale;

constexpr index_t columns = 32;
constexpr double spectrum[] = {100, 10, 1};

struct outcome {
  long peak_kib;
  long wrong;
};

const double* elements_of(const tensor& values) {
  return reinterpret_cast<const double*>(values.data());
}

long count_wrong(const tensor& s) {
  long wrong = 0;
  for (index_t k = 0; k < 3; ++k) wrong += !(std::abs(elements_of(s)[k] - spectrum[k]) < 1e-9);
  return wrong;
}

/// Columns of `q` that are not orthonormal to the first four.
long count_oblique(const tensor& q) {
  double products[4][columns] = {};
  const double* row = elements_of(q);
  for (index_t i = 0; i < q.shape(0); ++i, row += columns)
    for (int k = 0; k < 4; ++k)
      for (index_t j = 0; j < columns; ++j) products[k][j] += row[k] * row[j];
  long wrong = 0;
  for (int k = 0; k < 4; ++k)
    for (index_t j = 0; j < columns; ++j) wrong += !(std::abs(products[k][j] - (k == j)) < 1e-11);
  return wrong;
}

/// Rows of every thousandth that are not those of q r.
long count_other_rows(const tensor& a, const tensor& q, const tensor& r) {
  long wrong = 0;
  for (index_t i = 0; i < a.shape(0); i += 1000)
    for (index_t j = 0; j < columns; ++j) {
      double element = 0;
      for (index_t k = 0; k < columns; ++k)
        element += elements_of(q)[i * columns + k] * elements_of(r)[k * columns + j];
      wrong += !(std::abs(element - elements_of(a)[i * columns + j]) < 1e-11);
    }
  return wrong;
}

tensor target_of(const char* path, const dims& shape) {
  const auto bytes = static_cast<std::size_t>(element_count(shape)) * sizeof(double);
  return tensor(create_file(path, bytes), dtype::float64, layout(shape));
}

outcome outcome_of(const std::string& mode, const tensor& a, const char* target) {
  generator source(1);
  if (mode == "qr") {
    const tsqr_result found = tsqr(a);
    const tensor q = target_of(target, {a.shape(0), columns});
    eval_into(q, found.q);
    const long peak_kib = test::peak_resident_kib();
    return {peak_kib, count_oblique(q) + count_other_rows(a, q, found.r)};
  }
  if (mode == "svd") {
    const lowrank_result found = svd_lowrank(source, a, 3, {.iterations = 0});
    const tensor u = target_of(target, {a.shape(0), 3});
    eval_into(u, found.u);
    return {test::peak_resident_kib(), count_wrong(found.s)};
  }
  // The columns have the means 0, 10, 20, ….
  const pca_result found = pca(source, expr(a) + arange(columns) * 10, 3, {.iterations = 0});
  const long peak_kib = test::peak_resident_kib();
  long wrong = count_wrong(found.singular_values);
  for (index_t j = 0; j < columns; ++j)
    wrong += !(std::abs(elements_of(found.mean)[j] - 10 * static_cast<double>(j)) < 1e-9);
  return {peak_kib, wrong};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  executor on({.threads = 2, .memory_bytes = std::strtoull(arguments[2], nullptr, 10) << 20});
  const executor::scope within(on);
  const storage bytes = map_file(arguments[3]);
  const auto rows = static_cast<index_t>(bytes.size_bytes() / sizeof(double)) / columns;
  const tensor a(bytes, dtype::float64, layout({rows, columns}));
  const outcome found = outcome_of(arguments[1], a, arguments[4]);
  std::printf("%ld %ld\n", found.peak_kib, found.wrong);
  return 0;
}
