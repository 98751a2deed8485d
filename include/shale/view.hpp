// A typed, fixed-rank view: the door for hand-written loops.
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "shale/index.hpp"
#include "shale/storage.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A pointer with `Rank` extents and strides, like std::mdspan with a strided layout.
/// Cost     access is one multiply-add an axis; no bounds check
/// Lifetime keeps the storage alive
template <class T, int Rank>
class view {
  static_assert(Rank >= 0 && Rank <= max_rank);

 public:
  /// Const for views to read.
  using element_type = T;

  /// `first` is the element at index (0, …, 0), inside `owner`; `tensor::as` checks that.
  view(shale::storage owner, T* first, const std::array<index_t, Rank>& shape,
       const std::array<index_t, Rank>& strides) noexcept
      : first_(first), shape_(shape), strides_(strides), owner_(std::move(owner)) {}

  /// A view to read from one to write.
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
