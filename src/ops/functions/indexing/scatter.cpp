#include "shale/scatter.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/allocating.hpp"
#include "core/grid.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/leaves/indices.hpp"
#include "ops/leaves/row_walk.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/operands/bytes_read_once.hpp"
#include "parallel/operands/changing_operand.hpp"
#include "parallel/operands/loop_operand.hpp"
#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/reductions.hpp"
#include "tensor/parts.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

// A *lane* is a line of elements along the axis of the call. Lanes are numbered by the other axes:
// the *column* of a lane is its position along the last of them, and its *row* is given by all the
// others. A *piece* is up to 1,024 neighbouring columns. A *target* is a position along the axis of
// the output, and a *part* is a range of targets.

enum class scatter_kind : std::uint8_t { store, add };

// The number of neighbouring columns that one thread works through together, so that it adds rows
// of a matrix as rows.
constexpr index_t unit_columns = 1024;

// The least number of indices in a lane that several threads share.
constexpr index_t shared_lane_min = index_t{1} << 15;

// The number of stores after which a thread looks for a cancellation.
constexpr index_t stores_between_looks = index_t{1} << 16;

// The part of a scatter that one thread does: some columns of one row of lanes, all indices along
// them in order, and the targets from `first` up to `end`.
struct scatter_unit {
  std::byte* out;            // of the first column, at position 0 of the axis
  const std::byte* indices;  // of the first column and index
  const std::byte* values;
  index_t columns;
  index_t first;
  index_t end;
};

// What units have in common: the number of indices along the axis, and the strides in bytes along
// the axis and along the columns.
struct scatter_shape {
  index_t count;
  index_t extent;  // of the output along the axis
  struct strides {
    index_t axis;
    index_t column;
  };
  strides out, indices, values;
};

// Whether a target belongs to the unit. The indices were checked before, but they were not copied,
// so they may have changed.
// Throws   io if an index is out of range now
bool is_own(index_t target, const scatter_unit& unit, index_t extent) {
  if (target >= unit.first && target < unit.end) return true;
  if (target < 0 || target >= extent) parallel::throw_changed("indices");
  return false;
}

template <class T>
void store_at(std::byte* to, const std::byte* from) {
  std::memcpy(to, from, sizeof(T));
}

template <class T>
void add_at(std::byte* to, const std::byte* from) {
  // A bool may be stored as any byte. As a C++ bool, most of these bytes would be invalid.
  using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
  Element a, b;
  std::memcpy(&a, to, sizeof(T));
  std::memcpy(&b, from, sizeof(T));
  if constexpr (std::is_same_v<T, bool>) {
    a = static_cast<Element>((a | b) != 0);
  } else if constexpr (std::is_integral_v<T>) {
    using Bits = std::make_unsigned_t<T>;
    a = static_cast<T>(static_cast<Bits>(static_cast<Bits>(a) + static_cast<Bits>(b)));
  } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    a = T(static_cast<float>(a) + static_cast<float>(b));
  } else {
    a += b;
  }
  std::memcpy(to, &a, sizeof(T));
}

// Works through the indices from `begin` up to `end`.
template <void (*combine)(std::byte*, const std::byte*)>
void run_unit(const scatter_unit& unit, const scatter_shape& shape, index_t begin, index_t end) {
  for (index_t k = begin; k < end; ++k) {
    const std::byte* index = unit.indices + k * shape.indices.axis;
    const std::byte* value = unit.values + k * shape.values.axis;
    if (shape.indices.column == 0) {
      const index_t target = position_from_start(index_at(index), shape.extent);
      if (!is_own(target, unit, shape.extent)) continue;
      std::byte* to = unit.out + target * shape.out.axis;
      for (index_t c = 0; c < unit.columns; ++c)
        combine(to + c * shape.out.column, value + c * shape.values.column);
      continue;
    }
    for (index_t c = 0; c < unit.columns; ++c) {
      const index_t target =
          position_from_start(index_at(index + c * shape.indices.column), shape.extent);
      if (!is_own(target, unit, shape.extent)) continue;
      combine(unit.out + target * shape.out.axis + c * shape.out.column,
              value + c * shape.values.column);
    }
  }
}

using unit_function = void (*)(const scatter_unit&, const scatter_shape&, index_t begin,
                               index_t end);

