#include "parallel/ways/way.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/saturating.hpp"
#include "parallel/mapped/balanced_tile_shape.hpp"
#include "parallel/mapped/mapped_bytes.hpp"
#include "parallel/operands/bytes_read_once.hpp"
#include "parallel/ways/joined_units.hpp"

namespace shale::parallel {

namespace {

// The elements of all lanes in a tile: 256 KiB of 8-byte elements.
constexpr index_t lane_elements = 32768;

// The most elements of a unit that follows the grid of sources, unless a tile has more.
constexpr index_t unit_elements_max = index_t{1} << 20;

// The number of loads that are assumed to run at once when the shape of copies is chosen. With more
// threads, fewer of them work at once (load_memory), but pieces of the file stay long.
constexpr int loads_at_once_max = 4;

// A load of a few elements would wait for the device as long as one of this size.
constexpr std::size_t load_bytes_min = std::size_t{64} << 10;

// A private mapping is always used in place: its changed pages exist in this process only, so a
// copy of its elements would not make room for others.
bool can_be_copied(const loop_operand& operand) {
  return !operand.tiles && is_mapped(operand.values.storage()) &&
         operand.values.storage().access() != access::copy_on_write;
}

// Holds the pass while its way is being chosen. The choice goes like this (see way.hpp):
//
//   An operand is a tile source or a sink: units follow the grid of the first sink, or else of the
//   sources (`by tiles`). Units that cut tiles of sources are joined if the cache does not hold
//   these tiles (joined_units), unless units are fixed (way.1). If large mapped operands take part
//   as well, they are copied, and several units of the grid are joined, so that the copies have
//   pieces long enough to read (`by tiles and copies`). Their storage order does not matter: tiles
//   are boxes, and a box of a mapped operand consists of short pieces in any storage order.
//
//   Otherwise, one plan over all operands cuts the units, as if all of them lay in memory. If no
//   large mapped operand is visited against its storage order, this is the way (`in place`).
//
//   Otherwise all large mapped operands are copied (`by copies`), also those that lie along the
//   order. If units are fixed (way.1), they stay, and several units are one load. If not, units
//   take the shape that suits the copies, and each is a load.
//
//   If the body works on whole units, their shape is given, or follows from halos and grids. All
//   mapped operands with halos are copied if large ones are: a halo would need pages of other
//   windows, which may have been dropped.
//
// Copies are limited to half of the budget, because windows and temporaries need the other half.
class choice {
 public:
  choice(std::span<const loop_operand> operands, const pass_options& options, const executor& on)
      : operands_(operands), options_(options), on_(on), shape_(index_space(operands, options)) {}

  way make() const {
    if (options_.unit_shape) return by_whole_units();
    if (is_tiled()) return by_tiles();
    way chosen{units_in_memory()};
    const std::vector<std::size_t> large = large_mapped();
    if (large.empty() || !lies_against(chosen.units, large)) return chosen;
    if (options_.lane_axis < 0 && options_.has_fixed_units()) add_loads(chosen, large);
    else add_copies(chosen, large);
    return chosen;
  }

 private:
  bool is_tiled() const {
    return std::any_of(operands_.begin(), operands_.end(),
                       [](const loop_operand& operand) { return operand.tiles != nullptr; });
  }

  std::vector<plan_operand> plan_operands() const {
    std::vector<plan_operand> result;
    result.reserve(operands_.size() + 2);
    for (const auto& operand : operands_)
      result.push_back(plan_operand_of(operand.values, options_));
    if (options_.states) {
      const region whole{dims::filled(shape_.size(), 0), shape_};
      for (const plan_operand& operand :
           fold_operands(whole, shape_, options_.folded, options_.positions))
        result.push_back(operand);
    }
    return result;
  }

