// Makes one engine call over files, in a process of its own: `streaming_peer MODE BUDGET_MIB
// FILE...`. Prints "windows dropped peak_resident_kib result".
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "shale/apply.hpp"
#include "shale/mapped_file.hpp"
#include "support/peak_resident.hpp"

namespace {

using namespace shale;
using test::peak_resident_kib;

tensor mapped(const char* path, shale::access allowed) {
  const storage bytes = map_file(path, {.access = allowed});
  return tensor(bytes, dtype::int32, layout({static_cast<index_t>(bytes.size_bytes() / 4)}));
}

// The sum of weigh(x) over the elements x of `values`.
template <class Expected>
long long sum_of(const tensor& values, Expected weigh) {
  return reduce(
      values, 0LL, [&](long long& to, std::int32_t x) { to += weigh(x); },
      [](long long& to, long long other) { to += other; });
}

// The sums of four parts of a file, two of them against storage order. The elements begin after a
// header, as in a container.
tensor sums_of_crossing_parts(const tensor& file) {
  const index_t side = 32, header_bytes = 128;
  const index_t depth = (file.size() - header_bytes / 4) / (side * side);
  const storage elements = file.storage().slice(header_bytes, file.size_bytes() - header_bytes);
  const tensor all(elements, dtype::int32, layout({side, side, depth}));
  const tensor sums = tensor::empty({side, side}, dtype::int32);
  const auto quarter = [&](index_t which) { return all.select(2, which * depth / 4); };
  apply_into(
      sums,
      [](std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) { return a + b + c + d; },
      quarter(0), quarter(1).swapaxes(0, 1), quarter(2), quarter(3).swapaxes(0, 1));
  return sums;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const std::string mode = arguments[1];
  const bool many_threads = mode == "update_by_many";
  executor on({.threads = many_threads ? 64 : 2,
               .memory_bytes = std::strtoull(arguments[2], nullptr, 10) << 20});
  const executor::scope within(on);
  const auto plain = [](std::int32_t x) -> long long { return x; };
  long long result = 0;
  const bool writes = mode != "sum" && mode != "sum_backwards" && mode != "sum_column" &&
                      mode != "sum_rows" && mode != "sum_crossed";
  const tensor first =
      mapped(arguments[3], writes ? shale::access::read_write : shale::access::read_only);
  const index_t columns = 8192;
  if (mode == "sum") {
    result = sum_of(first, plain);
  } else if (mode == "sum_backwards") {
    result = sum_of(first.flip(), plain);
  } else if (mode == "sum_column") {
    result = sum_of(first.view({-1, columns}).select(1, 7), plain);
  } else if (mode == "sum_rows") {
    result = sum_of(first.view({-1, 16384}).sliced(0, {.step = 4}), plain);
  } else if (mode == "sum_crossed") {
    result = sum_of(sums_of_crossing_parts(first), plain);
  } else if (mode == "update" || many_threads) {
    apply([](std::int32_t& x) { x = 3 * x + 1; }, first);
  } else if (mode == "update_column") {
    apply([](std::int32_t& x) { x = 3 * x + 1; }, first.view({-1, 32768}).select(1, 7));
  } else if (mode == "combine") {
    const tensor second = mapped(arguments[4], shale::access::read_only);
    apply([](std::int32_t& x, std::int32_t y) { x = x + 2 * y; }, first, second);
  } else if (mode == "differences") {
    const tensor second = mapped(arguments[4], shale::access::read_only);
    const index_t n = second.size();
    apply_into(
        first.narrow(0, 0, n - 5000), [](std::int32_t a, std::int32_t b) { return a - b; },
        second.narrow(0, 5000, n - 5000), second.narrow(0, 0, n - 5000));
  } else if (mode == "transpose") {
    const tensor second = mapped(arguments[4], shale::access::read_only);
    const auto rows = static_cast<index_t>(std::sqrt(static_cast<double>(first.size())));
    apply_into(
        first.view({rows, -1}), [](std::int32_t a) { return a; },
        second.view({-1, rows}).swapaxes(0, 1));
  } else {
    return 2;
  }
  const auto did = on.statistics();
  std::printf("%llu %llu %ld %lld\n", static_cast<unsigned long long>(did.windows),
              static_cast<unsigned long long>(did.windows_dropped), peak_resident_kib(), result);
  return 0;
}
