#include "container/coding_limits.hpp"

#include <algorithm>
#include <filesystem>

#include "shale/shale.hpp"
#include "support/contest.hpp"

namespace shale::bench {

namespace {

constexpr std::size_t chunks_max = 256;

std::span<std::byte> bytes_of(const tensor& values) { return {values.data(), values.size_bytes()}; }

}  // namespace

coding_limits::coding_limits(const container_settings& chosen, const data_set& data,
                             const array& stored)
    : data_(data),
      path_(chosen.memory_folder + "/chunks.shale"),
      crew_(chosen.threads),
      stored_(stored) {
  const std::vector<stored_chunk> all = stored.stored_chunks();
  const std::size_t count = std::min(chunks_max, all.size());
  for (std::size_t k = 0; k < count; ++k) {
    const stored_chunk& chunk = all[k * all.size() / count];
    places_.push_back(chunk.index);
    chunks_.push_back(stored.read(chunk.part));
    bytes_.push_back(stored.read_stored_chunk(chunk.index));
  }
  part_ = static_cast<double>(count) / static_cast<double>(all.size());
  for (int worker = 0; worker < chosen.threads; ++worker) {
    codecs_.emplace_back(data.values().item_bytes());
    decoded_.push_back(tensor::zeros(stored.chunk_shape(), stored.dtype()));
  }
}

// `task(worker, k)` codes chunk k of the sample.
template <class Task>
double coding_limits::seconds_of_all(const Task& task) {
  return seconds_of([&] { crew_.run_each(places_.size(), task); }) / part_;
}

double coding_limits::encode_alone() {
  std::filesystem::remove(path_);
  container file = container::create(path_);
  transaction change = file.begin();
  const auto tiles = change.create("values", data_.spec()).tiles();
  const double seconds =
      seconds_of_all([&](int, std::size_t k) { tiles->store(places_[k], chunks_[k]); });
  change.abort();
  std::filesystem::remove(path_);
  return seconds;
}

double coding_limits::decode_alone() {
  const auto tiles = stored_.tiles();
  return seconds_of_all([&](int worker, std::size_t k) {
    tiles->load(places_[k], decoded_[static_cast<std::size_t>(worker)]);
  });
}

double coding_limits::encode_plainly() {
  return seconds_of_all([&](int worker, std::size_t k) {
    codecs_[static_cast<std::size_t>(worker)].encode(bytes_of(chunks_[k]));
  });
}

double coding_limits::decode_plainly() {
  return seconds_of_all([&](int worker, std::size_t k) {
    const auto own = static_cast<std::size_t>(worker);
    codecs_[own].decode(bytes_[k], bytes_of(decoded_[own]));
  });
}

}  // namespace shale::bench
