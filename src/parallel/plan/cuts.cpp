#include "parallel/plan/cuts.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "parallel/plan/fault_around.hpp"

namespace shale::parallel {

namespace {

// A full tile takes a few dozen microseconds of memory traffic. Small index spaces are cut into
// smaller tiles, so that several threads still get work.
constexpr index_t tile_elements_max = index_t{1} << 17;
constexpr index_t tile_elements_min = index_t{1} << 13;

// A tile allocates, merges and frees one state for each of its results. So a tile with many results
// gets more elements along the folded axis, if at least `reducing_tiles_min` tiles are left.
constexpr index_t reducing_tile_elements_max = index_t{1} << 19;
constexpr index_t reducing_tiles_min = 64;

// Each state should take in at least `elements_of_state_min` elements. So a small tile has fewer
// states, but at least `tile_states_min`, so that its rows are not short pieces of memory.
constexpr index_t elements_of_state_min = 64;
constexpr index_t tile_states_min = 128;

// The most bytes that a tile may touch (plan.5).
struct byte_limit {
  index_t operand;  // bytes of one operand
  index_t all;      // bytes of all operands together
};
constexpr byte_limit tile_limit{index_t{4} << 20, index_t{16} << 20};
constexpr byte_limit square_limit{index_t{8} << 20, index_t{16} << 20};

// Estimates the bytes of one operand that a tile touches. It adds the axes from the narrowest
// stride to the widest. A run is a range of memory in which everything is touched, or mapped by the
// same page faults. If the stride is at most the length of the run so far, or at most what a fault
// maps, then the copies of the run along this axis join to one longer run. Otherwise they are
// separate runs, and their number is multiplied.
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
      if (strides_[axis] <= std::max(run, fault_around_bytes))
        run += (tile[axis] - 1) * strides_[axis];
      else runs *= tile[axis];
    }
    return runs == 1 ? run : runs * std::max(run, fault_around_bytes);
  }

 private:
  dims strides_;
  dims nearest_first_;
  index_t item_;
};

// Makes the footprints of the operands that are elements. The strides of states and positions are
// not those of memory. There are no footprints if the caller gave the size of tiles: such tiles
// have no limit.
std::vector<footprint> footprints_of(std::span<const plan_operand> operands,
                                     const std::vector<dims>& strides,
                                     const plan_options& options) {
  std::vector<footprint> result;
  if (options.tile_elements > 0) return result;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (operands[k].decides_axis_order()) result.emplace_back(strides[k], operands[k].item_bytes);
  return result;
}

index_t bytes_of_all(const std::vector<footprint>& operands, const dims& tile) {
  index_t all = 0;
  for (const footprint& operand : operands) all += operand.bytes(tile);
  return all;
}

bool within(const byte_limit& limit, const std::vector<footprint>& operands, const dims& tile) {
  index_t all = 0;
  for (const footprint& operand : operands) {
    const index_t bytes = operand.bytes(tile);
    if (bytes > limit.operand) return false;
    all += bytes;
  }
  return all <= limit.all;
}

// The most steps along `axis`, up to those of `tile`, that stay within the limit of tiles; at least
// one.
index_t steps_within_limit(const std::vector<footprint>& operands, dims tile, index_t axis) {
  if (within(tile_limit, operands, tile)) return tile[axis];
  index_t least = 1;
  index_t most = tile[axis];
  while (most - least > 1) {
    tile[axis] = least + (most - least) / 2;
    (within(tile_limit, operands, tile) ? least : most) = tile[axis];
  }
  return least;
}

// The sides of squares over two paired axes. In a block each side has whole cache lines, and two
// operands of 8 bytes fit into a 48 KiB L1 cache.
constexpr index_t square_block = 32;
constexpr index_t square_tile = 256;

index_t default_tile_elements(index_t size) {
  index_t elements = tile_elements_min;
  while (elements < tile_elements_max && elements < size / 32) elements *= 2;
  return elements;
}

// Holds the index space while it is being cut.
class cutter {
 public:
  cutter(const strided_axes& axes, index_t size, std::span<const plan_operand> operands,
         const plan_options& options)
      : axes_(axes),
        operands_(operands),
        options_(options),
        elements_(options.tile_elements > 0
                      ? options.tile_elements
                      : std::min(default_tile_elements(size), options.elements_max)),
        reducing_elements_(options.tile_elements > 0
                               ? options.tile_elements
                               : std::min({reducing_tile_elements_max, size / reducing_tiles_min,
                                           options.elements_max})) {}

  dims tile_shape(bool squares) const {
    if (squares) return square_tile_shape();
    return options_.keep_axes && options_.tile_shape ? given_tile_shape() : row_tile_shape();
  }

 private:
  dims given_tile_shape() const {
    dims tile = *options_.tile_shape;
    for (index_t axis = 0; axis < tile.size(); ++axis)
      tile[axis] = std::clamp<index_t>(tile[axis], 1, std::max<index_t>(axes_.shape[axis], 1));
    while (tile.size() < axes_.rank()) tile.push_back(1);
    return tile;
  }

