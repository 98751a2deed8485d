#include "shale/masks.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

#include "core/allocating.hpp"
#include "core/grid.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/functions/operands/slabs.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"
#include "ops/leaves/indices.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/operands/bytes_read_once.hpp"
#include "parallel/operands/changing_operand.hpp"
#include "parallel/operands/loop_operand.hpp"
#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/reductions.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

// The elements of a mask that one thread works through at a time.
constexpr index_t block_elements = index_t{1} << 16;

bool is_true(std::byte element) { return element != std::byte{}; }

index_t count_true(const std::byte* elements, index_t count) {
  static const reducer& counter = *find_reducer(reduction::count_nonzero, dtype::boolean);
  std::int64_t found = 0;
  auto* const state = reinterpret_cast<std::byte*>(&found);
  counter.start(state, 1);
  std::byte* const data[] = {state, const_cast<std::byte*>(elements)};
  const index_t strides[] = {0, 1, 0, 0};
  counter.accumulate(data, strides, count, 1);
  return found;
}

// The true elements of a mask that lies in memory. They are counted block by block, so that it is
// known where the results of each block begin. A mask in memory is not copied, so another thread or
// process may change it after it was counted. For that reason every loop is bounded by the count.
class counted_mask {
 public:
  counted_mask(const tensor& mask, executor& on)
      : mask_(mask), on_(on), starts_(static_cast<std::size_t>(blocks()) + 1, 0) {
    auto count = [&](index_t block, int) {
      starts_[static_cast<std::size_t>(block) + 1] =
          count_true(mask_.data() + first_of(block), first_of(block + 1) - first_of(block));
    };
    parallel::parallel_for_tiles(on, blocks(), count, {.progress_bytes = mask_.size_bytes()});
    mask_.storage().check();
    parallel::state_of(on).count.read(mask_.size_bytes());
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  }

  index_t count() const noexcept { return starts_.back(); }

  /// Calls `body(first, end, start, found)` for each block with true elements. The block has
  /// elements `first` to `end` - 1 and `found` true elements; `start` true elements come before it.
  /// `body` uses at most `found` of them, and returns how many there were.
  /// Throws   io if the mask is not the one that was counted
  template <class Body>
  void for_each_block(std::uint64_t progress_bytes, Body body) const {
    auto visit = [&](index_t block, int) {
      const index_t start = starts_[static_cast<std::size_t>(block)];
      const index_t found = starts_[static_cast<std::size_t>(block) + 1] - start;
      if (found > 0 && body(first_of(block), first_of(block + 1), start, found) != found) {
        mask_.storage().check();
        parallel::throw_changed("a mask");
      }
    };
    parallel::parallel_for_tiles(on_, blocks(), visit, {.progress_bytes = progress_bytes});
    mask_.storage().check();
    parallel::state_of(on_).count.read(mask_.size_bytes());
  }

  const std::byte* elements() const noexcept { return mask_.data(); }

 private:
  index_t blocks() const { return ceil_div(mask_.size(), block_elements); }
  index_t first_of(index_t block) const { return std::min(block * block_elements, mask_.size()); }

  tensor mask_;
  executor& on_;
  std::vector<index_t> starts_;
};

// Counts the true elements of a mask, and then visits them slab by slab. So neither the mask nor
// the values need to fit into memory.
class selection {
 public:
  /// `item_bytes` is the size of one element that is selected; the byte of the mask is not part of
  /// it.
  selection(const expr& mask, std::size_t item_bytes, executor& on)
      : mask_(astype(mask, dtype::boolean)),
        slab_(slab_shape(mask.shape(), slab_elements(item_bytes, on))),
        on_(on) {
    if (slab_ == mask.shape()) {
      whole_.emplace(held_contiguous(mask_), on);
      count_ = whole_->count();
    } else if (mask.size() > 0) {
      mask_ = with_computed_stages(mask_);
      count_ = eval(count_nonzero(mask_)).item().as<index_t>();
    }
  }

  index_t count() const noexcept { return count_; }

  /// Prepares another operand than the mask. The body of `for_each_slab` then takes parts of it.
  /// Throws   as `eval`
  expr cut_with_mask(const expr& value) const {
    return whole_ || count_ == 0 ? value : with_computed_stages(value);
  }

