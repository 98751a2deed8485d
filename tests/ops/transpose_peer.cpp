// Copies a matrix transposed between two mapped files, in a process of its own:
// `transpose_peer SIDE BUDGET_MIB OUT IN`, files of SIDE x SIDE int32. Prints its peak of resident
// KiB.
#include <cstdio>
#include <cstdlib>

#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "support/peak_resident.hpp"

namespace {

using namespace shale;
using test::peak_resident_kib;

tensor matrix(const char* path, index_t side, shale::access allowed) {
  return tensor(map_file(path, {.access = allowed}), dtype::int32, layout({side, side}));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const index_t side = std::atoll(arguments[1]);
  executor on({.threads = 2, .memory_bytes = std::strtoull(arguments[2], nullptr, 10) << 20});
  const executor::scope within(on);
  const tensor out = matrix(arguments[3], side, shale::access::read_write);
  const tensor in = matrix(arguments[4], side, shale::access::read_only);
  copy(out, expr(in.swapaxes(0, 1)));
  std::printf("%ld\n", peak_resident_kib());
  return 0;
}
