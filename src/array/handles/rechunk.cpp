#include "shale/rechunk.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "array/elements/chunk_places.hpp"
#include "array/handles/array_implementation.hpp"
#include "array/transaction/changes/running_write.hpp"
#include "core/allocating.hpp"
#include "core/grid.hpp"
#include "core/printable.hpp"
#include "core/saturating.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "shale/error.hpp"
#include "shale/index.hpp"
#include "shale/layout.hpp"
#include "shale/tile_source.hpp"
#include "storage/mapped/scratch_file.hpp"
#include "tensor/parts.hpp"

namespace shale {

namespace {

// The share of the budget that a block may take. A second block is held while one is rearranged,
// and threads that code chunks take up to half of the budget.
constexpr std::size_t blocks_in_budget = 8;

// Decoding all chunks this many times takes less time than writing all elements to a file and
// reading them again.
constexpr std::uint64_t decodings_max = 2;

std::uint64_t elements_of(const dims& shape) {
  std::uint64_t elements = 1;
  for (const index_t extent : shape)
    elements = detail::saturating_mul(elements, static_cast<std::uint64_t>(extent));
  return elements;
}

// The number of pieces into which the borders of blocks and of tiles cut an array. Along an axis,
// every border adds one piece. Borders of blocks lie at the multiples of the block's extent. Some
// of them are borders of tiles too, and are counted once.
std::uint64_t pieces_of(const dims& shape, const dims& block, const dims& tile) {
  std::uint64_t pieces = 1;
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t borders = ceil_div(shape[axis], block[axis]) - 1;
    const index_t shared = borders / (tile[axis] / std::gcd(block[axis], tile[axis]));
    const index_t along = ceil_div(shape[axis], tile[axis]) + borders - shared;
    pieces = detail::saturating_mul(pieces, static_cast<std::uint64_t>(along));
  }
  return pieces;
}

std::uint64_t tiles_of(const dims& shape, const dims& tile) {
  return elements_of(detail::grid_of(shape, tile));
}

// Looks for blocks of whole units that cut tiles into few pieces.
class block_search {
 public:
  block_search(const dims& shape, const dims& unit, const dims& tile, std::uint64_t elements_max)
      : shape_(shape), unit_(unit), tile_(tile), elements_max_(elements_max) {}

  // The best first step may be the wrong one: a block that is long along one axis leaves no room to
  // grow along another axis, where that would save more borders. So every first step is tried, and
  // after it the best step each time. Of the blocks with the fewest pieces, the largest is taken.
  dims best() const {
    dims unit = unit_;
    for (index_t axis = 0; axis < shape_.size(); ++axis)
      unit[axis] = std::min(unit[axis], shape_[axis]);
    dims found = grown(unit);
    for_each_step(unit, [&](const dims& larger) {
      const dims block = grown(larger);
      if (is_better(block, found)) found = block;
    });
    return found;
  }

 private:
  std::uint64_t pieces(const dims& block) const { return pieces_of(shape_, block, tile_); }

  bool is_better(const dims& block, const dims& than) const {
    const std::uint64_t fewer = pieces(block);
    const std::uint64_t known = pieces(than);
    return fewer < known || (fewer == known && elements_of(block) > elements_of(than));
  }

  // Grows a block along any axis, as long as there is room and the pieces do not become more.
  dims grown(dims block) const {
    for (;;) {
      dims next = block;
      for_each_step(block, [&](const dims& larger) {
        if (pieces(larger) <= pieces(next)) next = larger;
      });
      if (next == block) return block;
      block = next;
    }
  }

  // Calls `visit` for larger blocks for which there is room. In each of them one axis is longer.
  // Its new end is one of these: twice its extent; the next border that units and tiles have in
  // common; the last such border, or the last border of units, for which there is room; the end of
  // the whole axis. Shorter steps come first.
  template <class Visit>
  void for_each_step(const dims& block, Visit visit) const {
    for (index_t axis = 0; axis < shape_.size(); ++axis) {
      const index_t extent = block[axis];
      const index_t length = shape_[axis];
      const index_t unit = unit_[axis];
      const index_t common =
          checked_mul(unit, tile_[axis] / std::gcd(unit, tile_[axis])).value_or(length);
      dims longer = block;
      longer[axis] = 1;
      const auto room = static_cast<index_t>(std::min<std::uint64_t>(
          elements_max_ / elements_of(longer), static_cast<std::uint64_t>(length)));
      std::array<index_t, 5> steps{multiple_after(extent, extent, length),
                                   multiple_after(extent, common, length), room / unit * unit,
                                   room / common * common, length};
      std::sort(steps.begin(), steps.end());
      const auto end = std::unique(steps.begin(), steps.end());
      for (auto step = steps.begin(); step != end; ++step) {
        if (*step <= extent || *step > room) continue;
        longer[axis] = *step;
        visit(longer);
      }
    }
  }