  /// The elements of such a part.
  tensor held(const expr& part) const { return whole_ ? held_contiguous(part) : held_part(part); }

  /// Calls `body(box, mask, before)` for each slab: its place, its mask, and the number of true
  /// elements before it.
  /// Throws   io if the mask is not the one that was counted: its file or memory was written
  ///          meanwhile
  template <class Body>
  void for_each_slab(Body body) const {
    if (count_ == 0) return;
    if (whole_) return body(region::all(mask_.shape()), *whole_, 0);
    index_t before = 0;
    for_each_slab_of(mask_.shape(), slab_, [&](const region& box) {
      const counted_mask part(held_part(part_of(mask_, box)), on_);
      if (before + part.count() > count_) parallel::throw_changed("a mask");
      if (part.count() > 0) body(box, part, before);
      before += part.count();
    });
    if (before != count_) parallel::throw_changed("a mask");
  }

 private:
  static index_t slab_elements(std::size_t item_bytes, const executor& on) {
    return static_cast<index_t>(on.memory_bytes() / 4 / (item_bytes + 1));
  }

  expr mask_;
  dims slab_;
  executor& on_;
  std::optional<counted_mask> whole_;
  index_t count_ = 0;
};

// Selects at most `found` of `count` elements, and returns how many it selected. Every element is
// stored; if it was not selected, the next one is stored in its place. So no branch depends on the
// mask.
template <std::size_t item>
index_t select_elements(std::byte* to, const std::byte* from, const std::byte* mask, index_t count,
                        index_t found) {
  index_t k = 0;
  for (index_t i = 0; i < count && k < found; ++i) {
    std::memcpy(to + k * static_cast<index_t>(item), from + i * static_cast<index_t>(item), item);
    k += is_true(mask[i]) ? 1 : 0;
  }
  return k;
}

using select_function = index_t (*)(std::byte* to, const std::byte* from, const std::byte* mask,
                                    index_t count, index_t found);

select_function select_by_width(std::size_t item_bytes) {
  switch (item_bytes) {
    case 1:
      return select_elements<1>;
    case 2:
      return select_elements<2>;
    case 4:
      return select_elements<4>;
    case 8:
      return select_elements<8>;
    default:
      return select_elements<16>;
  }
}

// Calls `row(coordinates, mask, length)` for the rows, or parts of rows, of a block of a mask whose
// elements `first` … `end` - 1 lie at `mask`. The coordinates are those of the row's first element.
// The block has at least one axis.
template <class Row>
void for_each_mask_row(const region& box, const std::byte* mask, index_t first, index_t end,
                       Row row) {
  const index_t last = box.shape.size() - 1;
  dims at = detail::unravel(first, box.shape);
  for (index_t i = first; i < end;) {
    const index_t length = std::min(end - i, box.shape[last] - at[last]);
    dims coordinates = box.start;
    for (index_t axis = 0; axis <= last; ++axis) coordinates[axis] += at[axis];
    row(coordinates, mask + (i - first), length);
    i += length;
    at[last] += length - 1;
    detail::advance(at, box.shape);
  }
}

// Where coordinates are stored: those of the k-th true element at axes[axis][k * step].
struct coordinate_columns {
  std::vector<std::int64_t*> axes;
  index_t step;
};

// Stores the last coordinate of each true element of a row at the positions k, k + 1, … and returns
// the next free position. Like select_elements, it stores every coordinate; if the element is
// false, the next coordinate is stored in its place. It stores nothing from position `stop` on.
index_t store_last_coordinates(std::int64_t* to, index_t step, std::int64_t first,
                               const std::byte* row, index_t length, index_t k, index_t stop) {
  for (index_t i = 0; i < length && k < stop; ++i) {
    to[k * step] = first + i;
    k += is_true(row[i]) ? 1 : 0;
  }
  return k;
}