  // One plan over all operands cuts the whole index space. Its tiles are the units.
  plan units_in_memory() const {
    plan_options options{.block_elements = block_elements_of(options_),
                         .whole_tile_blocks = options_.whole_tile_blocks,
                         .keep_axes = options_.coordinates,
                         .merge_axes = !options_.indices};
    if (options_.lane_axis >= 0)
      options.elements_max = std::max<index_t>(lane_elements / longest_lane(), 1);
    return plan(plan_operands(), options);
  }

  index_t longest_lane() const {
    index_t longest = 1;
    for (const auto& operand : operands_)
      longest = std::max(longest, operand.values.shape()[options_.lane_axis]);
    return longest;
  }

  // Units of a given shape, in the pass's own axes.
  plan units_of(const dims& tile_shape) const {
    return plan(plan_operands(), {.keep_axes = true, .tile_shape = tile_shape});
  }

  // The numbers of the large mapped operands, as way.hpp defines them.
  std::vector<std::size_t> large_mapped() const {
    std::vector<std::size_t> large;
    if (!mapped_exceed_half_of_budget(operands_, on_)) return large;
    for (std::size_t k = 0; k < operands_.size(); ++k)
      if (can_be_copied(operands_[k]) && is_large(operands_[k])) large.push_back(k);
    return large;
  }

  bool is_large(const loop_operand& operand) const {
    return distinct_bytes(operand.values) > on_.memory_bytes() / 8;
  }

  // Whether the units of a pass in place would visit large mapped operands against their storage
  // order.
  bool lies_against(const plan& units, const std::vector<std::size_t>& large) const {
    if (units.has_square_blocks()) return true;
    return std::any_of(large.begin(), large.end(), [&](std::size_t k) {
      if (options_.lane_axis >= 0) return !lies_along_lanes(operands_[k].values);
      return options_.coordinates && units.walks_against(static_cast<int>(k));
    });
  }

  bool lies_along_lanes(const tensor& values) const {
    const index_t along = std::abs(values.strides()[options_.lane_axis]);
    for (index_t axis = 0; axis < values.rank(); ++axis)
      if (values.shape()[axis] > 1 && values.strides()[axis] != 0 &&
          std::abs(values.strides()[axis]) < along)
        return false;
    return true;
  }

  // The copied operands in the axes of a plan.
  std::vector<plan_operand> in_axes_of(const plan& seen,
                                       const std::vector<std::size_t>& large) const {
    std::vector<plan_operand> copied;
    copied.reserve(large.size());
    for (const std::size_t k : large)
      copied.push_back({layout(seen.shape(), seen.strides_bytes(static_cast<int>(k)), 0),
                        operands_[k].values.item_bytes()});
    return copied;
  }

  // The copied operands in the pass's own axes. Along each axis, the first elements up to `shape`
  // count.
  std::vector<plan_operand> in_own_axes(const dims& shape,
                                        const std::vector<std::size_t>& large) const {
    std::vector<plan_operand> copied;
    for (const std::size_t k : large) {
      const tensor& values = operands_[k].values;
      dims strides = values.strides();
      for (index_t& stride : strides) stride *= static_cast<index_t>(values.item_bytes());
      copied.push_back({layout(shape, strides, 0), values.item_bytes()});
    }
    return copied;
  }

  // Chooses the shape of the copies, at least `least`. The copies of all loads that run at once
  // take at most half of the budget, but each load may take load_bytes_min.
  dims load_shape(const std::vector<plan_operand>& copied, const dims& least) const {
    std::size_t bytes_per_element = 0;
    for (const auto& operand : operands_)
      if (operand.tiles) bytes_per_element += operand.values.item_bytes();
    for (const auto& operand : copied) bytes_per_element += operand.item_bytes;
    const auto at_once = static_cast<std::size_t>(std::min(on_.threads(), loads_at_once_max));
    const std::size_t bytes = std::max(on_.memory_bytes() / 2 / at_once, load_bytes_min);
    const auto most = static_cast<index_t>(bytes / bytes_per_element);
    return balanced_tile_shape(copied, least, most);
  }

