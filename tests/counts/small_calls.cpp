// Makes small calls, and evaluations of many small parts, so that their work can be counted:
// instructions by callgrind, allocations and threads by itself.
//
//   small_calls NAME CALLS          makes a call CALLS times, after as many that are not counted,
//                                   but no more than ten
//   small_calls NAME CALLS PARTS    the same for a call that evaluates PARTS parts
//
// It prints a line "allocations threads": the allocations of all counted calls, and the threads of
// the process afterwards. The default executor may start threads; small calls should not.
#include <unistd.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

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

namespace {

using namespace shale;

// Sums of different tensors with a number.
std::vector<expr> make_parts(int count) {
  std::vector<expr> parts;
  for (int i = 0; i < count; ++i) parts.push_back(expr(tensor::full({4}, i, dtype::float32)) + 1);
  return parts;
}

// Slices of one tensor.
std::vector<expr> make_slices(int count) {
  const tensor whole = tensor::zeros({count, 4}, dtype::float32);
  std::vector<expr> slices;
  for (int i = 0; i < count; ++i) slices.push_back(expr(whole.select(0, i)));
  return slices;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) return 2;
  const tensor a = tensor::full({8}, 1.5, dtype::float32);
  const tensor b = tensor::full({8}, 2.5, dtype::float32);
  const tensor out = tensor::zeros({8}, dtype::float32);
  const expr kept = expr(a) + expr(b);
  const int part_count = argc == 4 ? std::atoi(argv[3]) : 1;
  const std::vector<expr> parts = make_parts(part_count);
  const std::vector<expr> slices = make_slices(part_count);
  std::vector<expr> sums;
  for (const expr& part : parts) sums.push_back(sum(part));
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
      {"concat_of_parts", [&] { eval(concat(parts, 0)); }},
      {"concat_of_slices", [&] { eval(concat(slices, 0)); }},
      {"stack_of_parts", [&] { eval(stack(parts)); }},
      {"all_parts", [&] { eval_all(parts); }},
      {"all_sums", [&] { eval_all(sums); }},
  };
  const auto chosen = calls.find(argv[1]);
  if (chosen == calls.end()) return 2;
  const int count = std::atoi(argv[2]);

  for (int i = 0; i < std::min(count, 10); ++i) chosen->second();
  const long before = allocations;
  CALLGRIND_ZERO_STATS;
  for (int i = 0; i < count; ++i) chosen->second();
  CALLGRIND_DUMP_STATS_AT(argv[1]);
  const long made = allocations - before;
  const std::filesystem::directory_iterator threads("/proc/self/task"), end;
  std::printf("%ld %td\n", made, std::distance(threads, end));
}