// Stores the coordinates of at most `found` true elements of a block, from position `k` on. Returns
// how many it stored.
index_t store_coordinates(const coordinate_columns& to, const region& box, const counted_mask& mask,
                          index_t first, index_t end, index_t k, index_t found) {
  const std::size_t last = to.axes.size() - 1;
  const index_t start = k, stop = k + found;
  for_each_mask_row(
      box, mask.elements() + first, first, end,
      [&](const dims& at, const std::byte* row, index_t length) {
        const index_t begin = k;
        const auto coordinate = [&](std::size_t axis) { return at[static_cast<index_t>(axis)]; };
        k = store_last_coordinates(to.axes[last], to.step, coordinate(last), row, length, k, stop);
        for (std::size_t axis = 0; axis < last; ++axis)
          for (index_t i = begin; i < k; ++i) to.axes[axis][i * to.step] = coordinate(axis);
      });
  return k - start;
}

// Adds a pass and the bytes of its results to the statistics.
void count_pass(executor& on, std::uint64_t written_bytes) {
  auto& count = parallel::state_of(on).count;
  count.pass();
  count.written(written_bytes);
}

// Stores the coordinates of all true elements.
void store_chosen(const selection& chosen, const coordinate_columns& to, executor& on) {
  chosen.for_each_slab([&](const region& box, const counted_mask& part, index_t before) {
    const auto store_block = [&](index_t first, index_t end, index_t start, index_t found) {
      return store_coordinates(to, box, part, first, end, before + start, found);
    };
    part.for_each_block(static_cast<std::uint64_t>(element_count(box.shape)), store_block);
  });
  count_pass(on, to.axes.size() * static_cast<std::size_t>(chosen.count()) * sizeof(std::int64_t));
}

// The same in the columns that `columns_for(count)` returns.
template <class Columns>
void find_true(const expr& a, executor& on, const Columns& columns_for) {
  const selection chosen(a, 0, on);
  store_chosen(chosen, columns_for(chosen.count()), on);
}

// A tensor for each of `axes` coordinates of `count` elements.
std::vector<tensor> coordinate_tensors(index_t axes, index_t count, executor& on) {
  std::vector<tensor> coordinates;
  for (index_t axis = 0; axis < axes; ++axis)
    coordinates.push_back(tensor::empty({count}, dtype::int64, &on.pool()));
  return coordinates;
}

coordinate_columns columns_of(const std::vector<tensor>& coordinates) {
  coordinate_columns columns{{}, 1};
  for (const tensor& along : coordinates)
    columns.axes.push_back(along.elements<std::int64_t>().data());
  return columns;
}

// Whether `count` elements of `values` are selected by their coordinates. They are then read from
// the tiles that they lie in. This requires that the coordinates take no more memory than the slabs
// of a selection, and no more than all values.
bool is_selected_by_coordinates(const expr& values, index_t count, const executor& on) {
  if (values.rank() == 0 || count == 0 || !is_read_from_tiles(values, count)) return false;
  const auto bytes = static_cast<std::uint64_t>(count) * sizeof(std::int64_t) *
                     static_cast<std::uint64_t>(values.rank());
  return bytes <= on.memory_bytes() / 4 &&
         bytes <= static_cast<std::uint64_t>(values.size()) * item_bytes(values.dtype());
}

tensor selected_by_coordinates(const expr& values, const selection& chosen, executor& on) {
  const std::vector<tensor> coordinates = coordinate_tensors(values.rank(), chosen.count(), on);
  store_chosen(chosen, columns_of(coordinates), on);
  std::vector<detail::position_of_axis> axes;
  for (index_t axis = 0; axis < values.rank(); ++axis) axes.push_back({.index = axis});
  return eval(indexed(values, {chosen.count()}, std::move(axes),
                      std::vector<expr>(coordinates.begin(), coordinates.end())));
}

}  // namespace

tensor masked_select(const expr& a, const expr& mask) {
  return allocating([&] {
    executor& on = executor::current();
    const dims shape = broadcast_shapes(a.shape(), mask.shape());
    const std::size_t item = item_bytes(a.dtype());
    const selection chosen(mask.broadcast_to(shape), item, on);
    if (is_selected_by_coordinates(a.broadcast_to(shape), chosen.count(), on))
      return selected_by_coordinates(a.broadcast_to(shape), chosen, on);
    const expr values = chosen.cut_with_mask(a.broadcast_to(shape));
    const tensor out = tensor::empty({chosen.count()}, a.dtype(), &on.pool());
    const select_function select = select_by_width(item);
    chosen.for_each_slab([&](const region& box, const counted_mask& part, index_t before) {
      const tensor from = chosen.held(part_of(values, box));
      const auto select_block = [&](index_t first, index_t end, index_t start, index_t found) {
        const auto at = [item](index_t elements) { return elements * static_cast<index_t>(item); };
        return select(out.data() + at(before + start), from.data() + at(first),
                      part.elements() + first, end - first, found);
      };
      part.for_each_block(from.size_bytes(), select_block);
      from.storage().check();
      parallel::state_of(on).count.read(from.size_bytes());
    });
    count_pass(on, out.size_bytes());
    return out;
  });
}

