// Measures reading and writing of files through Shale's mappings, and compares them with other ways
// that a program has.
//
//   bench_mapping DIRECTORY BYTES [WORK]
//
// The files have BYTES and lie in DIRECTORY. WORK is one of warm, fill, cold and tiles.
#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>

#include "shale/apply.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "shale/tensor.hpp"
#include "support/contest.hpp"
#include "support/files.hpp"
#include "support/row.hpp"
#include "support/suite.hpp"

namespace shale::bench {
namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;
using word = std::uint64_t;

std::string directory;
std::size_t file_bytes;

// All contenders do the same work for each word that they read: one addition.
word add_up(const std::byte* bytes, std::size_t count) {
  const auto* words = reinterpret_cast<const word*>(bytes);
  word sums[8] = {};
  for (std::size_t k = 0; k + 8 <= count / sizeof(word); k += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += words[k + lane];
  return std::accumulate(sums, sums + 8, word{0});
}

std::string data_path() { return directory + "/data"; }

// The test file. Its bytes are not zero, and they are on the device.
void make_data() {
  const descriptor file(data_path(), O_RDWR | O_CREAT | O_TRUNC);
  const buffer block = aligned_buffer(4 * mib);
  for (std::size_t k = 0; k < 4 * mib / sizeof(word); ++k)
    reinterpret_cast<word*>(block.get())[k] = k * 0x9e3779b97f4a7c15ull;
  for (std::size_t offset = 0; offset < file_bytes; offset += 4 * mib)
    if (::pwrite(file, block.get(), 4 * mib, static_cast<off_t>(offset)) != 4 * mib) fail("pwrite");
  if (::fsync(file) != 0) fail("fsync");
}

word expected = 0;

void check(word sum, const char* who) {
  if (expected == 0) expected = sum;
  if (sum != expected) throw std::runtime_error(std::string(who) + " read something else");
}

tensor as_words(const storage& bytes, const dims& shape) {
  return tensor(bytes, dtype::uint64, layout(shape));
}

word engine_sum(const tensor& values) {
  return reduce(
      values, word{0}, [](word& to, word value) { to += value; },
      [](word& to, word other) { to += other; });
}

// ---- warm -------------------------------------------------------------------------------------

void warm_reading() {
  const std::size_t bytes = std::min(file_bytes, 512 * mib);
  const auto count = static_cast<index_t>(bytes / sizeof(word));
  executor on({.memory_bytes = 2 * bytes});
  const executor::scope within(on);
  const storage mapped = map_file(data_path(), {.bytes = bytes, .populate = true});
  const storage heap = storage::allocate(bytes);
  std::memcpy(const_cast<std::byte*>(std::as_const(heap).data()), mapped.data(), bytes);
  const tensor from_file = as_words(mapped, {count}), from_heap = as_words(heap, {count});
  expected = 0;
  const outcome seen = compete(
      {{"mapped", [&] { return seconds_of([&] { check(engine_sum(from_file), "mapped"); }); }},
       {"heap", [&] { return seconds_of([&] { check(engine_sum(from_heap), "heap"); }); }}},
      21);
  row made{.work = "read a warm mapped file",
           .bytes = bytes,
           .seconds = seen.median("mapped"),
           .limit = seen.of("heap", "mapped"),
           .peak_rss_bytes = peak_rss_bytes()};
  made.reach = target{seen.of("heap", "mapped"), 0.95, true, "heap memory"};
  print(made);
}

// ---- filling ----------------------------------------------------------------------------------

void filling() {
  const std::size_t bytes = std::min(file_bytes, 512 * mib);
  const std::string path = directory + "/new";
  const buffer block = aligned_buffer(mib);
  std::memset(block.get(), 1, mib);
  executor on({.memory_bytes = 2 * bytes});
  const executor::scope within(on);
  const auto remove_it = [&] { ::unlink(path.c_str()); };
  const outcome seen =
      compete({{"mapped",
                [&] {
                  const double seconds = seconds_of([&] {
                    const storage made = create_file(path, bytes);
                    tensor values = as_words(made, {static_cast<index_t>(bytes / sizeof(word))});
                    apply([](word& to) { to = 0x0101010101010101u; }, values);
                  });
                  remove_it();
                  return seconds;
                }},
               {"pwrite",
                [&] {
                  const double seconds = seconds_of([&] {
                    const descriptor file(path, O_RDWR | O_CREAT | O_EXCL);
                    for (std::size_t offset = 0; offset < bytes; offset += mib)
                      if (::pwrite(file, block.get(), mib, static_cast<off_t>(offset)) != mib)
                        fail("pwrite");
                  });
                  remove_it();
                  return seconds;
                }}},
              9);
  row made{.work = "fill a new mapped file",
           .bytes = bytes,
           .seconds = seen.median("mapped"),
           .peers = {{"pwrite", seen.of("pwrite", "mapped")}},
           .peak_rss_bytes = peak_rss_bytes()};
  made.reach = target{seen.of("pwrite", "mapped"), 0.90, true, "pwrite"};
  print(made);
}

// ---- cold, from front to end --------------------------------------------------------------------

double cold(const std::function<word()>& read, const char* who) {
  make_cold(data_path());
  return seconds_of([&] { check(read(), who); });
}

word read_blocks(int flags) {
  const descriptor file(data_path(), O_RDONLY | flags);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  const buffer block = aligned_buffer(4 * mib);
  word sum = 0;
  for (std::size_t offset = 0; offset < file_bytes; offset += 4 * mib) {
    if (::pread(file, block.get(), 4 * mib, static_cast<off_t>(offset)) != 4 * mib) fail("pread");
    sum += add_up(block.get(), 4 * mib);
  }
  return sum;
}

word read_hinted_mapping() {
  const descriptor file(data_path(), O_RDONLY);
  void* const base = ::mmap(nullptr, file_bytes, PROT_READ, MAP_SHARED, file, 0);
  if (base == MAP_FAILED) fail("mmap");
  ::madvise(base, file_bytes, MADV_SEQUENTIAL);
  ::madvise(base, file_bytes, MADV_WILLNEED);
  const word sum = add_up(static_cast<const std::byte*>(base), file_bytes);
  ::munmap(base, file_bytes);
  return sum;
}

void cold_reading() {
  expected = 0;
  executor on({.memory_bytes = 64 * mib});
  const executor::scope within(on);
  const outcome seen = compete(
      {{"shale",
        [&] {
          return cold(
              [&] {
                const storage file = map_file(data_path());
                return engine_sum(
                    as_words(file, {static_cast<index_t>(file_bytes / sizeof(word))}));
              },
              "shale");
        }},
       {"pread", [&] { return cold([] { return read_blocks(0); }, "pread"); }},
       {"O_DIRECT", [&] { return cold([] { return read_blocks(O_DIRECT); }, "O_DIRECT"); }},
       {"mapping with hints", [&] { return cold(read_hinted_mapping, "mapping with hints"); }}},
      7);
  const std::string best = seen.best({"pread", "O_DIRECT", "mapping with hints"});
  row made{.work = "read a cold file, 64 MiB budget",
           .bytes = file_bytes,
           .seconds = seen.median("shale"),
           .limit = seen.of(best, "shale"),
           .peers = {{"pread", seen.of("pread", "shale")},
                     {"O_DIRECT", seen.of("O_DIRECT", "shale")},
                     {"mapping with hints", seen.of("mapping with hints", "shale")}},
           .peak_rss_bytes = peak_rss_bytes()};
  made.reach = target{seen.of(best, "shale"), 0.95, true, "the best, " + best};
  print(made);
}

// ---- cold, every fourth tile --------------------------------------------------------------------

constexpr std::size_t tile_step = 4;

word tiles_deep_willneed(std::size_t tile_bytes) {
  const descriptor file(data_path(), O_RDONLY);
  auto* const base =
      static_cast<std::byte*>(::mmap(nullptr, file_bytes, PROT_READ, MAP_SHARED, file, 0));
  if (base == MAP_FAILED) fail("mmap");
  ::madvise(base, file_bytes, MADV_RANDOM);
  const std::size_t step = tile_step * tile_bytes,
                    ahead = std::max<std::size_t>(32 * mib / tile_bytes, 1);
  std::size_t asked = 0;
  word sum = 0;
  for (std::size_t offset = 0; offset < file_bytes; offset += step) {
    for (; asked < std::min(file_bytes, offset + ahead * step); asked += step)
      ::madvise(base + asked, tile_bytes, MADV_WILLNEED);
    sum += add_up(base + offset, tile_bytes);
  }
  ::munmap(base, file_bytes);
  return sum;
}

word tiles_pread_pool(std::size_t tile_bytes) {
  const descriptor file(data_path(), O_RDONLY);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
  std::atomic<std::size_t> next = 0;
  std::atomic<word> sum = 0;
  std::vector<std::thread> threads;
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&] {
      const buffer block = aligned_buffer(tile_bytes);
      const std::size_t step = tile_step * tile_bytes;
      for (std::size_t claimed; (claimed = next.fetch_add(step)) < file_bytes;) {
        if (::pread(file, block.get(), tile_bytes, static_cast<off_t>(claimed)) !=
            static_cast<ssize_t>(tile_bytes))
          fail("pread");
        sum += add_up(block.get(), tile_bytes);
      }
    });
  for (auto& thread : threads) thread.join();
  return sum;
}

