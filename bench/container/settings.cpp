#include "container/settings.hpp"

#include <nlohmann/json.hpp>

#include "container/data_sets.hpp"
#include "shale/executor.hpp"

namespace shale::bench {

amounts few() {
  return {.smooth = {64, 128, 128},
          .elevation = {1024, 1024},
          .noise = {64, 64, 128},
          .chunks = 2,
          .singles = 10,
          .updates = 5,
          .appends = 5,
          .tiny_chunks = 100,
          .arrays = {20, 50},
          .dense_rows = {16, 1024},
          .dense_elements = index_t{1} << 18,
          .rechunked = {16, 64, 64},
          .rechunked_from = {1, 64, 64},
          .rechunked_to = {16, 8, 8},
          .rechunk_memory_bytes = std::size_t{16} << 20};
}

namespace {

// Executors keep decoded chunks in so many parts of their memory.
constexpr std::size_t share_of_kept_chunks = 8;

std::vector<index_t> list_of(const dims& shape) { return {shape.begin(), shape.end()}; }

}  // namespace

std::string settings_of_peers(const container_settings& chosen) {
  nlohmann::json chunks;
  for (const std::string& name : data_set_names()) chunks[name] = list_of(chunk_shape_of(name));
  const nlohmann::json rechunk = {{"shape", list_of(chosen.amount.rechunked)},
                                  {"from", list_of(chosen.amount.rechunked_from)},
                                  {"to", list_of(chosen.amount.rechunked_to)},
                                  {"bytes", chosen.amount.rechunk_memory_bytes}};
  return nlohmann::json{{"threads", chosen.threads},
                        {"folder", chosen.folder},
                        {"memory_folder", chosen.memory_folder},
                        {"kept_bytes", executor().memory_bytes() / share_of_kept_chunks},
                        {"chunks", chunks},
                        {"rechunk", rechunk}}
      .dump();
}

std::string grouped(index_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, ",");
  return text;
}

}  // namespace shale::bench
