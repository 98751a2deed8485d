#include <filesystem>

#include "container/suites.hpp"
#include "container/works.hpp"
#include "shale/shale.hpp"
#include "support/files.hpp"

namespace shale::bench {

namespace {

constexpr std::size_t block_bytes = 1024 * 1024;

// Makes a dense array of ones; what is done to it is measured too.
void store_ones(const std::string& path, index_t elements) {
  container file = container::create(path);
  transaction change = file.begin();
  fill(change.create("ones", {.dtype = dtype::float32, .shape = {elements}}).map(), 1);
  change.commit();
}

// Seconds of making a file, which is removed before and after.
double making(const std::string& path, const std::function<void()>& make) {
  std::filesystem::remove(path);
  const double seconds = seconds_of(make);
  std::filesystem::remove(path);
  return seconds;
}

void filling(const container_settings& chosen, const std::string& what) {
  const index_t elements = chosen.amount.dense_elements;
  const auto bytes = static_cast<std::uint64_t>(elements) * sizeof(float);
  const std::string path = chosen.folder + "/filled.shale", plain = chosen.folder + "/filled";
  const tensor block = tensor::ones({block_bytes / sizeof(float)}, dtype::float32);
  measure({.name = "create, fill and commit " + what,
           .shale = [&] { return making(path, [&] { store_ones(path, elements); }); },
           .bytes = bytes,
           .limits = {{"a plain file, synced",
                       [&] {
                         return making(plain, [&] {
                           write_plain_file(plain, block.data(), block_bytes, bytes);
                         });
                       }}},
           .goals = {{"a plain file, synced", 0.9}}},
          chosen);
}

void summing(const container_settings& chosen, const std::string& what) {
  const std::string name = "map and sum " + what + ", warm";
  if (!is_wanted(chosen, name)) return;
  const index_t elements = chosen.amount.dense_elements;
  const std::string path = chosen.folder + "/summed.shale";
  store_ones(path, elements);
  const array stored = container::open(path).latest().at("ones");
  const tensor heap = stored.read();
  measure({.name = name,
           .shale = [&] { return seconds_of([&] { eval(sum(expr(stored.map()))); }); },
           .bytes = static_cast<std::uint64_t>(elements) * sizeof(float),
           .limits = {{"heap memory", [&] { return seconds_of([&] { eval(sum(expr(heap))); }); }}},
           .goals = {{"heap memory", 0.95}}},
          chosen);
  std::filesystem::remove(path);
}

}  // namespace

void dense_arrays(const container_settings& chosen) {
  const std::string what =
      "a dense array of " + grouped(chosen.amount.dense_elements * 4 / (1024 * 1024)) + " MiB";
  filling(chosen, what);
  summing(chosen, what);
}

}  // namespace shale::bench
