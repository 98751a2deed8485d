#include <cstdio>
#include <filesystem>

#include "container/suites.hpp"
#include "container/works.hpp"
#include "shale/shale.hpp"

namespace shale::bench {

namespace {

// "array-000042", as the peers call it.
std::string name_of(index_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "array-%06lld", static_cast<long long>(number));
  return text;
}

void finding_and_listing(const container_settings& chosen, index_t count, double microseconds) {
  const std::string finding = "open and find one of " + grouped(count) + " arrays";
  const std::string listing = "list " + grouped(count) + " names";
  if (!is_wanted(chosen, finding) && !is_wanted(chosen, listing)) return;
  const std::string path = chosen.folder + "/arrays-" + std::to_string(count) + ".shale";
  {
    container file = container::create(path);
    transaction change = file.begin();
    for (index_t k = 0; k < count; ++k)
      change.create(name_of(k),
                    {.dtype = dtype::float32, .shape = {8}, .kind = array_kind::chunked});
    change.commit();
  }
  const std::string limit = std::to_string(static_cast<int>(microseconds)) + " µs";
  index_t next = 0;
  measure({.name = finding,
           .shale =
               [&] {
                 next = (next * 31 + 17) % count;
                 const std::string name = name_of(next);
                 return seconds_of_one([&] { container::open(path).latest().at(name); });
               },
           .limits = {{limit, [=] { return microseconds * 1e-6; }}},
           .goals = {{limit, 1, false}},
           .has_threads = false},
          chosen);
  measure({.name = listing,
           .shale = [&] { return seconds_of([&] { container::open(path).latest().names(); }); },
           .goals = {{"", 10}},
           .has_threads = false},
          chosen);
  std::filesystem::remove(path);
}

void tiny_chunks(const container_settings& chosen) {
  const index_t count = chosen.amount.tiny_chunks, length = 512;
  const std::string name = "read " + grouped(count) + " chunks of 2 KiB";
  if (!is_wanted(chosen, name)) return;
  const std::string path = chosen.folder + "/tiny.shale";
  {
    container file = container::create(path);
    transaction change = file.begin();
    change
        .create("values", {.dtype = dtype::float32,
                           .shape = {count * length},
                           .kind = array_kind::chunked,
                           .chunk_shape = dims{length}})
        .write(arange(count * length) % 1000);
    change.commit();
  }
  const array values = container::open(path).latest().at("values");
  const tensor out = tensor::zeros(values.shape(), values.dtype());
  const std::string limit = "10 µs for each chunk";
  measure({.name = name,
           .shale = [&] { return seconds_of([&] { values.read_into(out); }); },
           .bytes = values.size_bytes(),
           .limits = {{limit, [=] { return 1e-5 * static_cast<double>(count); }}},
           .goals = {{limit, 1, false}}},
          chosen);
  std::filesystem::remove(path);
}

}  // namespace

void many_names(const container_settings& chosen) {
  for (const index_t count : chosen.amount.arrays)
    finding_and_listing(chosen, count, count > 10'000 ? 50 : 30);
  tiny_chunks(chosen);
}

}  // namespace shale::bench