unit_function unit_for(scatter_kind kind, dtype type) {
  if (kind == scatter_kind::add && !computes(type))
    throw error(errc::invalid_argument, "scatter does not add in float8",
                {"got " + std::string(name(type)) + ": convert it to float32 first"});
  return visit(type, all_types{}, [&]<class T>(std::type_identity<T>) -> unit_function {
    if constexpr (!std::is_same_v<T, float8_e4m3fn> && !std::is_same_v<T, float8_e5m2>)
      if (kind == scatter_kind::add) return run_unit<add_at<T>>;
    return run_unit<store_at<T>>;
  });
}

void require_in_range(const tensor& positions, index_t axis, index_t extent) {
  if (positions.size() == 0) return;
  const expr distinct(detail::without_repeats(positions));
  const expr extrema[] = {min(distinct), max(distinct)};
  for (const tensor& extremum : eval_all(extrema)) {
    const auto index = extremum.item().as<index_t>();
    if (index >= extent || index < -extent) throw_index_out_of_range(index, axis, extent);
  }
}

// Refuses values of a shape that does not fit, before they are computed.
void require_broadcast(const dims& values, const dims& shape) {
  const index_t more = shape.size() - values.size();
  bool fits = more >= 0;
  for (index_t axis = 0; fits && axis < values.size(); ++axis)
    fits = values[axis] == 1 || values[axis] == shape[more + axis];
  if (!fits)
    throw error(errc::invalid_argument, "values cannot be broadcast to where they are stored",
                {"got shape " + to_string(values) + ", wanted " + to_string(shape)});
}

// The lanes of a scatter, and how they are shared out. Units are numbered by row, piece and part.
class scatter_lanes {
 public:
  // The scatter goes over `shape`, along `axis` of `out`. All elements lie in memory.
  scatter_lanes(const tensor& out, index_t axis, const dims& shape, const tensor& indices,
                const tensor& values, int threads)
      : out_(out), indices_(indices), values_(values), rows_(shape), extent_(out.shape(axis)) {
    // The columns lie along the last other axis. All further axes are the rows of lanes.
    index_t column = -1;
    for (index_t k = 0; k < shape.size(); ++k)
      if (k != axis && shape[k] > 1) column = k;
    rows_[axis] = 1;
    if (column >= 0) columns_ = std::exchange(rows_[column], 1);
    const auto strides_of = [&](const element_address& of) {
      return scatter_shape::strides{of.stride(axis), column < 0 ? 0 : of.stride(column)};
    };
    shape_ = {shape[axis], extent_, strides_of(out_), strides_of(indices_), strides_of(values_)};
    pieces_ = ceil_div(columns_, unit_columns);
    // If there are fewer units than threads, each long lane is divided: several threads read all
    // its indices, and each stores only its own range of targets. So the values of one target are
    // still stored in the order of their indices.
    const index_t whole_units = element_count(rows_) * pieces_;
    if (whole_units < threads && shape[axis] >= shared_lane_min)
      parts_ = std::min(ceil_div<index_t>(threads, whole_units), extent_);
  }

  const scatter_shape& shape() const noexcept { return shape_; }
  index_t units() const { return element_count(rows_) * pieces_ * parts_; }

  scatter_unit unit(index_t number, std::byte* out) const {
    const index_t part = number % parts_;
    const index_t begin = number / parts_ % pieces_ * unit_columns;
    const dims row = detail::unravel(number / parts_ / pieces_, rows_);
    scatter_unit made{out + begin * shape_.out.column,
                      indices_.first() + begin * shape_.indices.column,
                      values_.first() + begin * shape_.values.column,
                      std::min(unit_columns, columns_ - begin),
                      extent_ * part / parts_,
                      extent_ * (part + 1) / parts_};
    for (index_t k = 0; k < row.size(); ++k) {
      made.out += row[k] * out_.stride(k);
      made.indices += row[k] * indices_.stride(k);
      made.values += row[k] * values_.stride(k);
    }
    return made;
  }

 private:
  element_address out_, indices_, values_;
  dims rows_;
  index_t extent_;
  index_t columns_ = 1;
  index_t pieces_ = 1;
  index_t parts_ = 1;
  scatter_shape shape_{};
};

