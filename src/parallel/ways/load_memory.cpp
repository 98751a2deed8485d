#include "parallel/ways/load_memory.hpp"

#include <algorithm>

namespace shale::parallel {

namespace {

std::size_t elements_of_tile(const plan& cut) {
  return static_cast<std::size_t>(element_count(cut.tile_shape()));
}

}  // namespace

bytes_per_position::bytes_per_position(std::span<const loop_operand> operands, index_t lane_axis) {
  for (const auto& operand : operands) {
    std::size_t item = operand.values.item_bytes();
    if (lane_axis >= 0) item *= static_cast<std::size_t>(operand.values.shape()[lane_axis]);
    all += item;
    if (operand.written) written += item;
    if (operand.tiles) (operand.written ? stored : gathered) += item;
  }
}

load_memory::load_memory(const way& chosen, const bytes_per_position& bytes,
                         std::size_t copied_bytes, executor& on)
    : gathered_bytes_(elements_of_tile(chosen.units) * bytes.gathered) {
  const std::size_t load_bytes = gathered_bytes_ + elements_of_tile(chosen.units) * bytes.stored +
                                 elements_of_tile(chosen.load_plan()) * copied_bytes;
  const std::size_t fitting = on.memory_bytes() / 2 / std::max<std::size_t>(load_bytes, 1);
  workers_ =
      static_cast<int>(std::clamp<std::size_t>(fitting, 1, static_cast<std::size_t>(on.threads())));
  tokens_.emplace(state_of(on).tokens, load_bytes * static_cast<std::size_t>(workers_));
}

// The cache holds at least the tiles that the running loads use.
std::size_t load_memory::cache_bytes(const executor& on) const noexcept {
  return std::max(gathered_bytes_ * static_cast<std::size_t>(workers_), on.memory_bytes() / 4);
}

}  // namespace shale::parallel
