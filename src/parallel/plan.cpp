#include "parallel/plan.hpp"

#include <cstdlib>
#include <string>

#include "shale/error.hpp"

namespace shale::parallel {

namespace {

// A tile is worth a few dozen microseconds of memory traffic; small index spaces are cut finer, so
// that a handful of threads still share them.
constexpr index_t tile_elements_max = index_t{1} << 17;
constexpr index_t tile_elements_min = index_t{1} << 13;

// What a tile may touch (plan.5).
struct reach {
  index_t operand;  // of one operand
  index_t all;      // of all together
};
constexpr reach tile_reach{index_t{4} << 20, index_t{16} << 20};
constexpr reach square_reach{index_t{8} << 20, index_t{16} << 20};
constexpr index_t mapped_together = index_t{64} << 10;

// What a tile touches of one operand: from the axis of its nearest neighbours outwards, steps that
// are no longer than what is mapped together, or than what they step over, leave nothing out; others
// lead to as many separate runs.
class footprint {
 public:
  footprint(const dims& strides, std::size_t item_bytes) : item_(static_cast<index_t>(item_bytes)) {
    for (index_t axis = 0; axis < strides.size(); ++axis) {
      strides_.push_back(std::abs(strides[axis]));
      nearest_first_.push_back(axis);
    }
    std::sort(nearest_first_.begin(), nearest_first_.end(),
              [&](index_t a, index_t b) { return strides_[a] < strides_[b]; });
  }

  index_t bytes(const dims& tile) const {
    index_t run = item_;
    index_t runs = 1;
    for (const index_t axis : nearest_first_) {
      if (strides_[axis] <= std::max(run, mapped_together))
        run += (tile[axis] - 1) * strides_[axis];
      else runs *= tile[axis];
    }
    return runs == 1 ? run : runs * std::max(run, mapped_together);
  }

 private:
  dims strides_;
  dims nearest_first_;
  index_t item_;
};

// Of the operands that order: the strides of the others, the states of a reduction, stand for no
// memory. None where the size of tiles was given: then nothing bounds them.
std::vector<footprint> footprints_of(std::span<const plan_operand> operands,
                                     const std::vector<dims>& strides,
                                     const plan_options& options) {
  std::vector<footprint> result;
  if (options.tile_elements > 0) return result;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (operands[k].orders) result.emplace_back(strides[k], operands[k].item_bytes);
  return result;
}

bool within(const reach& most, const std::vector<footprint>& operands, const dims& tile) {
  index_t all = 0;
  for (const footprint& each : operands) {
    const index_t bytes = each.bytes(tile);
    if (bytes > most.operand) return false;
    all += bytes;
  }
  return all <= most.all;
}

// The most steps along `axis`, up to those of `tile`, that stay within reach; at least one.
index_t steps_within_reach(const std::vector<footprint>& operands, dims tile, index_t axis) {
  if (within(tile_reach, operands, tile)) return tile[axis];
  index_t least = 1;
  index_t most = tile[axis];
  while (most - least > 1) {
    tile[axis] = least + (most - least) / 2;
    (within(tile_reach, operands, tile) ? least : most) = tile[axis];
  }
  return least;
}

// A square block over two disagreeing axes: both sides are whole lines, and two 8-byte operands
// stay inside 48 KiB of L1.
constexpr index_t square_block = 32;
constexpr index_t square_tile = 256;

index_t default_tile_elements(index_t size) {
  index_t elements = tile_elements_min;
  while (elements < tile_elements_max && elements < size / 32) elements *= 2;
  return elements;
}

}  // namespace

plan::plan(std::span<const plan_operand> operands, const plan_options& options) {
  if (operands.empty() || operands.size() > static_cast<std::size_t>(max_operands))
    throw error(errc::invalid_argument, "a loop takes 1 to 64 operands",
                {"got " + std::to_string(operands.size())});
  shape_ = operands[0].where.shape();
  for (const auto& operand : operands) {
    if (operand.where.shape() != shape_)
      throw error(errc::invalid_argument, "operands of one loop differ in shape",
                  {to_string(shape_) + " and " + to_string(operand.where.shape())});
    dims strides = operand.where.strides();
    const auto item = static_cast<index_t>(operand.item_bytes);
    for (index_t axis = 0; axis < strides.size(); ++axis)
      strides[axis] = shape_[axis] == 1 ? 0 : strides[axis] * item;
    strides_.push_back(strides);
    origins_.push_back(operand.where.offset() * item);
    items_.push_back(operand.item_bytes);
  }
  size_ = operands[0].where.size();
  for (index_t axis = 0; axis < shape_.size(); ++axis) logical_axes_.push_back(axis);

  if (!options.keep_axes) {
    sort_axes(operands);
    merge_axes();
    logical_axes_ = {};
  }
  if (shape_.empty()) {
    shape_.push_back(1);
    for (auto& strides : strides_) strides.push_back(0);
  }
  cut(operands, options);
}

void plan::sort_axes(std::span<const plan_operand> operands) {
  // Axes of length 1 have nothing to say.
  dims order;
  for (index_t axis = 0; axis < shape_.size(); ++axis)
    if (shape_[axis] != 1) order.push_back(axis);

  // Positive: `a` should lie inside `b`. The first ordering operand that moves along both decides,
  // and one that does not order only after all that do.
  const auto compare = [&](index_t a, index_t b) -> int {
    for (const bool ordering : {true, false}) {
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (operands[k].orders != ordering) continue;
        const index_t sa = std::abs(strides_[k][a]);
        const index_t sb = std::abs(strides_[k][b]);
        if (sa != 0 && sb != 0 && sa != sb) return sa < sb ? 1 : -1;
      }
    }
    return 0;
  };
  // Insertion sort: `compare` is not transitive where strides are zero, and ties keep their order.
  for (index_t i = 1; i < order.size(); ++i) {
    for (index_t j = i; j > 0; --j) {
      const int wanted = compare(order[j - 1], order[j]);
      if (wanted <= 0) break;
      std::swap(order[j - 1], order[j]);
    }
  }