word tiles_io_uring(std::size_t tile_bytes) {
  const descriptor file(data_path(), O_RDONLY | O_DIRECT);
  const unsigned depth =
      static_cast<unsigned>(std::clamp<std::size_t>(32 * mib / tile_bytes, 8, 64));
  io_uring ring;
  if (const int code = ::io_uring_queue_init(depth, &ring, 0); code < 0) {
    errno = -code;
    fail("io_uring_queue_init");
  }
  std::vector<buffer> blocks;
  const std::size_t step = tile_step * tile_bytes;
  std::size_t next = 0;
  const auto ask = [&](std::size_t block) {
    io_uring_sqe* const entry = ::io_uring_get_sqe(&ring);
    ::io_uring_prep_read(entry, file, blocks[block].get(), static_cast<unsigned>(tile_bytes), next);
    ::io_uring_sqe_set_data64(entry, block);
    next += step;
  };
  std::size_t under_way = 0;
  for (; under_way < depth && next < file_bytes; ++under_way) {
    blocks.push_back(aligned_buffer(tile_bytes));
    ask(under_way);
  }
  ::io_uring_submit(&ring);
  word sum = 0;
  while (under_way > 0) {
    io_uring_cqe* done = nullptr;
    if (::io_uring_wait_cqe(&ring, &done) < 0 || done->res != static_cast<int>(tile_bytes))
      fail("io_uring");
    const auto block = static_cast<std::size_t>(::io_uring_cqe_get_data64(done));
    ::io_uring_cqe_seen(&ring, done);
    sum += add_up(blocks[block].get(), tile_bytes);
    --under_way;
    if (next < file_bytes) {
      ask(block);
      ++under_way;
      ::io_uring_submit(&ring);
    }
  }
  ::io_uring_queue_exit(&ring);
  return sum;
}

