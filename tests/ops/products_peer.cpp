// Computes one product of a mapped file of int32, in a process of its own: `products_peer MODE
// BUDGET_MIB FILE`. Prints "windows dropped peak_resident_kib sum", the sum of the result modulo
// 2^64.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/linalg.hpp"
#include "shale/mapped_file.hpp"
#include "support/peak_resident.hpp"

namespace {

using namespace shale;
using test::peak_resident_kib;

tensor counting(const dims& shape) {
  return eval(astype(arange(1, element_count(shape) + 1), dtype::int32).reshape(shape));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const std::string mode = arguments[1];
  executor on({.threads = 2, .memory_bytes = std::strtoull(arguments[2], nullptr, 10) << 20});
  const executor::scope within(on);
  const storage bytes = map_file(arguments[3]);
  const tensor x(bytes, dtype::int32, layout({static_cast<index_t>(bytes.size_bytes() / 4)}));
  tensor result;
  if (mode == "dot") {
    result = dot(x, x);
  } else if (mode == "dot_backwards") {
    result = dot(x, x.flip());
  } else if (mode == "dot_columns") {
    const tensor rows = x.view({-1, 8192});
    result = dot(rows.select(1, 5), rows.select(1, 77));
  } else if (mode == "columns") {
    const tensor rows = x.view({-1, 8192});
    result = matmul(rows.narrow(1, 5, 2).swapaxes(0, 1), rows.narrow(1, 77, 2));
  } else if (mode == "tall") {
    const tensor rows = x.view({-1, 8});
    result = matmul(rows.swapaxes(0, 1), rows);
  } else if (mode == "wide") {
    result = matmul(x.view({8, -1}), x.view({-1, 8}));
  } else if (mode == "vector") {
    result = matmul(x.view({4096, -1}), counting({x.size() / 4096}));
  } else if (mode == "batch") {
    result = matmul(x.view({64, 512, -1}), counting({x.size() / (64 * 512), 2}));
  } else {
    return 2;
  }
  const std::int64_t sum = eval(shale::sum(result)).item().as<std::int64_t>();
  const auto did = on.statistics();
  std::printf("%llu %llu %ld %lld\n", static_cast<unsigned long long>(did.windows),
              static_cast<unsigned long long>(did.windows_dropped), peak_resident_kib(),
              static_cast<long long>(sum));
  return 0;
}