  dims shape;
  for (const index_t axis : order) shape.push_back(shape_[axis]);
  for (std::size_t k = 0; k < strides_.size(); ++k) {
    dims strides;
    for (const index_t axis : order) strides.push_back(strides_[k][axis]);
    strides_[k] = strides;
  }
  shape_ = shape;

  // Walk forwards through memory wherever no operand objects.
  for (index_t axis = 0; axis < shape_.size(); ++axis) {
    const bool backwards =
        std::all_of(strides_.begin(), strides_.end(),
                    [&](const dims& s) { return s[axis] <= 0; }) &&
        std::any_of(strides_.begin(), strides_.end(), [&](const dims& s) { return s[axis] < 0; });
    if (!backwards) continue;
    for (std::size_t k = 0; k < strides_.size(); ++k) {
      if (size_ > 0) origins_[k] += strides_[k][axis] * (shape_[axis] - 1);
      strides_[k][axis] = -strides_[k][axis];
    }
  }
}

void plan::merge_axes() {
  if (shape_.empty()) return;
  index_t kept = 0;
  for (index_t axis = 1; axis < shape_.size(); ++axis) {
    const bool even = std::all_of(strides_.begin(), strides_.end(),
                                  [&](const dims& s) { return s[kept] == shape_[axis] * s[axis]; });
    if (even) {
      shape_[kept] *= shape_[axis];
      for (auto& strides : strides_) strides[kept] = strides[axis];
    } else {
      ++kept;
      shape_[kept] = shape_[axis];
      for (auto& strides : strides_) strides[kept] = strides[axis];
    }
  }
  while (shape_.size() > kept + 1) {
    shape_.pop_back();
    for (auto& strides : strides_) strides.pop_back();
  }
}

