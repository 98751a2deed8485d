// Runs your own code over tiles: strided blocks of tensors, of tile sources (chunked arrays) and of
// mapped files larger than memory. A tile may show a halo, the elements around it.
//
//   map_tiles(
//       [](tile_view<float> to, tile_view<const float> from) {
//         for (index_t i = 0; i < to.shape[0]; ++i)
//           for (index_t j = 0; j < to.shape[1]; ++j)
//             to(i, j) = (from(i - 1, j) + from(i + 1, j)) / 2;
//       },
//       out, with_halo(x, {.widths = {{1, 1}, {0, 0}}, .mode = halo_mode::edge}));
//
// Throws   the errors that map_tiles lists
//
// Functions read elements where they lie. Those of type `const bool` must therefore be bytes of 0 or 1,
// as for_each.hpp explains.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "shale/apply_operands.hpp"
#include "shale/halo.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace [[gnu::visibility("default")]] shale {

/// One tile of an operand, as a function sees it. Indices are relative to the tile: its own
/// elements begin at 0, and those of the halo have indices below 0 and from the extent on.
/// Lifetime the call of the function that gets it
template <class T>
struct tile_view {
  T* data = nullptr;  ///< the element at index (0, …, 0)
  dims shape;         ///< extents, without the halo; the same for all operands of a call
  dims strides;       ///< elements between neighbours; 0 where an operand is broadcast
  dims start;         ///< the tile's first index in the output; the same for all operands
  dims before;        ///< elements of the halo in front of the tile, by axis
  dims after;         ///< elements of the halo behind it

  /// The element at the given indices, as many as there are axes; -before <= i < shape + after.
  /// Unchecked.
  template <class... Indices>
  T& operator()(Indices... indices) const noexcept {
    index_t position = 0;
    [[maybe_unused]] index_t axis = 0;
    ((position += static_cast<index_t>(indices) * strides[axis++]), ...);
    return data[position];
  }

  /// The same for indices in a list, which are as many as there are axes.
  T& operator[](const dims& index) const noexcept {
    index_t position = 0;
    for (index_t axis = 0; axis < index.size(); ++axis) position += index[axis] * strides[axis];
    return data[position];
  }
};

namespace detail {
struct tile_operand_access;  // src/parallel/pass/map_tiles.cpp
}

/// An operand of map_tiles: a tensor or a tile source, and its halo.
/// Lifetime shares the tensor's storage, or the source
class tile_operand {
 public:
  /// A tensor of any layout, also of a mapped file.
  tile_operand(const tensor& values) : values_(values) {}

  /// A tile source, such as `array::tiles()`. It may be an output if it is not const, such as
  /// `writable_array::tiles()`.
  template <class Source>
  requires(std::is_base_of_v<tile_source, Source>) tile_operand(std::shared_ptr<Source> source)
      : source_(source) {
    if constexpr (!std::is_const_v<Source>) sink_ = std::move(source);
    is_tiled_ = true;
  }

 private:
  friend struct detail::tile_operand_access;

  tensor values_;
  std::shared_ptr<const tile_source> source_;
  std::shared_ptr<tile_source> sink_;
  bool is_tiled_ = false;
  halo_options around_;
};

/// The same operand with a halo around its tiles. This halo replaces one that the operand already
/// has. map_tiles checks whether it fits.
/// Throws   out_of_memory
tile_operand with_halo(const tile_operand& operand, const halo_options& around);

/// Options of map_tiles.
struct map_tiles_options {
  /// The extents of a tile; tiles at the ends of axes are cut. Empty: they are chosen by the shape,
  /// the halos and the tiles of sources, never by threads or memory. If an output is a tile source,
  /// each extent is a multiple of that of its tiles, or reaches the end of the axis.
  dims tile_shape = {};
};

