#include <algorithm>
#include <filesystem>

#include "container/suites.hpp"
#include "container/works.hpp"
#include "shale/shale.hpp"
#include "support/row.hpp"

namespace shale::bench {

namespace {

// Earlier versions have no `rechunk`.
template <class Array, class Target>
concept can_be_rechunked = requires(const Array& from, const Target& to) {
  rechunk(from, to);
};

array_spec spec_of(const dims& shape, const dims& chunk_shape) {
  return {.dtype = dtype::float32,
          .shape = shape,
          .kind = array_kind::chunked,
          .chunk_shape = chunk_shape};
}

// Writes waves in steps of 1e-3, which the program of the peer computes in the same way.
void store_waves(const std::string& path, const dims& shape, const dims& chunk_shape) {
  const tensor x = eval(sin(arange(shape[0]) / 100.0)).view({shape[0], 1, 1});
  const tensor y = eval(sin(arange(shape[1]) / 170.0)).view({shape[1], 1});
  const tensor z = eval(cos(arange(shape[2]) / 300.0));
  const expr waves = expr(x) + expr(y) * expr(z);
  container file = container::create(path);
  transaction change = file.begin();
  change.create("values", spec_of(shape, chunk_shape)).write(round(waves * 100) / 1000);
  change.commit();
}

template <class Array, class Target>
void measure_rechunking(const container_settings& chosen, const std::string& name) {
  if constexpr (can_be_rechunked<Array, Target>) {
    const amounts& amount = chosen.amount;
    executor on({.threads = chosen.threads, .memory_bytes = amount.rechunk_memory_bytes});
    const executor::scope bound(on);
    const std::string path = chosen.folder + "/steps.shale", to = chosen.folder + "/series.shale";
    store_waves(path, amount.rechunked, amount.rechunked_from);
    const Array from = container::open(path).latest().at("values");
    measure({.name = name,
             .shale =
                 [&] {
                   std::filesystem::remove(to);
                   const double seconds = seconds_of([&] {
                     container file = container::create(to);
                     transaction change = file.begin();
                     const Target made =
                         change.create("values", spec_of(amount.rechunked, amount.rechunked_to));
                     rechunk(from, made);
                     change.commit();
                   });
                   std::filesystem::remove(to);
                   return seconds;
                 },
             .bytes = from.size_bytes(),
             .goals = {{"", 2}},
             .has_threads = false},
            chosen);
    std::filesystem::remove(path);
  } else {
    print(row{.work = name, .note = "not in this version"});
  }
}

}  // namespace

void rechunking(const container_settings& chosen) {
  const std::string name = "rechunk under " +
                           grouped(static_cast<index_t>(chosen.amount.rechunk_memory_bytes >> 20)) +
                           " MiB";
  if (!is_wanted(chosen, name)) return;
  container_settings own = chosen;
  own.rounds = std::min(chosen.rounds, 3);  // each takes minutes
  own.peers = chosen.rechunker;
  measure_rechunking<array, writable_array>(own, name);
}

}  // namespace shale::bench