void cold_tiles(std::size_t tile_bytes) {
  expected = 0;
  executor on({.memory_bytes = 64 * mib});
  const executor::scope within(on);
  const auto words = static_cast<index_t>(tile_bytes / sizeof(word));
  const auto rows = static_cast<index_t>(file_bytes / tile_bytes);
  const outcome seen = compete(
      {{"shale",
        [&] {
          return cold(
              [&] {
                const tensor all = as_words(map_file(data_path()), {rows, words});
                return engine_sum(all.sliced(0, {.step = static_cast<index_t>(tile_step)}));
              },
              "shale");
        }},
       {"deep WILLNEED",
        [&] { return cold([&] { return tiles_deep_willneed(tile_bytes); }, "deep WILLNEED"); }},
       {"pread, 8 threads",
        [&] { return cold([&] { return tiles_pread_pool(tile_bytes); }, "pread pool"); }},
       {"io_uring", [&] { return cold([&] { return tiles_io_uring(tile_bytes); }, "io_uring"); }}},
      7);
  const std::string best = seen.best({"deep WILLNEED", "pread, 8 threads", "io_uring"});
  row made{.work = "every fourth tile of " + std::to_string(tile_bytes / kib) + " KiB, cold",
           .bytes = file_bytes / tile_step,
           .seconds = seen.median("shale"),
           .limit = seen.of(best, "shale"),
           .peers = {{"deep WILLNEED", seen.of("deep WILLNEED", "shale")},
                     {"pread, 8 threads", seen.of("pread, 8 threads", "shale")},
                     {"io_uring", seen.of("io_uring", "shale")}},
           .peak_rss_bytes = peak_rss_bytes()};
  made.reach = target{seen.of(best, "shale"), 0.9, true, "the best, " + best};
  print(made);
}

int run(std::span<char*> arguments) {
  if (arguments.size() != 3 && arguments.size() != 4)
    throw std::runtime_error("usage: bench_mapping DIRECTORY BYTES [warm|fill|cold|tiles]");
  directory = arguments[1];
  file_bytes = std::stoull(arguments[2]) / (4 * mib) * (4 * mib);
  if (file_bytes == 0) throw std::runtime_error("at least 4 MiB");
  const std::string only = arguments.size() == 4 ? arguments[3] : "";
  const auto wanted = [&](const char* work) { return only.empty() || only == work; };
  make_data();
  if (wanted("warm")) warm_reading();
  if (wanted("fill")) filling();
  if (wanted("cold")) cold_reading();
  if (wanted("tiles"))
    for (const std::size_t tile_bytes : {64 * kib, mib}) cold_tiles(tile_bytes);
  return 0;
}

}  // namespace
}  // namespace shale::bench

int main(int count, char** arguments) {
  return shale::bench::run_suite(shale::bench::run, count, arguments);
}
