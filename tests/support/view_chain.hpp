// Random chains of views. A step is drawn so that it fits a shape. It can be applied to a layout
// (or a tensor) and to the index oracle, and written as a line that other programs replay.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "shale/layout.hpp"
#include "support/index_oracle.hpp"

namespace shale::test {

/// An operation and its numbers. Axes may be negative. `slice` has (axis, start given?, start, stop
/// given?, stop, step), `as_strided` has (rank, shape, strides, offset).
struct view_step {
  std::string operation;
  index_list numbers;

  std::string line() const {
    std::ostringstream text;
    text << operation;
    for (const auto number : numbers) text << ' ' << number;
    return text.str();
  }
};

/// Limits for steps: `storage_positions` limits as_strided, `elements_max` limits the growth by
/// expand and unfold.
struct chain_limits {
  std::int64_t storage_positions;
  std::int64_t elements_max = 2000;
  std::size_t axes_max = 6;
};

namespace chain_detail {

template <class Choose>
std::int64_t some_axis(Choose& choose, std::int64_t rank) {
  return choose(-rank, rank - 1);
}

/// Factors of `count` in random order, with some ones; one factor may be replaced by -1.
template <class Choose>
index_list some_shape_of(Choose& choose, std::int64_t count, std::size_t axes_max) {
  index_list shape;
  if (count == 0) {
    shape = {choose(0, 3), 0};
    if (choose(0, 1) == 1) shape.push_back(choose(1, 4));
    return shape;
  }
  std::int64_t rest = count;
  for (std::int64_t factor = 2; rest > 1 && shape.size() + 1 < axes_max;) {
    if (rest % factor != 0) {
      ++factor;
      continue;
    }
    rest /= factor;
    // The factor becomes a new axis or multiplies an existing one.
    if (shape.empty() || choose(0, 1) == 0)
      shape.insert(shape.begin() + choose(0, static_cast<std::int64_t>(shape.size())), factor);
    else
      shape[static_cast<std::size_t>(choose(0, static_cast<std::int64_t>(shape.size()) - 1))] *=
          factor;
  }
  if (rest > 1) shape.push_back(rest);
  if (shape.size() < axes_max && choose(0, 3) == 0)
    shape.insert(shape.begin() + choose(0, static_cast<std::int64_t>(shape.size())), 1);
  if (!shape.empty() && choose(0, 3) == 0)
    shape[static_cast<std::size_t>(choose(0, static_cast<std::int64_t>(shape.size()) - 1))] = -1;
  return shape;
}

}  // namespace chain_detail

/// A step that fits a view of `shape`. A `view` step has the right number of elements, but strides
/// may not be able to express it.
template <class Choose>
view_step random_step(Choose&& choose, const index_list& shape, const chain_limits& limits) {
  using chain_detail::some_axis;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto extent = [&](std::int64_t axis) {
    return shape[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
  };
  const std::int64_t count = product(shape);
  for (;;) {
    switch (choose(0, 16)) {
      case 0: {
        if (rank == 0) break;
        const auto axis = some_axis(choose, rank);
        const auto start = choose(0, extent(axis));
        // Whole axes are likely, so that chains do not become empty soon.
        const auto length =
            choose(0, 2) == 0 ? choose(0, extent(axis) - start) : extent(axis) - start;
        return {"narrow", {axis, start, length}};
      }
      case 1: {
        if (rank == 0) break;
        const auto axis = some_axis(choose, rank);
        if (extent(axis) == 0) break;
        return {"select", {axis, choose(-extent(axis), extent(axis) - 1)}};
      }
      case 2:
      case 3: {
        if (rank == 0) break;
        const auto axis = some_axis(choose, rank);
        const auto n = extent(axis);
        auto step = choose(-3, 3);
        if (step == 0) step = choose(0, 1) == 0 ? -1 : 7;
        return {"slice",
                {axis, choose(0, 1), choose(-n - 2, n + 2), choose(0, 3) == 0,
                 choose(-n - 2, n + 2), step}};
      }
      case 4:
        if (rank == 0) break;
        return {"transpose", {some_axis(choose, rank), some_axis(choose, rank)}};
      case 5: {
        index_list axes;
        for (std::int64_t axis = 0; axis < rank; ++axis)
          axes.insert(axes.begin() + choose(0, axis), choose(0, 3) == 0 ? axis - rank : axis);
        return {"permute_dims", axes};
      }
      case 6:
        if (rank == 0) break;
        return {"moveaxis", {some_axis(choose, rank), some_axis(choose, rank)}};
      case 7:
        if (choose(0, 2) != 0) break;
        return {"squeeze_all", {}};
      case 8: {
        index_list axes;
        for (std::int64_t axis = 0; axis < rank; ++axis)
          if (extent(axis) == 1 && choose(0, 2) != 0)
            axes.insert(axes.begin() + choose(0, static_cast<std::int64_t>(axes.size())),
                        choose(0, 1) == 0 ? axis : axis - rank);
        if (axes.empty()) break;
        return {"squeeze", axes};
      }
      case 9:
        if (shape.size() >= limits.axes_max) break;
        return {"unsqueeze", {choose(-rank - 1, rank)}};
      case 10: {
        index_list wanted;
        if (shape.size() < limits.axes_max && choose(0, 2) == 0) wanted.push_back(choose(1, 3));
        for (const auto n : shape)
          wanted.push_back(n == 1 && choose(0, 1) == 0 ? choose(0, 8) == 0 ? 0 : choose(1, 4)
                           : choose(0, 2) == 0 ? -1
                                                       : n);
        std::int64_t elements = 1;
        for (std::size_t axis = 0; axis < wanted.size(); ++axis)
          elements *=
              wanted[axis] == -1 ? shape[axis + shape.size() - wanted.size()] : wanted[axis];
        if (elements > limits.elements_max) break;
        return {"expand", wanted};
      }
      case 11: {
        if (rank == 0 || shape.size() >= limits.axes_max) break;
        const auto axis = some_axis(choose, rank);
        if (extent(axis) == 0) break;
        const auto size = choose(0, 15) == 0 ? 0 : choose(1, extent(axis)), step = choose(1, 3);
        if (count / extent(axis) * ((extent(axis) - size) / step + 1) * size > limits.elements_max)
          break;
        return {"unfold", {axis, size, step}};
      }
      case 12:
      case 13:
        return {"view", chain_detail::some_shape_of(choose, count, limits.axes_max)};
      case 14: {
        if (rank < 2) break;
        const auto a = some_axis(choose, rank), b = some_axis(choose, rank);
        if ((a + rank) % rank == (b + rank) % rank) break;
        return {"diagonal", {choose(-extent(a), extent(b)), a, b}};
      }
      case 15: {
        index_list axes;
        for (std::int64_t axis = 0; axis < rank; ++axis)
          if (choose(0, 1) == 0) axes.push_back(choose(0, 1) == 0 ? axis : axis - rank);
        return {"flip", axes};
      }
      case 16: {
        if (choose(0, 3) != 0) break;
        const auto new_rank = choose(0, 3);
        index_list numbers{new_rank}, strides;
        std::int64_t lowest = 0, highest = 0;
        for (std::int64_t axis = 0; axis < new_rank; ++axis) {
          numbers.push_back(choose(1, 5));
          strides.push_back(choose(-7, 7));
          (strides.back() < 0 ? lowest : highest) += (numbers.back() - 1) * strides.back();
        }
        if (highest - lowest >= limits.storage_positions) break;
        numbers.insert(numbers.end(), strides.begin(), strides.end());
        numbers.push_back(choose(-lowest, limits.storage_positions - 1 - highest));
        return {"as_strided", numbers};
      }
    }
  }
}

inline dims to_dims(const index_list& values) {
  return dims(std::span<const index_t>(values.data(), values.size()));
}

inline index_list to_list(const dims& values) { return {values.begin(), values.end()}; }

namespace chain_detail {
struct strided_arguments {
  index_list shape, strides;
  std::int64_t offset;
};
inline strided_arguments parse_strided(const index_list& numbers) {
  const auto middle = numbers.begin() + 1 + numbers.front();
  return {{numbers.begin() + 1, middle}, {middle, numbers.end() - 1}, numbers.back()};
}
}  // namespace chain_detail

/// Applies a step; nothing if it is a `view` that strides cannot express. `View` is a layout or a
/// tensor. The operations that differ between the two are parameters: `try_view(view, shape)` and
/// `as_strided(view, shape, strides, offset)`.
template <class View, class TryView, class AsStrided>
std::optional<View> apply_step(const View& to, const view_step& step, TryView&& try_view,
                               AsStrided&& as_strided) {
  const auto& operation = step.operation;
  const auto& n = step.numbers;
  if (operation == "narrow") return to.narrow(n[0], n[1], n[2]);
  if (operation == "select") return to.select(n[0], n[1]);
  if (operation == "slice") {
    slice range{.step = n[5]};
    if (n[1] != 0) range.start = n[2];
    if (n[3] != 0) range.stop = n[4];
    return to.sliced(n[0], range);
  }
  if (operation == "transpose") return to.swapaxes(n[0], n[1]);
  if (operation == "permute_dims") return to.permute_dims(to_dims(n));
  if (operation == "moveaxis") return to.moveaxis(n[0], n[1]);
  if (operation == "squeeze_all") return to.squeeze();
  if (operation == "squeeze") return to.squeeze(to_dims(n));
  if (operation == "unsqueeze") return to.expand_dims(n[0]);
  if (operation == "expand") return to.broadcast_to(to_dims(n));
  if (operation == "unfold") return to.unfold(n[0], n[1], n[2]);
  if (operation == "view") return try_view(to, to_dims(n));
  if (operation == "diagonal") return to.diagonal(n[0], n[1], n[2]);
  if (operation == "flip") return to.flip(to_dims(n));
  const auto arguments = chain_detail::parse_strided(n);
  return as_strided(to, to_dims(arguments.shape), to_dims(arguments.strides), arguments.offset);
}

inline std::optional<layout> apply_step(const layout& to, const view_step& step) {
  return apply_step(
      to, step, [](const layout& source, const dims& shape) { return source.view(shape); },
      [](const layout&, const dims& shape, const dims& strides, index_t offset) {
        return layout(shape, strides, offset);
      });
}

/// The oracle's result: a `view` succeeds exactly if strides exist that give the position of every
/// element.
inline std::optional<index_oracle> apply_step(const index_oracle& to, const view_step& step) {
  const auto& operation = step.operation;
  const auto& n = step.numbers;
  if (operation == "narrow") return to.narrow(n[0], n[1], n[2]);
  if (operation == "select") return to.select(n[0], n[1]);
  if (operation == "slice") {
    const auto start = n[1] != 0 ? std::optional(n[2]) : std::nullopt;
    const auto stop = n[3] != 0 ? std::optional(n[4]) : std::nullopt;
    return to.sliced(n[0], start, stop, n[5]);
  }
  if (operation == "transpose") return to.swapaxes(n[0], n[1]);
  if (operation == "permute_dims") return to.permuted(n);
  if (operation == "moveaxis") return to.moveaxis(n[0], n[1]);
  if (operation == "squeeze_all") return to.squeeze();
  if (operation == "squeeze") return to.squeeze(n);
  if (operation == "unsqueeze") return to.expand_dims(n[0]);
  if (operation == "expand") return to.broadcast_to(n);
  if (operation == "unfold") return to.unfold(n[0], n[1], n[2]);
  if (operation == "diagonal") return to.diagonal(n[0], n[1], n[2]);
  if (operation == "flip") return to.flip(n);
  if (operation == "view") {
    index_list shape = n;
    for (auto& extent : shape)
      if (extent == -1) extent = product(to.shape) / -product(n);
    const auto viewed = to.reshaped(shape);
    return viewed.strides() ? std::optional(viewed) : std::nullopt;
  }
  const auto arguments = chain_detail::parse_strided(n);
  return index_oracle::strided(arguments.shape, arguments.strides, arguments.offset);
}

}  // namespace shale::test
