// Compares the pool with other allocators. The measured work is the whole cost of a temporary: the
// block is allocated, every page of it is touched, and it is freed.
//
// Without arguments the program runs the whole suite. `--cycles BYTES` measures one size only.
// `--mixed NAME` and `--cross NAME` measure one allocator in a process of its own, so that the peak
// memory of the process is that of the allocator.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <thread>

#include "shale/memory_pool.hpp"
#include "support/allocators.hpp"
#include "support/contest.hpp"
#include "support/row.hpp"
#include "support/suite.hpp"

namespace shale::bench {
namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;
constexpr std::size_t page_bytes = 4096;
constexpr int rounds = 15;

void touch(void* block, std::size_t bytes) {
  auto* const page_of_block = static_cast<volatile char*>(block);
  for (std::size_t offset = 0; offset < bytes; offset += page_bytes) page_of_block[offset] = 1;
}

// Threads that start the same work at the same time, in each round again.
class crew {
 public:
  explicit crew(int threads) : start_(threads), end_(threads) {
    for (int k = 1; k < threads; ++k)
      others_.emplace_back([this, k] {
        for (;;) {
          start_.arrive_and_wait();
          if (!work_) return;
          (*work_)(k);
          end_.arrive_and_wait();
        }
      });
  }
  ~crew() {
    work_ = nullptr;
    start_.arrive_and_wait();
    for (auto& thread : others_) thread.join();
  }
  // Seconds from the start of the first thread to the end of the last one.
  double run(const std::function<void(int thread)>& work) {
    work_ = &work;
    return seconds_of([&] {
      start_.arrive_and_wait();
      work(0);
      end_.arrive_and_wait();
    });
  }

 private:
  std::barrier<> start_, end_;
  const std::function<void(int)>* work_ = nullptr;
  std::vector<std::thread> others_;
};

// Memory that is resident already, on huge pages if the machine has them.
class kept_memory {
 public:
  explicit kept_memory(std::size_t bytes) : bytes_(bytes + 2 * mib) {
    base_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::runtime_error("mmap failed");
    const auto address = reinterpret_cast<std::uintptr_t>(base_);
    aligned_ = reinterpret_cast<void*>((address + 2 * mib - 1) / (2 * mib) * (2 * mib));
    ::madvise(aligned_, bytes, MADV_HUGEPAGE);
    touch(aligned_, bytes);
  }
  kept_memory(const kept_memory&) = delete;
  ~kept_memory() { ::munmap(base_, bytes_); }
  void* get() const { return aligned_; }

