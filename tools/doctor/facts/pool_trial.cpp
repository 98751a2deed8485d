#include "doctor/facts/pool_trial.hpp"

#include <unistd.h>

#include <cstddef>

#include "shale/error.hpp"
#include "terminal/stopwatch.hpp"

namespace shale::tools {

namespace {

void touch_pages(std::byte* bytes, std::size_t count) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < count; at += page)
    *static_cast<volatile std::byte*>(bytes + at) = std::byte{1};
}

// Takes memory from the pool, touches it, calls `look` with it and gives it back. Returns the
// seconds that this took, without those of `look`.
template <class Look>
double take(memory_pool& pool, std::uint64_t bytes, Look look) {
  const stopwatch clock;
  const auto block = pool.make_unique_for_overwrite<std::byte[]>(bytes);
  touch_pages(block.get(), bytes);
  const double seconds = clock.seconds();
  look(block.get());
  return seconds;
}

known<std::uint64_t> huge_bytes_at(const std::byte* address, std::uint64_t bytes,
                                   const system_tree& system) {
  const known<std::string> smaps = system.text("/proc/self/smaps");
  if (!smaps) return known<std::uint64_t>::unknown(smaps.why);
  const auto huge = parse_huge_bytes(*smaps, reinterpret_cast<std::uintptr_t>(address), bytes);
  return huge ? known<std::uint64_t>(*huge)
              : known<std::uint64_t>::unknown("/proc/self/smaps does not show the memory");
}

}  // namespace

pool_trial try_pool(memory_pool& pool, std::uint64_t bytes, const system_tree& system) {
  pool_trial trial;
  const auto step = [&](const char* name) { trial.steps.push_back({name, pool.statistics()}); };
  try {
    step("at first");
    trial.first_seconds = take(pool, bytes, [&](const std::byte* block) {
      step("taken");
      trial.huge_bytes = huge_bytes_at(block, bytes, system);
    });
    step("given back");
    trial.again_seconds = take(pool, bytes, [&](const std::byte*) { step("taken again"); });
    trial.bytes = bytes;
  } catch (const error& failure) {
    trial.failure = failure.message();
  }
  pool.trim();
  step("trimmed");
  trial.all_clear = pool.all_clear();
  return trial;
}

}  // namespace shale::tools