  // Chooses tiles for operands that disagree on the fastest axis. One operand is read along rows of
  // the tile, the other along its columns, so a side of the tile is a run of memory in one of them.
  // The tile has both sides as long as the limits allow, and length 1 along the other axes.
  //
  // It begins with square_tile columns, and with as many rows as the wanted number of elements
  // leaves. While the tile has too many elements or touches too many bytes, the longer side is
  // halved, so that both sides stay nearly equal. If it touches too many bytes and halving the
  // shorter side saves clearly more of them, because steps along it cost more memory, then that
  // side is halved. This ends with one element at the latest.
  dims square_tile_shape() const {
    dims tile = dims::filled(axes_.rank(), 1);
    index_t& columns = tile[axes_.rank() - 1];
    index_t& rows = tile[axes_.rank() - 2];
    const index_t side =
        std::max<index_t>(square_block, std::min(square_tile, elements_ / square_tile));
    columns = std::clamp<index_t>(axes_.shape[axes_.rank() - 1], 1, square_tile);
    rows = std::clamp<index_t>(axes_.shape[axes_.rank() - 2], 1, side);
    const std::vector<footprint> footprints = footprints_of(operands_, axes_.strides, options_);
    const auto bytes_if_halved = [&](index_t& extent) {
      const index_t before = std::exchange(extent, extent - extent / 2);
      const index_t bytes = bytes_of_all(footprints, tile);
      extent = before;
      return bytes;
    };
    for (;;) {
      const bool touches_little = within(square_limit, footprints, tile);
      if (columns * rows == 1 || (columns * rows <= elements_ && touches_little)) return tile;
      index_t& longer = columns > rows ? columns : rows;
      index_t& shorter = columns > rows ? rows : columns;
      const bool saves_more =
          !touches_little && bytes_if_halved(shorter) < bytes_if_halved(longer) / 4 * 3;
      index_t& halved = saves_more ? shorter : longer;
      halved -= halved / 2;
    }
  }

  // Chooses tiles for operands that agree on the fastest axis. It goes from that axis outwards.
  // Each axis gets the smallest of four numbers: its length, the elements that are left, the states
  // that are left (if a step along it leads to another state), and the steps that keep the touched
  // bytes within their limit. What is left is then divided by what the axis got.
  //
  // As an example, take tiles of 131,072 elements in an index space of 1,000 x 300 x 500 whose axes
  // cannot be merged. Axis 2 gets 500, which leaves 262. Axis 1 could get 262; that makes 2 tiles,
  // so it gets 150 and both are equal. Nothing is left, so axis 0 gets 1.
  //
  // A sum over axis 0 of 1,000 x 10,000 goes further: its tiles are a 64th of all elements,
  // 156,250, and have a 64th of that as states. So axis 1 gets 2,441 (in the end 2,000, for 5 equal
  // tiles), and the 64 that are left go to axis 0.
  dims row_tile_shape() const {
    dims tile = dims::filled(axes_.rank(), 1);
    index_t left =
        moves_states(axes_.rank() - 1) ? std::max(elements_, reducing_elements_) : elements_;
    index_t state_elements =
        std::min(options_.state_elements, std::max(tile_states_min, left / elements_of_state_min));
    const std::vector<footprint> footprints = footprints_of(operands_, axes_.strides, options_);
    for (index_t axis = axes_.rank() - 1; axis >= 0 && left > 1; --axis) {
      index_t& extent = tile[axis];
      extent = std::clamp<index_t>(axes_.shape[axis], 1, left);
      const bool of_states = moves_states(axis);
      if (of_states) extent = std::min(extent, std::max<index_t>(state_elements, 1));
      extent = steps_within_limit(footprints, tile, axis);
      if (of_states) state_elements /= extent;
      left /= extent;
      // Cut the axis evenly, so that its last tile is nearly as long as the others.
      if (extent < axes_.shape[axis])
        extent = ceil_div(axes_.shape[axis], ceil_div(axes_.shape[axis], extent));
    }
    return tile;
  }

  // Whether a step along the axis leads to another state of a reduction.
  bool moves_states(index_t axis) const {
    for (std::size_t k = 0; k < operands_.size(); ++k)
      if (operands_[k].role == operand_role::states && axes_.strides[k][axis] != 0) return true;
    return false;
  }

  const strided_axes& axes_;
  const std::span<const plan_operand> operands_;
  const plan_options& options_;
  const index_t elements_;
  const index_t reducing_elements_;
};

}  // namespace

cuts choose_cuts(const strided_axes& axes, index_t size, bool squares,
                 std::span<const plan_operand> operands, const plan_options& options) {
  cuts made{.tile = cutter(axes, size, operands, options).tile_shape(squares)};
  made.cut_blocks(options.block_elements, squares && !options.whole_tile_blocks);
  return made;
}

void cuts::cut_blocks(index_t elements_max, bool small_squares) {
  const index_t longest = std::max<index_t>(tile[tile.size() - 1], 1);
  block_inner = std::min(small_squares ? square_block : longest, elements_max);
  block_outer = std::max<index_t>(1, elements_max / block_inner);
  if (small_squares) block_outer = std::min(square_block, block_outer);
}

}  // namespace shale::parallel