 private:
  std::size_t bytes_;
  void* base_ = nullptr;
  void* aligned_ = nullptr;
};

std::map<std::string, ratio> against_peers(const outcome& seen) {
  std::map<std::string, ratio> ratios;
  for (const auto& name : allocator_names())
    if (name != "shale") ratios[name] = seen.of(name, "shale");
  return ratios;
}

std::string best_peer(const outcome& seen) {
  auto names = allocator_names();
  names.erase(names.begin());
  return seen.best(names);
}

// ---- one block over and over --------------------------------------------------------------------

void cycles(std::size_t bytes, int threads) {
  const int repeats = static_cast<int>(std::clamp<std::size_t>(256 * mib / bytes, 4, 2000));
  crew all(threads);
  std::vector<contender> contenders;
  for (const auto& name : allocator_names()) {
    auto& allocator = allocator_named(name);
    const auto cycle = [&allocator, bytes](int count) {
      for (int k = 0; k < count; ++k) {
        void* const block = allocator.allocate(bytes);
        touch(block, bytes);
        allocator.deallocate(block, bytes);
      }
    };
    contenders.push_back({name, [&all, cycle, repeats] {
                            // Reaches a steady state: allocators may have given memory back while
                            // others were measured.
                            all.run([&](int) { cycle(2); });
                            return all.run([&](int) { cycle(repeats); });
                          }});
  }
  std::vector<std::unique_ptr<kept_memory>> kept;
  for (int k = 0; k < threads; ++k) kept.push_back(std::make_unique<kept_memory>(bytes));
  contenders.push_back({"kept", [&] {
                          return all.run([&](int thread) {
                            void* const block = kept[static_cast<std::size_t>(thread)]->get();
                            for (int k = 0; k < repeats; ++k) touch(block, bytes);
                          });
                        }});
  const outcome seen = compete(contenders, rounds);
  const std::string size =
      bytes >= mib ? std::to_string(bytes / mib) + " MiB" : std::to_string(bytes / kib) + " KiB";
  const std::string work =
      size + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  row made{.work = work,
           .bytes = bytes * static_cast<std::size_t>(repeats) * static_cast<std::size_t>(threads),
           .seconds = seen.median("shale"),
           .limit = seen.of("kept", "shale"),
           .peers = against_peers(seen),
           .peak_rss_bytes = peak_rss_bytes()};
  const std::string best = best_peer(seen);
  made.reach = target{seen.of("shale", best), 1.0, false, "the best peer, " + best};
  print(made);
  if (bytes == mib || bytes == 16 * mib || bytes == 64 * mib) {
    made.work = work + ": memory that is there";
    made.peers.clear();
    made.reach = target{seen.of("shale", "kept"), 1.15, false, "touching kept memory"};
    print(made);
  }
  if (bytes == 64 * mib) {
    made.work = work + ": glibc";
    made.reach = target{seen.of("glibc", "shale"), 10, true, "glibc"};
    print(made);
  }
}

// ---- mixed sizes and lifetimes ------------------------------------------------------------------

struct usage {
  double seconds = 0;
  std::uint64_t peak_live = 0, peak_rss = 0;
};

// Two threads hold 24 blocks of 32 KiB to 4 MiB each. Blocks are replaced at random, and every page
// is touched. The time counts from the moment at which all blocks exist; the peaks include the
// beginning.
usage mixed_here(const std::string& name) {
  auto& allocator = allocator_named(name);
  const std::uint64_t before = rss_bytes();
  std::atomic<std::uint64_t> live = 0, peak = 0;
  struct worker {
    std::mt19937_64 random;
    std::vector<std::pair<void*, std::size_t>> blocks{24};
  };
  std::array<worker, 2> workers{worker{std::mt19937_64(1)}, worker{std::mt19937_64(2)}};
  const auto release = [&](auto& block) {
    if (!block.first) return;
    allocator.deallocate(block.first, block.second);
    live -= block.second;
    block.first = nullptr;
  };
  const auto replace = [&](worker& self, auto& block) {
    std::uniform_real_distribution<double> size_log2(15, 22);
    release(block);
    block.second = static_cast<std::size_t>(std::exp2(size_log2(self.random)));
    block.first = allocator.allocate(block.second);
    touch(block.first, block.second);
    const std::uint64_t now = live += block.second;
    std::uint64_t highest = peak;
    while (now > highest && !peak.compare_exchange_weak(highest, now)) {
    }
  };
  const auto replace_many = [&](worker& self, int count) {
    for (int k = 0; k < count; ++k) replace(self, self.blocks[self.random() % self.blocks.size()]);
  };
  crew all(2);
  all.run([&](int thread) { replace_many(workers[static_cast<std::size_t>(thread)], 5000); });
  usage result;
  result.seconds =
      all.run([&](int thread) { replace_many(workers[static_cast<std::size_t>(thread)], 40000); });
  for (auto& started : workers)
    for (auto& block : started.blocks) release(block);
  result.peak_live = peak;
  result.peak_rss = peak_rss_bytes() - before;
  return result;
}

// ---- blocks freed by another thread -------------------------------------------------------------

// One thread allocates and another one frees: `operations` blocks of 32 to 512 KiB. Returns the
// memory of the process after a tenth of the operations, and at the end.
usage cross_here(const std::string& name, std::size_t operations) {
  auto& allocator = allocator_named(name);
  constexpr std::size_t ring = 64;
  std::vector<std::atomic<void*>> slots(ring);
  const auto bytes_of = [](std::size_t k) { return (32 + (k * 7919) % 480) * kib; };
  usage result;
  crew all(2);
  std::uint64_t early = 0;
  result.seconds = all.run([&](int thread) {
    for (std::size_t k = 0; k < operations; ++k) {
      auto& slot = slots[k % ring];
      if (thread == 0) {
        void* const block = allocator.allocate(bytes_of(k));
        std::memset(block, 1, 64);
        while (slot.load(std::memory_order_relaxed)) std::this_thread::yield();
        slot.store(block, std::memory_order_release);
        if (k == operations / 10) early = rss_bytes();
      } else {
        void* block = nullptr;
        while (!(block = slot.load(std::memory_order_acquire))) std::this_thread::yield();
        allocator.deallocate(block, bytes_of(k));
        slot.store(nullptr, std::memory_order_release);
      }
    }
  });
  result.peak_live = early;
  result.peak_rss = rss_bytes();
  return result;
}

// ---- in processes of their own ------------------------------------------------------------------

usage in_own_process(const std::string& mode, const std::string& name) {
  const std::string command = "/proc/self/exe";
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    ::execl(command.c_str(), "bench_pool", mode.c_str(), name.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  usage result;
  FILE* const text = ::fdopen(ends[0], "r");
  const int read =
      std::fscanf(text, "%lf %lu %lu", &result.seconds, &result.peak_live, &result.peak_rss);
  std::fclose(text);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (read != 3 || status != 0) throw std::runtime_error(mode + " " + name + " failed");
  return result;
}

void mixed() {
  std::map<std::string, std::vector<double>> peaks;
  std::uint64_t largest = 0;
  std::vector<contender> contenders;
  for (const auto& name : allocator_names())
    contenders.push_back({name, [&, name] {
                            const usage seen = in_own_process("--mixed", name);
                            peaks[name].push_back(static_cast<double>(seen.peak_rss) /
                                                  static_cast<double>(seen.peak_live));
                            if (name == "shale") largest = std::max(largest, seen.peak_rss);
                            return seen.seconds;
                          }});
  const outcome seen = compete(contenders, 9);
  const std::string best = best_peer(seen);
  row made{.work = "mixed 32 KiB to 4 MiB, 2 threads",
           .seconds = seen.median("shale"),
           .peers = against_peers(seen),
           .peak_rss_bytes = largest};
  made.reach = target{seen.of("shale", best), 1.0, false, "the best peer, " + best};
  print(made);
  made.work += ": peak resident / peak live";
  for (auto& [name, times] : made.peers) times = middle_of(peaks[name]);
  made.reach = target{middle_of(peaks["shale"]), 1.25, false, "peak live"};
  made.note = "peers: their own peak resident / peak live";
  print(made);
}

void cross() {
  const usage seen = in_own_process("--cross", "shale");
  const double growth = static_cast<double>(seen.peak_rss) / static_cast<double>(seen.peak_live);
  row made{.work = "freed by another thread, 10^7 blocks",
           .seconds = seen.seconds,
           .peak_rss_bytes = seen.peak_rss};
  made.reach = target{{growth, growth, growth}, 1.05, false, "resident after 10^6"};
  print(made);
}

// ---- after the load -----------------------------------------------------------------------------

void after_the_load() {
  memory_pool& pool = memory_pool::default_pool();
  pool.trim();
  const std::uint64_t before = rss_bytes();
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (std::size_t k = 0; k < 400; ++k) {
    const std::size_t bytes = (64 << (k % 8)) * kib;
    blocks.emplace_back(pool.allocate(bytes, 64), bytes);
    touch(blocks.back().first, bytes);
  }
  const std::uint64_t loaded = rss_bytes() - before;
  const auto start = std::chrono::steady_clock::now();
  for (const auto& [block, bytes] : blocks) pool.deallocate(block, bytes, 64);
  const auto wait_until = [&](auto reached, double at_most) {
    for (;;) {
      const double passed =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (reached()) return passed;
      if (passed > at_most) return std::numeric_limits<double>::infinity();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  };
  const double idle = wait_until(
      [&] {
        const auto now = pool.statistics();
        return now.idle_bytes <= std::max(now.live_bytes / 2, 64 * mib);
      },
      60);
  row made{.work = "idle bytes under 64 MiB after the load, seconds", .bytes = loaded};
  made.seconds = idle;
  made.reach = target{{idle, idle, idle}, 2, false, "2 s"};
  print(made);
  const double returned = wait_until([&] { return pool.statistics().mapped_bytes == 0; }, 60);
  made.work = "memory given back after the load, seconds";
  made.seconds = returned;
  made.reach = target{{returned, returned, returned}, 30, false, "30 s"};
  made.note = "mapped bytes are then 0";
  print(made);
}

int run(std::span<char*> arguments) {
  const std::string mode = arguments.size() > 1 ? arguments[1] : "";
  if (mode == "--mixed" || mode == "--cross") {
    const std::string name = arguments.size() > 2 ? arguments[2] : "shale";
    const usage seen = mode == "--mixed" ? mixed_here(name) : cross_here(name, 10'000'000);
    std::printf("%.9g %lu %lu\n", seen.seconds, seen.peak_live, seen.peak_rss);
    return 0;
  }
  if (mode == "--cycles") {
    for (const int threads : {1, 2})
      cycles(std::stoul(arguments.size() > 2 ? arguments[2] : "1048576"), threads);
    return 0;
  }
  for (const int threads : {1, 2})
    for (const std::size_t bytes :
         {32 * kib, 256 * kib, mib, 4 * mib, 16 * mib, 64 * mib, 256 * mib})
      cycles(bytes, threads);
  mixed();
  cross();
  after_the_load();
  return 0;
}

}  // namespace
}  // namespace shale::bench

int main(int count, char** arguments) {
  return shale::bench::run_suite(shale::bench::run, count, arguments);
}