  // The first multiple of `step` after `extent`, or `length` if that comes first. The comparison
  // cannot wrap.
  static index_t multiple_after(index_t extent, index_t step, index_t length) {
    const index_t more = step - extent % step;
    return more >= length - extent ? length : extent + more;
  }

  const dims& shape_;
  const dims& unit_;
  const dims& tile_;
  const std::uint64_t elements_max_;
};

rechunk_plan plan_for(const array& from, const dims& chunk_shape, const executor& on) {
  const dims& shape = from.shape();
  if (from.kind() == array_kind::dense)
    throw error(errc::invalid_argument, "a dense array has no chunks",
                {detail::in_quotes(from.name())});
  bool fits = chunk_shape.size() == shape.size();
  for (const index_t extent : chunk_shape) fits = fits && extent > 0;
  if (!fits)
    throw error(errc::invalid_argument, "the chunk shape does not fit the array",
                {"got " + to_string(chunk_shape) + " for shape " + to_string(shape)});
  rechunk_plan plan{.block_shape = chunk_shape, .read_shape = {}};
  if (from.size() == 0) return plan;
  const std::uint64_t elements_max =
      on.memory_bytes() / blocks_in_budget / item_bytes(from.dtype());
  const dims& old_chunk = from.chunk_shape();
  const std::uint64_t old_chunks = tiles_of(shape, old_chunk);
  plan.block_shape = block_search(shape, chunk_shape, old_chunk, elements_max).best();
  plan.chunks_decoded = pieces_of(shape, plan.block_shape, old_chunk);
  plan.chunks_encoded = tiles_of(shape, chunk_shape);
  if (plan.chunks_decoded <= detail::saturating_mul(decodings_max, old_chunks)) return plan;
  plan.passes = 2;
  plan.read_shape = block_search(shape, old_chunk, plan.block_shape, elements_max).best();
  plan.chunks_decoded = old_chunks;
  plan.scratch_bytes = from.size_bytes();
  return plan;
}

// A copy that is in progress. The caller holds a running write of the transaction. Once a commit
// waits for that, no member of `writable_array` can write, but its tiles can.
class copying {
 public:
  /// `label` is what messages call the target.
  copying(const array& from, arrays::chunk_tiles& to, std::string label, const rechunk_plan& plan,
          executor& on)
      : from_(from),
        to_(to),
        label_(std::move(label)),
        plan_(plan),
        on_(on),
        shape_(from.shape()) {}

  void in_one_pass() const {
    for_each_box(plan_.block_shape, [&](const region& block) { write(block, from_.read(block)); });
  }

  // The file holds the blocks one after the other. The boxes of the first pass cut a block into
  // pieces, which also lie one after the other. The position of a piece is computed from its
  // region. Arrays may have millions of blocks, so no table of them is held.
  void in_two_passes() const {
    detail::scratch_file scratch(plan_.scratch_bytes);
    for_each_box(plan_.read_shape, [&](const region& box) {
      const tensor values = from_.read(box);
      for_each_piece(box, plan_.block_shape, [&](const region& common, const dims& index) {
        const region block = tile_region(shape_, plan_.block_shape, index);
        const tensor piece = tensor::empty(common.shape, from_.dtype(), &on_.pool());
        parallel::copy_elements_here(piece, detail::narrowed(values, common, box.start));
        scratch.write({piece.data(), piece.size_bytes()},
                      place_of(block) + bytes_of(detail::elements_before(block, common)));
      });
    });
    for_each_box(plan_.block_shape, [&](const region& block) {
      const tensor values = gathered(scratch, block);
      scratch.check();
      write(block, values);
    });
  }

