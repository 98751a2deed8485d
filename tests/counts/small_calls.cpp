// Makes small calls, so that their work can be counted: instructions by callgrind, allocations and
// threads by itself.
//
//   small_calls NAME CALLS   makes a call CALLS times, after ten calls that are not counted
//
// It prints a line "allocations threads": the allocations of all counted calls, and the threads of
// the process afterwards. The default executor may start threads; small calls should not.
#include <unistd.h>
#include <valgrind/callgrind.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <string>

#include "shale/shale.hpp"

// glibc's own functions, under the names that programs may not replace.
extern "C" void* __libc_malloc(std::size_t bytes);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t bytes);

namespace {

std::atomic<long> allocations = 0;

}  // namespace

extern "C" void* malloc(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}

extern "C" int posix_memalign(void** address, std::size_t alignment, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  *address = __libc_memalign(alignment, bytes);
  return *address != nullptr ? 0 : 12;  // ENOMEM
}

int main(int argc, char** argv) {
  using namespace shale;
  if (argc != 3) return 2;
  const tensor a = tensor::full({8}, 1.5, dtype::float32);
  const tensor b = tensor::full({8}, 2.5, dtype::float32);
  const tensor out = tensor::zeros({8}, dtype::float32);
  const expr kept = expr(a) + expr(b);
  const std::map<std::string, std::function<void()>> calls = {
      {"apply", [&] { apply([](float& y, float x, float z) { y = x + z; }, out, a, b); }},
      {"copy", [&] { copy(out, a); }},
      {"fill", [&] { fill(out, 3.0); }},
      {"eval_into_new_expression", [&] { eval_into(out, expr(a) + expr(b)); }},
      {"eval_into_kept_expression", [&] { eval_into(out, kept); }},
      {"eval_kept_expression", [&] { eval(kept); }},
      {"build_expression", [&] { expr(a) + expr(b); }},
      {"exp", [&] { eval_into(out, exp(expr(a))); }},
      {"sum", [&] { eval(sum(expr(a))); }},
  };
  const auto chosen = calls.find(argv[1]);
  if (chosen == calls.end()) return 2;
  const int count = std::atoi(argv[2]);

  for (int i = 0; i < 10; ++i) chosen->second();
  const long before = allocations;
  CALLGRIND_ZERO_STATS;
  for (int i = 0; i < count; ++i) chosen->second();
  CALLGRIND_DUMP_STATS_AT(argv[1]);
  const long made = allocations - before;
  const std::filesystem::directory_iterator threads("/proc/self/task"), end;
  std::printf("%ld %td\n", made, std::distance(threads, end));
}