// Scatters over `shape`, which is no longer than `out` along the axes other than `axis`. Indices
// and values are evaluated in their own shapes, and broadcast afterwards.
void scatter_checked(scatter_kind kind, const tensor& out, index_t axis, const dims& shape,
                     const expr& indices, const expr& values) {
  executor& on = executor::current();
  const unit_function run = unit_for(kind, out.dtype());
  require_broadcast(values.shape(), shape);
  parallel::require_output(out);
  const tensor index_elements = held_operand(indices, out).broadcast_to(shape);
  require_in_range(index_elements, axis, out.shape(axis));
  const tensor value_elements = held_operand(astype(values, out.dtype()), out).broadcast_to(shape);
  parallel::state_of(on).count.pass();
  if (element_count(shape) == 0) return;
  const scatter_lanes lanes(out, axis, shape, index_elements, value_elements, on.threads());
  const std::array written{parallel::loop_operand{out, true}};
  const parallel::version_bumps bumps(written);
  const auto stored_bytes = static_cast<std::uint64_t>(element_count(shape)) * out.item_bytes();
  auto work = [&](index_t number, int) {
    const scatter_unit unit = lanes.unit(number, out.data());
    const index_t count = lanes.shape().count;
    const index_t step = std::max<index_t>(stores_between_looks / unit.columns, 1);
    for (index_t done = 0; done < count; done += step) {
      parallel::require_not_cancelled(on);
      run(unit, lanes.shape(), done, std::min(done + step, count));
    }
  };
  parallel::parallel_for_tiles(on, lanes.units(), work, {.progress_bytes = stored_bytes});
  for (const tensor* used : {&index_elements, &value_elements, &out}) used->storage().check();
  auto& counted = parallel::state_of(on).count;
  counted.read(parallel::distinct_bytes(index_elements) + parallel::distinct_bytes(value_elements));
  counted.written(stored_bytes);
}

void scatter_along(scatter_kind kind, const tensor& out, index_t axis, const expr& indices,
                   const expr& values, const char* function) {
  allocating([&] {
    const index_t along = normalize_axis(axis, out.rank());
    const dims& shape = indices.shape();
    require_not_longer(shape, out.shape(), along, function, "output");
    scatter_checked(kind, out, along, shape, as_positions(indices, function), values);
  });
}

// Scatters whole slices: every lane has the same indices.
void scatter_slices(scatter_kind kind, const tensor& out, index_t axis, const expr& indices,
                    const expr& values, const char* function) {
  allocating([&] {
    const index_t along = normalize_axis(axis, out.rank());
    if (indices.rank() != 1)
      throw error(errc::invalid_argument, std::string(function) + " needs indices with one axis",
                  {"got shape " + to_string(indices.shape())});
    dims shape = out.shape();
    shape[along] = indices.size();
    expr positions = as_positions(indices, function);
    for (index_t k = along + 1; k < out.rank(); ++k)
      positions = positions.expand_dims(positions.rank());
    scatter_checked(kind, out, along, shape, positions, values);
  });
}

}  // namespace

void scatter(const tensor& out, index_t axis, const expr& indices, const expr& values) {
  scatter_along(scatter_kind::store, out, axis, indices, values, "scatter");
}

void scatter_add(const tensor& out, index_t axis, const expr& indices, const expr& values) {
  scatter_along(scatter_kind::add, out, axis, indices, values, "scatter_add");
}

void index_copy(const tensor& out, index_t axis, const expr& indices, const expr& values) {
  scatter_slices(scatter_kind::store, out, axis, indices, values, "index_copy");
}

void index_add(const tensor& out, index_t axis, const expr& indices, const expr& values) {
  scatter_slices(scatter_kind::add, out, axis, indices, values, "index_add");
}

void index_fill(const tensor& out, index_t axis, const expr& indices, const scalar& value) {
  scatter_slices(scatter_kind::store, out, axis, indices, full({}, value, out.dtype()),
                 "index_fill");
}

void put(const tensor& out, const expr& indices, const expr& values) {
  allocating([&] {
    const expr all_values = values.broadcast_to(indices.shape());
    const expr flat_values = values.size() == 1 ? values.reshape({1}) : all_values.ravel();
    const expr flat_indices = indices.ravel();
    if (const auto flat = out.layout().view({-1}))
      return scatter(tensor(out.storage(), out.dtype(), *flat), 0, flat_indices, flat_values);
    parallel::require_output(out);
    const tensor copy = out.clone();
    scatter(copy.view({-1}), 0, flat_indices, flat_values);
    eval_into(out, copy);
  });
}

}  // namespace shale