  // How every operand is accessed if those in `copied` are copied.
  std::vector<operand_access> accesses_with(const std::vector<std::size_t>& copied) const {
    std::vector<operand_access> result;
    for (const auto& operand : operands_)
      result.push_back(operand.tiles ? operand_access::tiled : operand_access::in_place);
    for (const std::size_t k : copied) result[k] = operand_access::copied;
    return result;
  }

  // Keeps the fixed units, and joins several units to one load.
  void add_loads(way& chosen, const std::vector<std::size_t>& large) const {
    chosen.loads = chosen.units.retiled(
        load_shape(in_axes_of(chosen.units, large), chosen.units.tile_shape()));
    chosen.accesses = accesses_with(large);
  }

  // Replaces the units by others whose shape suits all copied operands.
  void add_copies(way& chosen, const std::vector<std::size_t>& large) const {
    if (options_.lane_axis >= 0) return add_copies_of_lanes(chosen, large);
    const dims least = dims::filled(shape_.size(), 1);
    const dims shape = load_shape(in_own_axes(shape_, large), least);
    chosen = {.units = units_of(shape), .accesses = accesses_with(large), .plan_per_unit = true};
  }

  // The same for units of whole lanes. If a load could hold a single lane only, all operands stay
  // in place.
  void add_copies_of_lanes(way& chosen, const std::vector<std::size_t>& large) const {
    dims elements = shape_;
    dims least = dims::filled(shape_.size(), 1);
    elements[options_.lane_axis] = least[options_.lane_axis] = longest_lane();
    dims shape = load_shape(in_own_axes(elements, large), least);
    if (shape == least && least != elements) return;
    shape[options_.lane_axis] = 1;
    chosen = {.units = units_of(shape), .accesses = accesses_with(large), .plan_per_unit = true};
  }

  // The grid of a tile source cuts the index space. If large mapped operands take part, units (or
  // loads, if units are fixed) grow from there. If they cannot grow, because one unit fills the
  // memory for copies already, these operands stay in place.
  way by_tiles() const {
    const std::vector<std::size_t> large = large_mapped();
    dims unit = unit_shape();
    if (large.empty() && !options_.has_fixed_units()) unit = joined(unit);
    way chosen{.units = units_of(unit), .accesses = accesses_with({}), .plan_per_unit = true};
    if (large.empty() || shape_.empty()) return chosen;
    const dims& least = chosen.units.tile_shape();
    const dims shape = load_shape(in_axes_of(chosen.units, large), least);
    if (shape == least) return chosen;
    if (options_.has_fixed_units()) chosen.loads = chosen.units.retiled(shape);
    else chosen.units = units_of(shape);
    chosen.accesses = accesses_with(large);
    return chosen;
  }

  // Units whose shape no budget changes (way.2). Each is a load of its own.
  way by_whole_units() const {
    const dims halos = halo_elements();
    dims unit = *options_.unit_shape;
    if (unit.empty()) unit = is_tiled() ? widened(unit_shape(), halos) : whole_unit(halos);
    way chosen{.units = units_of(unit), .accesses = accesses_with({}), .plan_per_unit = true};
    if (shape_.empty() || !mapped_exceed_half_of_budget(operands_, on_)) return chosen;
    std::vector<std::size_t> copied;
    for (std::size_t k = 0; k < operands_.size(); ++k)
      if (can_be_copied(operands_[k]) && (operands_[k].halo != nullptr || is_large(operands_[k])))
        copied.push_back(k);
    chosen.accesses = accesses_with(copied);
    return chosen;
  }

  // By axis: the most elements that a halo adds to a unit, but no more than units have.
  dims halo_elements() const {
    dims most = dims::filled(shape_.size(), 0);
    for (const auto& operand : operands_) {
      if (!operand.halo) continue;
      for (index_t axis = 0; axis < most.size(); ++axis)
        most[axis] = std::clamp(operand.halo->before[axis] + operand.halo->after[axis], most[axis],
                                unit_elements_max);
    }
    return most;
  }

