// The suite `streams`: work on files larger than the memory budget, against the disk.
//
//   bench_streams FOLDER BYTES [--memory BYTES] [--rounds N] [--only TEXT]
//
// The files have about BYTES each and lie in FOLDER, which is empty; there are at most three of
// them. Each round begins without them in the page cache, and ends when every byte of its result is
// on the device. The limit of a work is a loop that reads and writes the same bytes: it reads a
// block while another thread writes the one before, with O_DIRECT where the file system has it. The
// limit of products and factorizations is the same work in memory. Shale's budget is an eighth of
// BYTES, or --memory.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/histograms.hpp"
#include "shale/linalg.hpp"
#include "shale/low_rank.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/order_statistics.hpp"
#include "shale/random.hpp"
#include "shale/scans.hpp"
#include "shale/sorting.hpp"
#include "shale/tall_qr.hpp"
#include "shale/tensor.hpp"
#include "support/contest.hpp"
#include "support/files.hpp"
#include "support/options.hpp"
#include "support/row.hpp"
#include "support/suite.hpp"

namespace shale::bench {
namespace {

constexpr std::size_t mib = 1024 * 1024;
constexpr std::size_t block_bytes = 4 * mib;

// Sides of matrices and cubes are multiples of this, so that files consist of whole blocks.
constexpr index_t side_unit = 128;

struct settings {
  std::string folder;
  std::size_t memory_bytes = 0;
  int rounds = 3;
  std::string only;
  index_t side = 0;  // of square matrices
  index_t edge = 0;  // of cubes

