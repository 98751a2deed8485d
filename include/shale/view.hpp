// A typed view of fixed rank, for hand-written loops over elements.
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "shale/index.hpp"
#include "shale/storage.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A pointer with `Rank` extents and strides, like std::mdspan with a strided layout.
/// Cost     access takes one multiplication and addition per axis, and checks no bounds
/// Lifetime keeps the storage alive
template <class T, int Rank>
class view {
  static_assert(Rank >= 0 && Rank <= rank_max);

 public:
  /// A const type if the view can only be read.
  using element_type = T;

  /// `first` is the address of the element at index (0, …, 0). All elements lie inside `owner`;
  /// this is not checked. `tensor::as` makes views with checks.
  view(shale::storage owner, T* first, const std::array<index_t, Rank>& shape,
       const std::array<index_t, Rank>& strides) noexcept
      : first_(first), shape_(shape), strides_(strides), owner_(std::move(owner)) {}

  /// Moving copies, so a view that was moved from is still valid.
  view(const view&) noexcept = default;
  view& operator=(const view&) noexcept = default;

  /// A view of the same elements that can only be read.
  operator view<const T, Rank>() const noexcept requires(!std::is_const_v<T>) {
    return view<const T, Rank>(owner_, first_, shape_, strides_);
  }

  /// The number of axes, fixed by the type.
  static constexpr int rank() noexcept { return Rank; }

  /// The element at the given indices, each 0 <= i < shape(axis). Unchecked.
  template <class... Indices>
  requires(sizeof...(Indices) == Rank) T& operator()(Indices... indices) const noexcept {
    index_t position = 0;
    int axis = 0;
    ((position += static_cast<index_t>(indices) * strides_[axis++]), ...);
    return first_[position];
  }

  /// The element at index (0, …, 0).
  T* data() const noexcept { return first_; }

  /// The extent of `axis`, 0 <= axis < Rank. Unchecked.
  index_t shape(int axis) const noexcept { return shape_[axis]; }

  /// Elements between neighbours along `axis`.
  index_t stride(int axis) const noexcept { return strides_[axis]; }

 private:
  T* first_;
  std::array<index_t, Rank> shape_;
  std::array<index_t, Rank> strides_;
  shale::storage owner_;
};

}  // namespace shale