std::vector<tensor> nonzero(const expr& a) {
  return allocating([&] {
    if (a.rank() == 0)
      throw error(errc::invalid_argument, "nonzero needs at least one axis",
                  {"got a value of rank 0: reshape it to [1] first"});
    executor& on = executor::current();
    std::vector<tensor> coordinates;
    find_true(a, on, [&](index_t count) {
      coordinates = coordinate_tensors(a.rank(), count, on);
      return columns_of(coordinates);
    });
    return coordinates;
  });
}

tensor argwhere(const expr& a) {
  return allocating([&] {
    executor& on = executor::current();
    const auto empty = [&](index_t count) {
      return tensor::empty({count, a.rank()}, dtype::int64, &on.pool());
    };
    if (a.rank() == 0) return empty(eval(count_nonzero(a)).item().as<index_t>());
    tensor coordinates;
    find_true(a, on, [&](index_t count) {
      coordinates = empty(count);
      coordinate_columns columns{{}, a.rank()};
      std::int64_t* next = coordinates.elements<std::int64_t>().data();
      for (index_t axis = 0; axis < a.rank(); ++axis)
        columns.axes.push_back(count == 0 ? nullptr : next++);
      return columns;
    });
    return coordinates;
  });
}

expr masked_fill(const expr& a, const expr& mask, const expr& value) {
  return allocating([&] {
    const auto number = weak_number(value);
    const expr stored =
        number.has_value() ? full({}, *number, a.dtype()) : astype(value, a.dtype());
    return where(astype(mask, dtype::boolean), stored, a);
  });
}

void masked_scatter(const tensor& out, const expr& mask, const expr& values) {
  allocating([&] {
    if (out.rank() == 0) return masked_scatter(out.expand_dims(0), mask, values);
    executor& on = executor::current();
    parallel::require_output(out);
    const expr chosen = astype(mask, dtype::boolean).broadcast_to(out.shape());
    const counted_mask counted(held_operand(chosen, out).contiguous(), on);
    if (counted.count() > values.size())
      throw error(errc::invalid_argument, "masked_scatter needs a value for each true element",
                  {"got " + std::to_string(values.size()) + " values for " +
                   std::to_string(counted.count()) + " true elements"});
    const expr used = values.ravel().narrow(0, 0, counted.count());
    const tensor from = held_operand(astype(used, out.dtype()), out).contiguous();
    const std::array written{parallel::loop_operand{out, true}};
    const parallel::version_bumps bumps(written);
    const auto item = static_cast<index_t>(out.item_bytes());
    const index_t stride = out.stride(-1) * item;
    const auto store_block = [&](index_t first, index_t end, index_t start, index_t found) {
      const std::byte* next = from.data() + start * item;
      const std::byte* const stop = next + found * item;
      for_each_mask_row(region::all(out.shape()), counted.elements() + first, first, end,
                        [&](const dims& at, const std::byte* row, index_t length) {
                          std::byte* to = out.data();
                          for (index_t axis = 0; axis < at.size(); ++axis)
                            to += at[axis] * out.stride(axis) * item;
                          for (index_t i = 0; i < length && next != stop; ++i, to += stride) {
                            if (!is_true(row[i])) continue;
                            std::memcpy(to, next, static_cast<std::size_t>(item));
                            next += item;
                          }
                        });
      return found - (stop - next) / item;
    };
    counted.for_each_block(from.size_bytes(), store_block);
    from.storage().check();
    out.storage().check();
    parallel::state_of(on).count.read(from.size_bytes());
    count_pass(on, from.size_bytes());
  });
}

}  // namespace shale