void plan::cut(std::span<const plan_operand> operands, const plan_options& options) {
  const index_t r = shape_.size();
  const index_t elements = options.tile_elements > 0
                               ? options.tile_elements
                               : std::min(default_tile_elements(size_), options.elements_max);
  tile_ = dims::filled(r, 1);

  // The axis that some operand is fastest along, if that is not the last one.
  index_t other = -1;
  if (!options.keep_axes && r >= 2) {
    for (std::size_t k = 0; k < operands.size() && other < 0; ++k) {
      if (!operands[k].orders || strides_[k][r - 1] == 0) continue;
      index_t fastest = r - 1;
      for (index_t axis = 0; axis < r; ++axis)
        if (strides_[k][axis] != 0 && std::abs(strides_[k][axis]) < std::abs(strides_[k][fastest]))
          fastest = axis;
      if (fastest != r - 1 && shape_[fastest] > 1 &&
          std::abs(strides_[k][r - 1]) >= 64)  // below, a line still holds the neighbour
        other = fastest;
    }
  }
  if (other >= 0) {
    blocked_ = true;
    // Bring it next to the last axis.
    const auto rotate = [&](dims& values) {
      std::rotate(values.begin() + other, values.begin() + other + 1, values.end() - 1);
    };
    rotate(shape_);
    for (auto& strides : strides_) rotate(strides);
    const index_t side =
        std::max<index_t>(square_block, std::min(square_tile, elements / square_tile));
    tile_[r - 1] = std::clamp<index_t>(shape_[r - 1], 1, square_tile);
    tile_[r - 2] = std::clamp<index_t>(shape_[r - 2], 1, side);
    const std::vector<footprint> footprints = footprints_of(operands, strides_, options);
    const auto fits = [&] {
      const index_t square = tile_[r - 1] * tile_[r - 2];
      return square == 1 || (square <= elements && within(square_reach, footprints, tile_));
    };
    while (!fits()) {
      index_t& longer = tile_[r - 1] > tile_[r - 2] ? tile_[r - 1] : tile_[r - 2];
      longer -= longer / 2;
    }
    block_inner_ = std::min(square_block, options.block_elements);
    block_outer_ = std::min(square_block, options.block_elements / block_inner_);
  } else {
    if (options.keep_axes && options.tile_shape) {
      for (index_t axis = 0; axis < options.tile_shape->size(); ++axis)
        tile_[axis] =
            std::clamp<index_t>((*options.tile_shape)[axis], 1, std::max<index_t>(shape_[axis], 1));
    } else {
      choose_tile(operands, elements, options);
    }
    block_inner_ = std::min(options.block_elements, std::max<index_t>(tile_[r - 1], 1));
    block_outer_ = std::max<index_t>(1, options.block_elements / block_inner_);
  }

  grid_ = dims::filled(r, 0);
  tile_count_ = size_ > 0 ? 1 : 0;
  for (index_t axis = 0; axis < r; ++axis) {
    tile_[axis] = std::max<index_t>(tile_[axis], 1);
    grid_[axis] = ceil_div(shape_[axis], tile_[axis]);
    tile_count_ *= grid_[axis];
  }
}

// Fills tiles from the fastest axis outwards.
void plan::choose_tile(std::span<const plan_operand> operands, index_t elements,
                       const plan_options& options) {
  index_t left = elements;
  index_t state_elements = options.state_elements;
  const std::vector<footprint> footprints = footprints_of(operands, strides_, options);
  for (index_t axis = rank() - 1; axis >= 0 && left > 1; --axis) {
    index_t& extent = tile_[axis];
    extent = std::clamp<index_t>(shape_[axis], 1, left);
    // All operands that do not order are states of one shape.
    bool of_states = false;
    for (std::size_t k = 0; k < operands.size(); ++k)
      of_states = of_states || (!operands[k].orders && strides_[k][axis] != 0);
    if (of_states) extent = std::min(extent, std::max<index_t>(state_elements, 1));
    extent = steps_within_reach(footprints, tile_, axis);
    if (of_states) state_elements /= extent;
    left /= extent;
    // An axis cut in the middle is cut evenly, so that the last tile is no splinter.
    if (extent < shape_[axis]) extent = ceil_div(shape_[axis], ceil_div(shape_[axis], extent));
  }
}

plan::box plan::tile(index_t number) const {
  box result{dims::filled(rank(), 0), dims::filled(rank(), 0)};
  for (index_t axis = rank() - 1; axis >= 0; --axis) {
    result.start[axis] = number % grid_[axis] * tile_[axis];
    result.shape[axis] = std::min(tile_[axis], shape_[axis] - result.start[axis]);
    number /= grid_[axis];
  }
  return result;
}

std::pair<index_t, index_t> plan::span_bytes(int which, const box& where) const noexcept {
  index_t first = origins_[which];
  index_t last = first;
  for (index_t axis = 0; axis < rank(); ++axis) {
    const index_t stride = strides_[which][axis];
    const index_t a = where.start[axis] * stride;
    const index_t b = (where.start[axis] + where.shape[axis] - 1) * stride;
    first += std::min(a, b);
    last += std::max(a, b);
  }
  return {first, last + static_cast<index_t>(items_[which])};
}

}  // namespace shale::parallel
