#include "ops/leaves/indexed_generator.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/leaves/indices.hpp"
#include "ops/leaves/row_walk.hpp"

namespace shale::ops {

namespace {

using namespace detail;

index_t position_of(const std::byte* index, index_t axis, index_t extent) {
  const std::int64_t position = index_at(index);
  const index_t from_start = position_from_start(position, extent);
  if (static_cast<std::uint64_t>(from_start) >= static_cast<std::uint64_t>(extent))
    throw_index_out_of_range(position, axis, extent);
  return from_start;
}

// An axis of the input whose positions an index names.
struct indexed_axis {
  index_t axis;  // its name in errors
  index_t extent;
  index_t stride;             // of the input, in bytes
  element_address positions;  // int64, over the axes of the leaf

  index_t offset(const std::byte* index) const { return position_of(index, axis, extent) * stride; }
};

// An axis of the input that has the position of an axis of the leaf.
struct direct_axis {
  index_t from;
  index_t stride;
};

template <std::size_t item>
class indexed_generator final : public leaf_generator {
 public:
  indexed_generator(const indexed_leaf& leaf, const std::vector<tensor>& inputs)
      : map_(*leaf.map), values_(inputs[0]) {
    index_t axis = 0;
    for (const position_of_axis& from : leaf.axes) {
      if (from.index >= 0)
        indexed_.push_back({from.named < 0 ? axis : from.named, inputs[0].shape(axis),
                            values_.stride(axis),
                            element_address(inputs[static_cast<std::size_t>(from.index) + 1])});
      else if (from.axis >= 0) direct_.push_back({from.axis, values_.stride(axis)});
      ++axis;
    }
  }

  void fill(const index_t* start, std::byte* out, index_t inner, index_t outer) const override {
    row_walk walk = begin_walk(map_, start);
    for (index_t row = 0; row < outer; ++row) {
      row_source source = source_of(walk);
      fill_row(source, out, inner);
      if (walk.outer_axis >= 0) walk.index[walk.outer_axis] += walk.outer_step;
    }
  }

  // If every axis has an index, no elements of a row are known to be neighbours in memory.
  bool may_have_rows() const noexcept override { return !direct_.empty(); }

  bool find_rows(const index_t* start, const std::byte** rows, index_t outer) const override {
    row_walk walk = begin_walk(map_, start);
    for (index_t row = 0; row < outer; ++row) {
      const row_source source = source_of(walk);
      if (source.moves != 0 || source.step != static_cast<index_t>(item)) return false;
      rows[row] = source.first;
      if (walk.outer_axis >= 0) walk.index[walk.outer_axis] += walk.outer_step;
    }
    return true;
  }

 private:
  // An index that changes along the row.
  struct moving_index {
    const indexed_axis* along;
    const std::byte* next;
    index_t step;
  };

  // Where the elements of a row are read. If no index changes along the row, they lie `step` bytes
  // apart.
  struct row_source {
    const std::byte* first;
    index_t step;
    std::array<moving_index, static_cast<std::size_t>(rank_max)> moving;
    std::size_t moves;
  };

  row_source source_of(const row_walk& walk) const {
    row_source made;
    made.first = values_.first();
    made.step = 0;
    made.moves = 0;
    for (const direct_axis& axis : direct_) {
      made.first += walk.index[axis.from] * axis.stride;
      if (axis.from == walk.inner_axis) made.step += walk.inner_step * axis.stride;
    }
    for (const indexed_axis& axis : indexed_) {
      const std::byte* index = axis.positions.first();
      for (index_t k = 0; k < walk.index.size(); ++k)
        index += walk.index[k] * axis.positions.stride(k);
      const index_t index_step =
          walk.inner_axis < 0 ? 0 : walk.inner_step * axis.positions.stride(walk.inner_axis);
      if (index_step == 0) made.first += axis.offset(index);
      else made.moving[made.moves++] = {&axis, index, index_step};
    }
    return made;
  }

  static void fill_row(row_source& from, std::byte*& out, index_t inner) {
    if (from.moves == 0) return copy_run<item>(out, from.first, inner, from.step);
    if (from.moves == 1) return copy_indexed(out, from.first, from.step, from.moving[0], inner);
    for (index_t i = 0; i < inner; ++i, from.first += from.step, out += item) {
      const std::byte* element = from.first;
      for (std::size_t k = 0; k < from.moves; ++k) {
        element += from.moving[k].along->offset(from.moving[k].next);
        from.moving[k].next += from.moving[k].step;
      }
      std::memcpy(out, element, item);
    }
  }

  // Elements at random positions of a large input wait for memory. Finding some positions first,
  // and prefetching there, lets many of them wait at the same time.
  static void copy_indexed(std::byte*& out, const std::byte* first, index_t step,
                           const moving_index& index, index_t count) {
    constexpr index_t ahead = 64;
    const index_t axis = index.along->axis, extent = index.along->extent;
    const index_t stride = index.along->stride, next_step = index.step;
    const std::byte* next = index.next;
    std::byte* to = out;
    std::array<const std::byte*, static_cast<std::size_t>(ahead)> found;
    for (index_t done = 0; done < count; done += ahead) {
      const auto some = static_cast<std::size_t>(std::min(ahead, count - done));
      for (std::size_t i = 0; i < some; ++i, first += step, next += next_step) {
        found[i] = first + position_of(next, axis, extent) * stride;
        __builtin_prefetch(found[i]);
      }
      for (std::size_t i = 0; i < some; ++i, to += item) std::memcpy(to, found[i], item);
    }
    out = to;
  }

  axis_map map_;
  element_address values_;
  std::vector<direct_axis> direct_;
  std::vector<indexed_axis> indexed_;
};

}  // namespace

std::unique_ptr<leaf_generator> make_indexed_generator(const indexed_leaf& leaf,
                                                       const std::vector<tensor>& inputs) {
  return by_width<indexed_generator>(inputs[0].item_bytes(), leaf, inputs);
}

}  // namespace shale::ops
