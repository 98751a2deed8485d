// Computes orders of a mapped file of int32, in a process of its own: `sort_peer MODE BUDGET_MIB
// FILE`. The file holds each number from 0 to its length, a power of two, minus 1: at position i
// the one that number_at says. Prints the peak of resident KiB, and how many elements of the result
// are wrong.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/histograms.hpp"
#include "shale/mapped_file.hpp"
#include "shale/masks.hpp"
#include "shale/order_statistics.hpp"
#include "shale/sorting.hpp"
#include "support/peak_resident.hpp"

namespace {

using namespace shale;

index_t number_at(index_t i, index_t count) {
  return static_cast<index_t>(static_cast<std::uint64_t>(i) * 2654435761u &
                              static_cast<std::uint64_t>(count - 1));
}

// The results of a mode have `count` elements, of which `wanted(i)` is the one at position i.
struct outcome {
  long peak_kib = test::peak_resident_kib();  // before the result is looked at
  long wrong = 0;

  template <class T, class Wanted>
  void compare(const tensor& result, index_t count, const Wanted& wanted) {
    wrong += result.size() != count;
    const auto* const elements = reinterpret_cast<const T*>(result.data());
    for (index_t i = 0; i < result.size(); ++i) wrong += index_t{elements[i]} != wanted(i);
  }
};

outcome outcome_of(const std::string& mode, const tensor& x) {
  const index_t count = x.size();
  const auto itself = [](index_t i) { return i; };
  if (mode == "sort") {
    const tensor sorted = sort(x);
    outcome found;
    found.compare<std::int32_t>(sorted, count, itself);
    return found;
  }
  if (mode == "argsort") {
    const tensor order = argsort(x);
    outcome found;
    const auto* const indices = reinterpret_cast<const std::int64_t*>(order.data());
    for (index_t i = 0; i < count; ++i) found.wrong += number_at(indices[i], count) != i;
    return found;
  }
  if (mode == "topk") {
    const ranked_elements first = topk(x, 100);
    outcome found;
    found.compare<std::int32_t>(first.values, 100, [&](index_t i) { return count - 1 - i; });
    return found;
  }
  if (mode == "histogram") {
    const double high = static_cast<double>(count);
    const binned_counts bins = histogram(x, 16, {.range = value_range{0, high}});
    outcome found;
    found.compare<std::int64_t>(bins.counts, 16, [&](index_t) { return count / 16; });
    return found;
  }
  if (mode == "median") {
    const double middle = median(x).item().as<double>();
    outcome found;
    found.wrong = middle != static_cast<double>(count - 1) / 2;
    return found;
  }
  const tensor low = sort(masked_select(x, expr(x) < 1000));
  outcome found;
  found.compare<std::int32_t>(low, 1000, itself);
  return found;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  executor on({.threads = 2, .memory_bytes = std::strtoull(arguments[2], nullptr, 10) << 20});
  const executor::scope within(on);
  const storage bytes = map_file(arguments[3]);
  const tensor x(bytes, dtype::int32, layout({static_cast<index_t>(bytes.size_bytes() / 4)}));
  const outcome found = outcome_of(arguments[1], x);
  std::printf("%ld %ld\n", found.peak_kib, found.wrong);
  return 0;
}