  // The unit of a grid, or several of them along axes along which it is shorter than four times the
  // halo, as far as `unit_elements_max` allows.
  dims widened(dims unit, const dims& halos) const {
    for (index_t axis = 0; axis < unit.size(); ++axis) {
      const index_t wanted = std::min(4 * halos[axis], shape_[axis]);
      if (unit[axis] >= wanted) continue;
      unit[axis] *= std::clamp<index_t>(unit_elements_max / elements_of(unit), 1,
                                        ceil_div(wanted, unit[axis]));
    }
    return unit;
  }

  // A unit for operands without a grid. It is a 64th of the index space, 2^15 elements at least and
  // 2^20 at most. Along each axis it begins with 16 times the halo, or 8, 4, 2 times or once, so
  // that not much is read twice. Then its axes grow, the nearest ones in memory first, to 4096 and
  // then as far as there are elements left, so that files are read in long pieces.
  dims whole_unit(const dims& halos) const {
    const index_t elements_max =
        std::clamp(elements_of(shape_) / 64, index_t{1} << 15, unit_elements_max);
    dims unit = dims::filled(shape_.size(), 1);
    for (index_t times = 16; times > 0; times /= 2) {
      for (index_t axis = 0; axis < unit.size(); ++axis)
        unit[axis] = std::clamp<index_t>(times * halos[axis], 1, extent_of(axis));
      if (elements_of(unit) <= elements_max) break;
    }
    for (index_t axis = 0; axis < unit.size(); ++axis) cut(unit, axis, elements_max);
    for (const index_t longest : {index_t{4096}, any_number}) {
      for (const index_t axis : nearest_first()) {
        const index_t grown = unit[axis] * (elements_max / elements_of(unit));
        unit[axis] = std::max(unit[axis], std::min({grown, longest, extent_of(axis)}));
      }
    }
    for (index_t axis = 0; axis < unit.size(); ++axis)
      unit[axis] = ceil_div(extent_of(axis), ceil_div(extent_of(axis), unit[axis]));
    return unit;
  }

  index_t extent_of(index_t axis) const { return std::max<index_t>(shape_[axis], 1); }

  // The axes from the smallest stride of the first operand to its largest. Axes with equal strides
  // come in reverse order.
  dims nearest_first() const {
    const dims& strides = operands_[0].values.strides();
    dims axes;
    for (index_t axis = shape_.size() - 1; axis >= 0; --axis) axes.push_back(axis);
    std::stable_sort(axes.begin(), axes.end(), [&](index_t a, index_t b) {
      return std::abs(strides[a]) < std::abs(strides[b]);
    });
    return axes;
  }

  // Joins units that cut the tiles of sources. What all threads gather and store takes at most half
  // of the budget, and a quarter is for the cache, as in load_memory. Operands that are streamed
  // count as well, because their windows have at least one unit.
  dims joined(const dims& unit) const {
    if (std::find(shape_.begin(), shape_.end(), 0) != shape_.end()) return unit;
    const bool streams = mapped_exceed_half_of_budget(operands_, on_);
    std::vector<source_tiles> sources;
    std::size_t bytes_per_element = 0;
    for (const auto& operand : operands_) {
      if (streams && is_mapped(operand.values.storage()))
        bytes_per_element += operand.values.item_bytes();
      if (!operand.tiles) continue;
      bytes_per_element += operand.values.item_bytes();
      if (operand.tiles->source)
        sources.push_back({tile_in_pass(*operand.tiles), bytes_of_tile(*operand.tiles->source)});
    }
    const auto threads = static_cast<std::size_t>(on_.threads());
    return joined_units(unit, shape_, sources,
                        {.cache_bytes = on_.memory_bytes() / 4,
                         .elements_max = on_.memory_bytes() / 2 / threads / bytes_per_element});
  }