namespace detail {

struct tile_argument {
  const tile_operand& operand;
  dtype type;
  bool written;
};

// What a function sees of one operand in one tile. Strides count elements.
struct tile_memory {
  std::byte* data;
  dims strides;
  dims before;
  dims after;
};

using tile_call = void (*)(void* context, const dims& start, const dims& shape,
                           const tile_memory* operands);

void run_map_tiles(std::span<const tile_argument> arguments, const map_tiles_options& options,
                   tile_call call, void* context);

template <class P>
struct tile_parameter;
template <class T>
struct tile_parameter<tile_view<T>> {
  using element = T;
};
template <class P>
using tile_element = typename tile_parameter<std::remove_cvref_t<P>>::element;

template <class Function, class... P, std::size_t... I>
void call_with_tiles(Function& function, std::tuple<P...>*, const dims& start, const dims& shape,
                     const tile_memory* operands, std::index_sequence<I...>) {
  function(tile_view<tile_element<P>>{reinterpret_cast<tile_element<P>*>(operands[I].data), shape,
                                      operands[I].strides, start, operands[I].before,
                                      operands[I].after}...);
}

// An operand as a call holds it. A copy of a tile_operand would need memory for its halo.
template <class Operand>
using held_operand =
    std::conditional_t<std::is_same_v<Operand, tile_operand>, const tile_operand&, tile_operand>;

template <class... P, class... Held, std::size_t... I>
std::array<tile_argument, sizeof...(P)> tile_arguments(std::tuple<P...>*,
                                                       const std::tuple<Held...>& operands,
                                                       std::index_sequence<I...>) {
  return {tile_argument{std::get<I>(operands), dtype_of<tile_element<P>>(),
                        !std::is_const_v<tile_element<P>>}...};
}

}  // namespace detail

/// Calls `function(tile_view<T>…)` once for each tile of the outputs, from several threads at once,
/// in no particular order. Operands whose parameter has a const element type are inputs, the others
/// are outputs. The function writes every element of its tiles of the outputs: an element that it
/// leaves out has no particular value afterwards. It may read an input up to its halo.
/// Shape    all outputs have one shape, to which inputs broadcast; an input's halo is in the axes
///          of that shape
/// Cost     one pass. Operands in memory are used where they lie, except tiles whose halo reaches
///          beyond an end: these are copied, unless the halo is clipped. If mapped operands exceed
///          half of the memory budget, tiles are copied with their halos from and to the files, and
///          the pages are released. Tiles of sources are decoded once, or again for a neighbour's
///          halo if the cache (a quarter of the budget) has no room for them. Threads work on as
///          many tiles at once as half of the budget holds, at least on one
/// Throws   invalid_argument (no output, shapes, dtypes, a null function or source, a halo of an
///          output, negative widths or another number of them, extents of 2^60 or more under a
///          halo, a value that the dtype cannot hold, a tile shape that does not fit, outputs that
///          are broadcast or overlap, outputs in tiles of different shapes, an input that shows an
///          output's own tiles with a halo or in another order); access_denied (an output is
///          read-only); out_of_memory (also if an input overlaps an output, with a halo or under
///          another layout, and its copy does not fit); unsupported (in a forked child, for a
///          writable mapping of the parent); io, corrupt, out_of_space (files); cancelled; and the
///          first exception of the function or of a source. Outputs may be partly written then
template <class Function, class... Operands>
requires(sizeof...(Operands) >= 1 && (std::is_convertible_v<const Operands&, tile_operand> &&
                                      ...)) void map_tiles(Function&& function,
                                                           const map_tiles_options& options,
                                                           const Operands&... operands) {
  using Parameters = typename decltype(detail::signature_of<Function>())::parameters;
  static_assert(std::tuple_size_v<Parameters> == sizeof...(Operands),
                "one operand for each parameter of the callable");
  static_assert(sizeof...(Operands) <= apply_operands_max, "map_tiles takes at most 8 operands");
  detail::require_callable(function);
  const std::tuple<detail::held_operand<Operands>...> all(operands...);
  constexpr auto numbers = std::index_sequence_for<Operands...>{};
  constexpr Parameters* parameters = nullptr;
  auto* callable = std::addressof(function);
  detail::run_map_tiles(
      detail::tile_arguments(parameters, all, numbers), options,
      [](void* context, const dims& start, const dims& shape, const detail::tile_memory* memory) {
        detail::call_with_tiles(**static_cast<decltype(callable)*>(context),
                                static_cast<Parameters*>(nullptr), start, shape, memory,
                                std::index_sequence_for<Operands...>{});
      },
      &callable);
}

/// The same with default options: map_tiles chooses the shape of the tiles.
template <class Function, class... Operands>
requires(sizeof...(Operands) >= 1 && (std::is_convertible_v<const Operands&, tile_operand> &&
                                      ...)) void map_tiles(Function&& function,
                                                           const Operands&... operands) {
  map_tiles(std::forward<Function>(function), map_tiles_options(), operands...);
}

}  // namespace shale
