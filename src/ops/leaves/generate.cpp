#include "ops/leaves/generate.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "ops/kernels/dispatch/dispatch.hpp"
#include "ops/leaves/indexed_generator.hpp"
#include "ops/leaves/row_walk.hpp"
#include "ops/leaves/window_generator.hpp"

namespace shale::ops {

namespace {

using namespace detail;

template <class T>
class range_generator final : public leaf_generator {
 public:
  explicit range_generator(const range_leaf& leaf)
      : start_(leaf.start.as<T>()), step_(leaf.step.as<T>()), map_(*leaf.map) {}

  void fill(const index_t* start, std::byte* out, index_t inner, index_t outer) const override {
    const row_walk walk = begin_walk(map_, start);
    const index_t inner_step = walk.inner_axis == 0 ? walk.inner_step : 0;
    const index_t outer_step = walk.outer_axis == 0 ? walk.outer_step : 0;
    auto* to = reinterpret_cast<T*>(out);
    for (index_t row = 0; row < outer; ++row) {
      const index_t first = walk.index[0] + row * outer_step;
      for (index_t i = 0; i < inner; ++i) *to++ = value(first + i * inner_step);
    }
  }

 private:
  T value(index_t position) const {
    if constexpr (std::is_integral_v<T>) {
      // The product may overflow although the sum does not. Both are computed modulo 2^n, so the
      // sum is right.
      using Bits = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Bits>(start_) +
                            static_cast<Bits>(step_) * static_cast<Bits>(position));
    } else {
      return start_ + step_ * static_cast<T>(position);
    }
  }

  T start_;
  T step_;
  axis_map map_;
};

// Random numbers at the positions of a layout.
class random_generator final : public leaf_generator {
 public:
  random_generator(const random_leaf& leaf, dtype type)
      : kernel_(find_random_kernel(leaf.kind, type)),
        draw_(leaf.draw),
        first_(leaf.first + static_cast<std::uint64_t>(leaf.arrangement->offset())),
        strides_(leaf.arrangement->strides()),
        item_bytes_(item_bytes(type)) {}

  // Positions are computed modulo 2^64. Intermediate sums may wrap; the final position never does.
  void fill(const index_t* start, std::byte* out, index_t inner, index_t outer) const override {
    const index_t rank = strides_.size();
    std::uint64_t row = first_;  // the position of the first element
    for (index_t axis = 0; axis < rank; ++axis) row += step(strides_[axis]) * step(start[axis]);
    const index_t inner_stride = rank >= 1 ? strides_[rank - 1] : 0;
    const index_t outer_stride = rank >= 2 ? strides_[rank - 2] : 0;
    if (inner == 1 || inner_stride == 1 || inner_stride == -1) {
      const index_t direction = inner == 1 ? 1 : inner_stride;
      if (outer == 1 || outer_stride == direction * inner)
        return fill_run(row, direction, out, inner * outer);
      if (inner >= gathered_below) {
        const std::size_t row_bytes = static_cast<std::size_t>(inner) * item_bytes_;
        for (index_t k = 0; k < outer; ++k, row += step(outer_stride), out += row_bytes)
          fill_run(row, direction, out, inner);
        return;
      }
    }
    std::array<std::uint64_t, 256> positions;
    std::size_t held = 0;
    for (index_t k = 0; k < outer; ++k, row += step(outer_stride)) {
      std::uint64_t position = row;
      for (index_t i = 0; i < inner; ++i, position += step(inner_stride)) {
        positions[held++] = position;
        if (held == positions.size()) out = gather(positions.data(), std::exchange(held, 0), out);
      }
    }
    gather(positions.data(), held, out);
  }

 private:
  // Rows with fewer elements are gathered together, although each of them is a run.
  static constexpr index_t gathered_below = 16;

  static std::uint64_t step(index_t distance) noexcept {
    return static_cast<std::uint64_t>(distance);
  }

  // The elements at `count` positions from `first` on, upwards (1) or downwards (-1).
  void fill_run(std::uint64_t first, index_t direction, std::byte* out, index_t count) const {
    if (direction == 1) return kernel_.run(draw_, first, count, out);
    kernel_.run(draw_, first - step(count - 1), count, out);
    switch (item_bytes_) {
      case 1:
        return reverse<std::uint8_t>(out, count);
      case 4:
        return reverse<std::uint32_t>(out, count);
      default:
        return reverse<std::uint64_t>(out, count);
    }
  }

  template <class Bits>
  static void reverse(std::byte* elements, index_t count) {
    auto* first = reinterpret_cast<Bits*>(elements);
    std::reverse(first, first + count);
  }

  // Returns the end of what it wrote.
  std::byte* gather(const std::uint64_t* positions, std::size_t count, std::byte* out) const {
    kernel_.gather(draw_, positions, static_cast<std::int64_t>(count), out);
    return out + count * item_bytes_;
  }

  random_kernel kernel_;
  random_draw draw_;
  std::uint64_t first_;
  dims strides_;
  std::size_t item_bytes_;
};

template <std::size_t item>
class repeated_generator final : public leaf_generator {
 public:
  repeated_generator(const repeated_leaf& leaf, const tensor& input)
      : map_(*leaf.map), modulus_(leaf.modulus), divisor_(leaf.divisor), input_(input) {}