  static std::uint64_t bytes_of_tile(const tile_source& source) {
    std::uint64_t bytes = item_bytes(source.dtype());
    for (index_t axis = 0; axis < source.shape().size(); ++axis)
      bytes = detail::saturating_mul(bytes, static_cast<std::uint64_t>(std::min(
                                                source.tile_shape()[axis], source.shape()[axis])));
    return bytes;
  }

  // Returns the tile shape of the first sink. Without a sink, each axis gets the tile extent of the
  // first source that is indexed along it. Then the unit is cut until it has at most
  // `unit_elements_max` elements, or as many as the largest tile if that has more: first along axes
  // along which no source is indexed (broadcast axes), then along the others, from the outermost
  // one inwards.
  //
  // For example, a source of 1,000 elements in one tile that is broadcast to 1,000,000 x 1,000 gets
  // units of 1,048 x 1,000. Two sources of 20,000 elements in one tile each, along different axes,
  // get units of 52 x 20,000.
  dims unit_shape() const {
    for (const auto& operand : operands_)
      if (operand.tiles && operand.tiles->sink) return inside(operand.tiles->sink->tile_shape());
    dims unit = shape_;
    dims indexed = dims::filled(unit.size(), 0);  // 1 along axes along which a source is indexed
    index_t elements_max = unit_elements_max;
    for (const auto& operand : operands_) {
      if (!operand.tiles) continue;
      const dims tile = tile_in_pass(*operand.tiles);
      elements_max = std::max(elements_max, elements_of(tile));
      for (index_t axis = 0; axis < unit.size(); ++axis) {
        if (tile[axis] == 0 || indexed[axis]) continue;
        indexed[axis] = 1;
        unit[axis] = tile[axis];
      }
    }
    for (const index_t kind : {0, 1})
      for (index_t axis = 0; axis < unit.size(); ++axis)
        if (indexed[axis] == kind) cut(unit, axis, elements_max);
    return unit;
  }

  // The extents of a tile as far as they lie in the index space; at least 1.
  dims inside(dims tile) const {
    for (index_t axis = 0; axis < tile.size(); ++axis)
      tile[axis] = std::clamp<index_t>(tile[axis], 1, std::max<index_t>(shape_[axis], 1));
    return tile;
  }

  // A tile of the source in the axes of the pass; 0 along those along which it is not indexed.
  dims tile_in_pass(const tiled_elements& tiles) const {
    dims tile = inside(shape_);
    for (index_t axis = 0; axis < tile.size(); ++axis) {
      const index_t from = tiles.seen.from[axis];
      const index_t step = std::max<index_t>(std::abs(tiles.seen.step[axis]), 1);
      tile[axis] =
          from < 0 ? 0
                   : std::clamp<index_t>(tiles.source->tile_shape()[from] / step, 1, tile[axis]);
    }
    return tile;
  }

  // Reduces the unit's extent along an axis, to 1 at the least, if the unit has too many elements.
  static void cut(dims& unit, index_t axis, index_t elements_max) {
    const index_t extent = unit[axis];
    if (extent <= 1 || elements_of(unit) <= elements_max) return;
    unit[axis] = 1;
    unit[axis] = std::clamp<index_t>(elements_max / elements_of(unit), 1, extent);
  }

  // The elements of a unit; an axis of length 0 counts as length 1. The number saturates, because
  // the other extents of an index space without elements may have a product that overflows.
  static index_t elements_of(const dims& unit) {
    index_t elements = 1;
    for (const index_t extent : unit)
      elements = checked_mul(elements, std::max<index_t>(extent, 1))
                     .value_or(std::numeric_limits<index_t>::max());
    return elements;
  }

  const std::span<const loop_operand> operands_;
  const pass_options& options_;
  const executor& on_;
  const dims shape_;
};

}  // namespace

way choose_way(std::span<const loop_operand> operands, const pass_options& options,
               const executor& on) {
  return choice(operands, options, on).make();
}

}  // namespace shale::parallel