 private:
  void write(const region& block, const tensor& values) const {
    with_context([&] { return "write " + to_string(block) + " of " + label_; },
                 [&] { to_.write(arrays::chunk_places(block), values, on_); });
  }

  // Calls `visit(box)` for all boxes of that shape, in row-major order.
  template <class Visit>
  void for_each_box(const dims& box_shape, Visit visit) const {
    const dims grid = detail::grid_of(shape_, box_shape);
    for (index_t number = 0; number < element_count(grid); ++number)
      visit(tile_region(shape_, box_shape, detail::unravel(number, grid)));
  }

  // Calls `visit(common part, index of the box)` for the boxes that share elements with `whole`, on
  // all threads.
  template <class Visit>
  void for_each_piece(const region& whole, const dims& box_shape, Visit visit) const {
    const detail::tile_range touched = detail::tiles_under(whole, box_shape);
    parallel::parallel_for_tiles(
        on_, touched.size(),
        [&](index_t number, int) {
          const dims index = touched.at(number);
          visit(detail::intersection(tile_region(shape_, box_shape, index), whole), index);
        },
        {.counted = false});
  }

  std::uint64_t bytes_of(index_t elements) const {
    return static_cast<std::uint64_t>(elements) * item_bytes(from_.dtype());
  }

  // Where the block begins in the file.
  std::uint64_t place_of(const region& block) const {
    return bytes_of(detail::elements_before(region::all(shape_), block));
  }

  tensor gathered(const detail::scratch_file& scratch, const region& block) const {
    const tensor values = tensor::empty(block.shape, from_.dtype(), &on_.pool());
    const storage bytes = storage::allocate(values.size_bytes(), &on_.pool());
    scratch.read({bytes.data(), bytes.size_bytes()}, place_of(block));
    for_each_piece(block, plan_.read_shape, [&](const region& common, const dims&) {
      const layout rows(common.shape);
      const tensor piece(
          bytes, from_.dtype(),
          layout(common.shape, rows.strides(), detail::elements_before(block, common)));
      parallel::copy_elements_here(detail::narrowed(values, common, block.start), piece);
    });
    return values;
  }

  const array& from_;
  arrays::chunk_tiles& to_;
  const std::string label_;
  const rechunk_plan& plan_;
  executor& on_;
  const dims& shape_;
};

}  // namespace

rechunk_plan plan_rechunk(const array& from, const dims& chunk_shape) {
  return detail::reporting([&] { return "plan the copy of " + detail::in_quotes(from.name()); },
                           [&] { return plan_for(from, chunk_shape, executor::current()); });
}

rechunk_plan rechunk(const array& from, const writable_array& to) {
  return detail::reporting(
      [&] { return "rechunk " + detail::in_quotes(from.name()); },
      [&] {
        static_cast<void>(to.state());           // throws if it was moved from
        const auto target = to.implementation_;  // a callback may destroy the handle
        const arrays::running_write running(*target->owner);
        executor& on = executor::current();
        if (!(from.shape() == to.shape()) || to.kind() == array_kind::dense)
          throw error(errc::invalid_argument, "the target is no chunked array of the same shape",
                      {detail::in_quotes(to.name()) + " has shape " + to_string(to.shape()) +
                       ", wanted " + to_string(from.shape())});
        const rechunk_plan plan = plan_for(from, to.chunk_shape(), on);
        const auto tiles = target->owner->tiles_of(*target->written);
        if (from.tiles()->identity() == tiles->identity())
          throw error(errc::invalid_argument, "an array cannot be copied onto itself",
                      {"read it from the generation before: container::latest"});
        if (from.size() == 0) return plan;
        const std::size_t block_bytes = static_cast<std::size_t>(
            std::max(elements_of(plan.block_shape),
                     plan.passes == 2 ? elements_of(plan.read_shape) : std::uint64_t{0}) *
            item_bytes(from.dtype()));
        const parallel::held_tokens held(parallel::state_of(on).tokens,
                                         static_cast<std::size_t>(plan.passes) * block_bytes);
        const copying work(from, *tiles, target->owner->label(target->written->name), plan, on);
        if (plan.passes == 2) work.in_two_passes();
        else work.in_one_pass();
        target->owner->require_not_aborted();
        return plan;
      });
}

}  // namespace shale