  std::string a() const { return folder + "/a"; }
  std::string b() const { return folder + "/b"; }
  std::string result() const { return folder + "/result"; }
  std::size_t matrix_bytes() const { return static_cast<std::size_t>(side * side) * sizeof(float); }
  std::size_t cube_bytes() const {
    return static_cast<std::size_t>(edge * edge * edge) * sizeof(float);
  }
};

// Writes a file of elements from 0 to 2. A million of them differ.
void make_operand(const std::string& path, std::size_t bytes) {
  const buffer block = aligned_buffer(block_bytes);
  auto* const elements = reinterpret_cast<float*>(block.get());
  for (std::size_t k = 0; k < block_bytes / sizeof(float); ++k)
    elements[k] = static_cast<float>(static_cast<std::uint32_t>(k * 2654435761U) >> 8) / 0x1p23F;
  write_plain_file(path, block.get(), block_bytes, bytes);
}

// ---- the disk -----------------------------------------------------------------------------------

void read_block(int file, std::byte* into, std::size_t bytes, std::uint64_t offset) {
  if (::pread(file, into, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes))
    fail("pread");
}

void write_block(int file, const std::byte* from, std::size_t bytes, std::uint64_t offset) {
  if (::pwrite(file, from, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes))
    fail("pwrite");
}

// O_DIRECT, unless the file system of that file refuses it.
int direct(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (file >= 0) ::close(file);
  return file >= 0 ? O_DIRECT : 0;
}

// Reads `bytes` of each input, block by block in turns, and writes as many to `output` if that is
// not empty. The output may be the only input.
void stream(const std::vector<std::string>& inputs, const std::string& output, std::size_t bytes) {
  const int extra = direct(inputs[0]);
  std::deque<descriptor> files;
  for (const std::string& input : inputs) files.emplace_back(input, O_RDONLY | extra);
  const bool in_place = inputs.size() == 1 && inputs[0] == output;
  const bool writes = !output.empty();
  const descriptor target(writes ? output : inputs[0], (!writes    ? O_RDONLY
                                                        : in_place ? O_RDWR
                                                                   : O_RDWR | O_CREAT | O_TRUNC) |
                                                           extra);
  if (writes && ::fallocate(target, 0, 0, static_cast<off_t>(bytes)) != 0) fail("fallocate");
  const buffer blocks[2] = {aligned_buffer(block_bytes), aligned_buffer(block_bytes)};
  std::future<void> writing;
  std::size_t turn = 0;
  for (std::size_t offset = 0; offset < bytes; offset += block_bytes, turn = 1 - turn) {
    const std::size_t part = std::min(block_bytes, bytes - offset);
    std::byte* const block = blocks[turn].get();
    for (const descriptor& file : files) read_block(file, block, part, offset);
    if (!writes) continue;
    if (writing.valid()) writing.get();
    writing = std::async(std::launch::async, [&target, block, part, offset] {
      write_block(target, block, part, offset);
    });
  }
  if (writing.valid()) writing.get();
  if (writes && ::fdatasync(target) != 0) fail("fdatasync");
}

// ---- works --------------------------------------------------------------------------------------

struct work {
  std::string name;
  std::uint64_t moved_bytes;  // read and written
  double reach;
  std::function<void()> shale;
  std::function<double()> limit;  // its seconds
  std::string against = "the disk";
};

double seconds_cold(const settings& chosen, const std::function<void()>& does) {
  make_cold(chosen.a());
  make_cold(chosen.b());
  return seconds_of(does);
}

// The limit of a work that moves these bytes.
std::function<double()> disk(const settings& chosen, const std::function<void()>& streams) {
  return [=] {
    ::unlink(chosen.result().c_str());
    return seconds_cold(chosen, streams);
  };
}

tensor mapped(const std::string& path, const dims& shape, access how = access::read_only) {
  const std::size_t bytes = static_cast<std::size_t>(element_count(shape)) * sizeof(float);
  return tensor(map_file(path, {.bytes = bytes, .access = how}), dtype::float32, layout(shape));
}

// Makes the result's file anew, and `fill`s it.
void make_result(const settings& chosen, const dims& shape,
                 const std::function<void(const tensor&)>& fill) {
  ::unlink(chosen.result().c_str());
  const std::size_t bytes = static_cast<std::size_t>(element_count(shape)) * sizeof(float);
  const storage made = create_file(chosen.result(), bytes);
  fill(tensor(made, dtype::float32, layout(shape)));
  made.flush();
}

void measure(const work& about, const settings& chosen) {
  if (about.name.find(chosen.only) == std::string::npos) return;
  std::uint64_t peak = 0;
  const outcome seen = compete({{"shale",
                                 [&] {
                                   reset_peak_rss();
                                   const double seconds = seconds_cold(chosen, about.shale);
                                   peak = std::max(peak, peak_rss_bytes());
                                   return seconds;
                                 }},
                                {"limit", about.limit}},
                               chosen.rounds);
  ::unlink(chosen.result().c_str());
  row made{.work = about.name,
           .bytes = about.moved_bytes,
           .seconds = seen.median("shale"),
           .limit = seen.of("limit", "shale"),
           .peak_rss_bytes = peak};
  made.reach = target{seen.of("limit", "shale"), about.reach, true, about.against};
  print(made);
}

std::vector<work> reading_works(const settings& chosen) {
  const dims matrix{chosen.side, chosen.side};
  const std::size_t bytes = chosen.matrix_bytes();
  const auto reads_a = disk(chosen, [=] { stream({chosen.a()}, "", bytes); });
  const auto a = [=] { return expr(mapped(chosen.a(), matrix)); };
  return {
      {"sum(a)", bytes, 0.95, [=] { eval(sum(a())); }, reads_a},
      {"mean(a, axis 0)", bytes, 0.95, [=] { eval(mean(a(), {0})); }, reads_a},
      {"mean(a, axis 1)", bytes, 0.95, [=] { eval(mean(a(), {1})); }, reads_a},
      {"sum(a + b.T)", 2 * bytes, 0.5,
       [=] { eval(sum(a() + expr(mapped(chosen.b(), matrix).swapaxes(0, 1)))); },
       disk(chosen,
            [=] {
              stream({chosen.a(), chosen.b()}, "", bytes);
            })},
  };
}

// Works on one lane of all elements.
std::vector<work> ordering_works(const settings& chosen) {
  const dims lane{chosen.side * chosen.side};
  const std::size_t bytes = chosen.matrix_bytes();
  const auto a = [=] { return expr(mapped(chosen.a(), lane)); };
  const auto reads_a = disk(chosen, [=] { stream({chosen.a()}, "", bytes); });
  return {
      {"histogram(a), 256 bins", bytes, 0.9,
       [=] {
         histogram(a(), 256, {.range = value_range{0, 2}});
       },
       reads_a},
      {"topk(a, 100)", bytes, 0.9, [=] { topk(a(), 100); }, reads_a},
      {"median(a)", 2 * bytes, 0.9, [=] { median(a()); },
       disk(chosen,
            [=] {
              for (int read = 0; read < 2; ++read) stream({chosen.a()}, "", bytes);
            })},
      {"c = cumulative_sum(a)", 2 * bytes, 0.9,
       [=] {
         make_result(chosen, lane, [&](const tensor& out) { eval_into(out, cumulative_sum(a())); });
       },
       disk(chosen, [=] { stream({chosen.a()}, chosen.result(), bytes); })},
      // Sorted runs are written and read again.
      {"sort(a)", 4 * bytes, 0.8, [=] { sort(a()).storage().flush(); },
       disk(chosen,
            [=] {
              for (int read = 0; read < 2; ++read) stream({chosen.a()}, chosen.result(), bytes);
            })},
  };
}

std::vector<work> writing_works(const settings& chosen) {
  const dims matrix{chosen.side, chosen.side}, cube{chosen.edge, chosen.edge, chosen.edge};
  const std::size_t bytes = chosen.matrix_bytes(), cube_bytes = chosen.cube_bytes();
  const auto a = [=] { return expr(mapped(chosen.a(), matrix)); };
  const auto b = [=] { return expr(mapped(chosen.b(), matrix)); };
  const auto into_result = [=](const std::function<expr()>& value) {
    return
        [=] { make_result(chosen, matrix, [&](const tensor& out) { eval_into(out, value()); }); };
  };
  const auto reads_both = disk(chosen, [=] {
    stream({chosen.a(), chosen.b()}, chosen.result(), bytes);
  });
  return {
      {"c = a + b", 3 * bytes, 0.95, into_result([=] { return a() + b(); }), reads_both},
      {"c = sqrt(a*a + b*b)", 3 * bytes, 0.95, into_result([=] {
         const expr x = a(), y = b();
         return sqrt(x * x + y * y);
       }),
       reads_both},
      {"a = a*0.5 + 1, in place", 2 * bytes, 0.9,
       [=] {
         const tensor values = mapped(chosen.a(), matrix, access::read_write);
         eval_into(values, expr(values) * 0.5 + 1);
         values.storage().flush();
       },
       disk(chosen, [=] { stream({chosen.a()}, chosen.a(), bytes); })},
      {"c = (a - mean(a)) / stddev(a)", 3 * bytes, 0.9, into_result([=] {
         const expr x = a();
         return (x - mean(x)) / stddev(x);
       }),
       disk(chosen,
            [=] {
              stream({chosen.a()}, "", bytes);
              stream({chosen.a()}, chosen.result(), bytes);
            })},
      {"transposed copy", 2 * bytes, 0.6,
       [=] {
         make_result(chosen, matrix, [&](const tensor& out) { copy(out, a().swapaxes(0, 1)); });
       },
       disk(chosen, [=] { stream({chosen.a()}, chosen.result(), bytes); })},
      {"permute (2, 0, 1)", 2 * cube_bytes, 0.6,
       [=] {
         make_result(chosen, cube, [&](const tensor& out) {
           copy(out, mapped(chosen.a(), cube).permute_dims({2, 0, 1}));
         });
       },
       disk(chosen, [=] { stream({chosen.a()}, chosen.result(), cube_bytes); })},
  };
}

// Products and factorizations, against the same in memory: of matrices that have a 64th of a file's
// elements, with a quarter of such a matrix as their budget; or of a 32nd of the rows.
std::vector<work> linear_works(const settings& chosen) {
  constexpr index_t columns = 128, parts = 32;
  const index_t side = std::max(chosen.side / 8 / side_unit * side_unit, side_unit);
  const index_t rows = chosen.side * chosen.side / columns;
  const dims square{side, side}, tall{rows, columns}, part{rows / parts, columns};
  const auto square_bytes = static_cast<std::size_t>(side * side) * sizeof(float);
  const auto in_memory = [](const std::string& path, const dims& shape) {
    return eval(expr(mapped(path, shape)) * 1);
  };
  const auto components = [](const tensor& samples) {
    generator random(1);
    pca(random, samples, 5);
  };
  return {
      {"c = matmul(a, b)", 3 * square_bytes, 0.8,
       [=] {
         executor small({.memory_bytes = square_bytes / 4});
         const executor::scope within(small);
         make_result(chosen, square, [&](const tensor& out) {
           eval_into(out, matmul(mapped(chosen.a(), square), mapped(chosen.b(), square)));
         });
       },
       [=] {
         executor large;
         const executor::scope within(large);
         const tensor a = in_memory(chosen.a(), square), b = in_memory(chosen.b(), square);
         const tensor out = tensor::zeros(square, dtype::float32);
         return seconds_of([&] { eval_into(out, matmul(a, b)); });
       },
       "memory"},
      {"tall QR, 128 columns", chosen.matrix_bytes(), 0.8,
       [=] { tsqr_r(mapped(chosen.a(), tall)); },
       [=] {
         const tensor a = in_memory(chosen.a(), part);
         return parts * seconds_of([&] { tsqr_r(a); });
       },
       "memory"},
      {"PCA, 5 of 128 columns", 7 * chosen.matrix_bytes(), 0.8,
       [=] { components(mapped(chosen.a(), tall)); },
       [=] {
         const tensor a = in_memory(chosen.a(), part);
         return parts * seconds_of([&] { components(a); });
       },
       "memory"},
  };
}

// The largest multiple of `side_unit` whose power has at most so many elements.
index_t side_of(std::uint64_t bytes, double axes) {
  const double elements = static_cast<double>(bytes) / sizeof(float);
  const auto side = static_cast<index_t>(std::pow(elements, 1 / axes) * (1 + 1e-9));
  return std::max(side / side_unit * side_unit, side_unit);
}

int run(std::span<char*> arguments) {
  if (arguments.size() < 3)
    throw std::invalid_argument("usage: bench_streams FOLDER BYTES [OPTION VALUE]…");
  const std::uint64_t bytes = std::stoull(arguments[2]);
  const options given(arguments.subspan(3), {"--memory", "--rounds", "--only"});
  settings chosen{.folder = arguments[1],
                  .memory_bytes = static_cast<std::size_t>(
                      given.number("--memory", static_cast<long long>(bytes / 8))),
                  .rounds = static_cast<int>(given.number("--rounds", 3)),
                  .only = given.text("--only", ""),
                  .side = side_of(bytes, 2),
                  .edge = side_of(bytes, 3)};
  const std::size_t operand_bytes = std::max(chosen.matrix_bytes(), chosen.cube_bytes());
  make_operand(chosen.a(), operand_bytes);
  make_operand(chosen.b(), operand_bytes);
  executor on({.memory_bytes = chosen.memory_bytes});
  const executor::scope within(on);
  for (const auto& works :
       {reading_works(chosen), writing_works(chosen), ordering_works(chosen), linear_works(chosen)})
    for (const work& each : works) measure(each, chosen);
  return 0;
}

}  // namespace
}  // namespace shale::bench

int main(int count, char** arguments) {
  return shale::bench::run_suite(shale::bench::run, count, arguments);
}