  void fill(const index_t* start, std::byte* out, index_t inner, index_t outer) const override {
    row_walk walk = begin_walk(map_, start);
    for (index_t row = 0; row < outer; ++row) {
      const std::byte* base = input_.first();
      for (index_t axis = 0; axis < walk.index.size(); ++axis)
        if (axis != walk.inner_axis) base += position(axis, walk.index[axis]) * input_.stride(axis);
      fill_row(walk, base, out, inner);
      if (walk.outer_axis >= 0) walk.index[walk.outer_axis] += walk.outer_step;
    }
  }

 private:
  index_t position(index_t axis, index_t count) const noexcept {
    return modulus_[axis] > 0 ? count % modulus_[axis] : count / divisor_[axis];
  }

  void fill_row(const row_walk& walk, const std::byte* base, std::byte*& out, index_t inner) const {
    const index_t axis = walk.inner_axis;
    if (axis < 0) return copy_run<item>(out, base, inner, 0);
    const index_t stride = input_.stride(axis);
    index_t index = walk.index[axis];
    const index_t modulus = modulus_[axis];
    if (modulus > 0 && walk.inner_step == 1) {
      // Copy whole runs, each up to the end of one repetition.
      for (index_t left = inner; left > 0;) {
        const index_t first = index % modulus;
        const index_t run = std::min(left, modulus - first);
        copy_run<item>(out, base + first * stride, run, stride);
        index += run;
        left -= run;
      }
      return;
    }
    if (modulus == 0 && divisor_[axis] == 1)
      return copy_run<item>(out, base + index * stride, inner, walk.inner_step * stride);
    for (index_t i = 0; i < inner; ++i, index += walk.inner_step)
      copy_run<item>(out, base + position(axis, index) * stride, 1, item);
  }

  axis_map map_;
  dims modulus_;
  dims divisor_;
  element_address input_;
};

template <std::size_t item>
class concat_generator final : public leaf_generator {
 public:
  concat_generator(const concat_leaf& leaf, const std::vector<tensor>& inputs)
      : map_(*leaf.map), axis_(leaf.axis), starts_(leaf.starts) {
    for (const auto& input : inputs) pieces_.emplace_back(input);
  }

  void fill(const index_t* start, std::byte* out, index_t inner, index_t outer) const override {
    row_walk walk = begin_walk(map_, start);
    for (index_t row = 0; row < outer; ++row) {
      dims index = walk.index;
      for (index_t left = inner; left > 0;) {
        const std::size_t piece = piece_of(index[axis_]);
        const element_address& values = pieces_[piece];
        const std::byte* first = values.first() - starts_[piece] * values.stride(axis_);
        for (index_t axis = 0; axis < index.size(); ++axis)
          first += index[axis] * values.stride(axis);
        index_t run = left;
        index_t stride = 0;
        if (walk.inner_axis >= 0) {
          stride = values.stride(walk.inner_axis) * walk.inner_step;
          if (walk.inner_axis == axis_)
            run = std::min(run, steps_inside(piece, index[axis_], walk));
          index[walk.inner_axis] += run * walk.inner_step;
        }
        copy_run<item>(out, first, run, stride);
        left -= run;
      }
      if (walk.outer_axis >= 0) walk.index[walk.outer_axis] += walk.outer_step;
    }
  }

 private:
  std::size_t piece_of(index_t position) const {
    return static_cast<std::size_t>(
        std::upper_bound(starts_.begin() + 1, starts_.end() - 1, position) - starts_.begin() - 1);
  }

  // The number of elements of the row from `position` on that lie inside the piece.
  index_t steps_inside(std::size_t piece, index_t position, const row_walk& walk) const {
    return walk.inner_step > 0 ? ceil_div(starts_[piece + 1] - position, walk.inner_step)
                               : (position - starts_[piece]) / -walk.inner_step + 1;
  }

  axis_map map_;
  index_t axis_;
  std::vector<index_t> starts_;
  std::vector<element_address> pieces_;
};

}  // namespace

std::unique_ptr<leaf_generator> make_generator(const node& leaf, std::vector<tensor> inputs) {
  if (const auto* range = std::get_if<range_leaf>(&leaf.content)) {
    if (leaf.type == dtype::int64) return std::make_unique<range_generator<std::int64_t>>(*range);
    return std::make_unique<range_generator<double>>(*range);
  }
  if (const auto* random = std::get_if<random_leaf>(&leaf.content))
    return std::make_unique<random_generator>(*random, leaf.type);
  const std::size_t width = item_bytes(leaf.type);
  if (const auto* repeated = std::get_if<repeated_leaf>(&leaf.content))
    return by_width<repeated_generator>(width, *repeated, inputs[0]);
  if (const auto* concat = std::get_if<concat_leaf>(&leaf.content))
    return by_width<concat_generator>(width, *concat, inputs);
  if (const auto* indexed = std::get_if<indexed_leaf>(&leaf.content))
    return make_indexed_generator(*indexed, inputs);
  if (const auto* window = std::get_if<window_leaf>(&leaf.content))
    return make_window_generator(*window, inputs[0], inputs[1], leaf.type);
  return nullptr;
}

}  // namespace shale::ops
