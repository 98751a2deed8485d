#include "parallel/ways/load_memory.hpp"

#include <algorithm>

#include "core/saturating.hpp"
#include "parallel/executor/read_ahead.hpp"
#include "parallel/executor/tile_loop.hpp"

namespace shale::parallel {

namespace {

// More bytes than any process can have. 255 calls can hold so many at once without an overflow.
constexpr std::uint64_t tokens_max = std::uint64_t{1} << 56;

std::uint64_t elements_of_tile(const plan& cut) {
  return static_cast<std::uint64_t>(element_count(cut.tile_shape()));
}

// The extent of a unit along an axis of an operand, with its halo.
std::uint64_t haloed_extent(const loop_operand& operand, const dims& unit, index_t axis) {
  const auto own = static_cast<std::uint64_t>(unit[axis]);
  if (!operand.halo) return own;
  const auto around = static_cast<std::uint64_t>(operand.halo->before[axis]) +
                      static_cast<std::uint64_t>(operand.halo->after[axis]);
  if (operand.halo->mode != halo_mode::clipped) return own + around;
  return std::min(own + around, static_cast<std::uint64_t>(
                                    std::max<index_t>(operand.values.shape()[axis], unit[axis])));
}

// The memory in which units of one operand in memory or in a file are put together with their
// halos.
std::uint64_t haloed_bytes(const loop_operand& operand, const dims& unit) {
  std::uint64_t bytes = operand.values.item_bytes();
  for (index_t axis = 0; axis < operand.values.rank(); ++axis)
    bytes = detail::saturating_mul(bytes, haloed_extent(operand, unit, axis));
  return bytes;
}

// What a unit needs for its halos beside what is gathered from tile sources.
struct halo_bytes {
  std::uint64_t in_memory = 0;  // operands that are used in place, where a halo leaves the operand
  std::uint64_t copied = 0;     // copies of mapped operands
};

halo_bytes halos_of(const way& chosen, std::span<const loop_operand> operands) {
  halo_bytes sum;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const loop_operand& operand = operands[k];
    if (!operand.halo || operand.tiles) continue;
    const bool copied = chosen.access_of(k) == operand_access::copied;
    if (!copied && operand.halo->mode == halo_mode::clipped) continue;
    detail::add_saturating(copied ? sum.copied : sum.in_memory,
                           haloed_bytes(operand, chosen.units.tile_shape()));
  }
  return sum;
}

// The bytes that a pass reads from tile sources. Sources may be lazy, so these numbers saturate.
struct gathered_bytes {
  std::uint64_t unit = 0;     // one unit's elements; repeated ones are gathered once
  std::uint64_t halos = 0;    // memory in which they are put together with what is beyond the ends
  std::uint64_t cut = 0;      // a tile of each source whose tiles lie in several units
  std::uint64_t sources = 0;  // everything that the sources have
};

gathered_bytes gathered_by(std::span<const loop_operand> operands, const dims& unit) {
  gathered_bytes sum;
  for (const auto& operand : operands) {
    if (!operand.tiles || !operand.tiles->source) continue;
    const tile_source& source = *operand.tiles->source;
    const std::uint64_t item = operand.values.item_bytes();
    std::uint64_t in_unit = item;
    for (index_t axis = 0; axis < operand.tiles->seen.rank(); ++axis)
      if (operand.tiles->seen.from[axis] >= 0)
        in_unit = detail::saturating_mul(in_unit, haloed_extent(operand, unit, axis));
    std::uint64_t tile = item;
    std::uint64_t all = item;
    for (index_t axis = 0; axis < source.shape().size(); ++axis) {
      const index_t extent = source.shape()[axis];
      tile = detail::saturating_mul(
          tile, static_cast<std::uint64_t>(std::min(source.tile_shape()[axis], extent)));
      all = detail::saturating_mul(all, static_cast<std::uint64_t>(extent));
    }
    detail::add_saturating(sum.unit, in_unit);
    if (operand.halo && operand.halo->mode != halo_mode::clipped)
      detail::add_saturating(sum.halos, haloed_bytes(operand, unit));
    if (tile > in_unit) detail::add_saturating(sum.cut, tile);
    detail::add_saturating(sum.sources, all);
  }
  return sum;
}

std::size_t stored_per_position(std::span<const loop_operand> operands) {
  std::size_t bytes = 0;
  for (const auto& operand : operands)
    if (operand.tiles && operand.tiles->sink) bytes += operand.values.item_bytes();
  return bytes;
}

}  // namespace

bytes_per_position::bytes_per_position(std::span<const loop_operand> operands, index_t lane_axis) {
  for (const auto& operand : operands) {
    std::size_t item = operand.values.item_bytes();
    if (lane_axis >= 0) item *= static_cast<std::size_t>(operand.values.shape()[lane_axis]);
    all += item;
    if (operand.written) written += item;
  }
}

// Units that cut tiles come one after the other, so running loads use one tile more than their own
// elements would fill.
load_memory::load_memory(const way& chosen, std::span<const loop_operand> operands,
                         std::size_t copied_bytes, executor& on) {
  memory_tokens& tokens = state_of(on).tokens;
  const gathered_bytes gathered = gathered_by(operands, chosen.units.tile_shape());
  const halo_bytes halos = halos_of(chosen, operands);
  const std::uint64_t copies_bytes = detail::saturating_add(
      detail::saturating_mul(elements_of_tile(chosen.load_plan()), copied_bytes), halos.copied);
  std::uint64_t load_bytes = detail::saturating_add(gathered.unit, gathered.halos);
  detail::add_saturating(load_bytes, halos.in_memory);
  detail::add_saturating(load_bytes, detail::saturating_mul(elements_of_tile(chosen.units),
                                                            stored_per_position(operands)));
  detail::add_saturating(load_bytes, copies_bytes);
  const std::size_t left = tokens.left_bytes();
  const std::uint64_t fitting = left / 2 / std::max<std::uint64_t>(load_bytes, 1);
  workers_ = static_cast<int>(std::clamp<std::uint64_t>(
      fitting, 1, static_cast<std::uint64_t>(workers_for(chosen.load_plan().tile_count(), on))));
  const auto workers = static_cast<std::uint64_t>(workers_);
  const std::uint64_t used =
      detail::saturating_add(detail::saturating_mul(gathered.unit, workers), gathered.cut);
  cache_bytes_ = std::min(std::max<std::uint64_t>(used, left / 4), gathered.sources);
  const std::uint64_t running = detail::saturating_mul(load_bytes, workers);
  const std::uint64_t all = detail::saturating_add(running, cache_bytes_);
  tokens_.emplace(tokens, std::min(all, tokens_max));
  ahead_ = loads_ahead_per_worker * workers_;
  if (copies_bytes > 0)
    ahead_ = static_cast<index_t>(
        std::min(static_cast<std::uint64_t>(ahead_), tokens.left_bytes() / copies_bytes));
}

}  // namespace shale::parallel
