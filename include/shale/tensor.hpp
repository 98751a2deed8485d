// The tensor: a cheap handle to a dtype and a layout over a storage.
#pragma once

#include <span>
#include <vector>

#include "shale/dtype.hpp"
#include "shale/index_entry.hpp"
#include "shale/layout.hpp"
#include "shale/print.hpp"
#include "shale/scalar.hpp"
#include "shale/storage.hpp"
#include "shale/view.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A strided view of typed elements in a storage. Copying a tensor copies no element: both handles
/// see the same bytes; `clone` copies them.
/// Axes may be given from the back as negative numbers wherever an axis is expected.
/// Throws   invalid_argument from every view function whose arguments do not fit
/// Threads  a handle is a value; concurrent reads of elements are safe, writes the caller's affair
/// Lifetime keeps its storage alive
class tensor {
 public:
  /// Rank 1, no elements, float32.
  tensor();

  /// `which` over `bytes`, whose first byte is position 0. An empty layout touches no byte and fits
  /// any storage. A stride that no index follows becomes 1 where it counts more bytes than 2^62.
  /// Throws   invalid_argument if an element would lie outside the storage or be misaligned
  tensor(shale::storage bytes, shale::dtype type, const layout& which);

  /// Uninitialised, row-major, from `pool` (null: the default pool).
  /// Throws   out_of_memory, invalid_argument (negative extent, too many bytes)
  static tensor empty(const dims& shape, shale::dtype type, memory_pool* pool = nullptr);

  /// All bytes zero. Cost: one pass, or none where the system hands out zero pages.
  static tensor zeros(const dims& shape, shale::dtype type, memory_pool* pool = nullptr);

  /// Row-major over memory the caller keeps alive. Cost: O(1).
  template <class T>
  static tensor borrow(T* elements, const dims& shape);

  /// A copy of `values`: rank 1, or row-major over `shape`.
  /// Throws   invalid_argument unless `shape` has as many elements
  template <class T>
  static tensor of(std::initializer_list<T> values);
  template <class T>
  static tensor of(std::span<const T> values, const dims& shape);

  /// Of this handle's view. Strides and the offset count elements; axes may be negative.
  shale::dtype dtype() const noexcept { return dtype_; }
  const dims& shape() const noexcept { return layout_.shape(); }
  index_t shape(index_t axis) const;
  const dims& strides() const noexcept { return layout_.strides(); }
  index_t stride(index_t axis) const;
  index_t offset() const noexcept { return layout_.offset(); }
  index_t rank() const noexcept { return layout_.rank(); }

  /// Elements, counting broadcast ones each time they appear.
  index_t size() const noexcept { return layout_.size(); }

  /// Bytes of one element.
  std::size_t item_bytes() const noexcept { return shale::item_bytes(dtype_); }

  /// size() * item_bytes(): what a contiguous copy would take; of a broadcast tensor whose product
  /// does not fit, the largest size_t.
  std::size_t size_bytes() const noexcept;

  /// Whether the elements lie in row-major order without gaps; axes of length 1 do not matter.
  bool is_contiguous() const noexcept { return layout_.is_contiguous(); }

  /// Whether the storage takes stores. Broadcast axes refuse them all the same.
  bool writable() const noexcept { return storage_.writable(); }

  /// Shape, strides and offset as one value.
  const layout& geometry() const noexcept { return layout_; }

  /// The bytes under this tensor and every other view of them.
  const shale::storage& storage() const noexcept { return storage_; }
  shale::storage& storage() noexcept { return storage_; }

  /// The address of element (0, …, 0); of the storage when the tensor is empty, and null when that
  /// is empty too. Unchecked.
  std::byte* data() noexcept;
  const std::byte* data() const noexcept;

  /// Same storage, dtype and layout, and both writable or neither: the two handles are
  /// interchangeable.
  bool is_set_to(const tensor& other) const noexcept;

  // ---- typed access ----------------------------------------------------------------------------

  /// The typed door for loops: `as<float, 2>()(i, j)`, `as<const float, 2>()` to read.
  /// Throws   invalid_argument (dtype or rank differ; T not const and an axis is broadcast),
  ///          access_denied (T not const, storage read-only), io (the mapped file lost its bytes)
  template <class T, int Rank>
  shale::view<T, Rank> as() const;

  /// Contiguous elements as a span.
  /// Throws   as `as`, and invalid_argument unless is_contiguous()
  template <class T>
  std::span<T> elements() const;

  /// The one element of a tensor of size 1. Throws invalid_argument otherwise.
  scalar item() const;

  /// One element, bounds checked; negative indices count from the end. For debugging and tests:
  /// loops want `as`.
  scalar at(std::span<const index_t> index) const;
  scalar at(std::initializer_list<index_t> index) const {
    return at(std::span<const index_t>(index.begin(), index.size()));
  }

  /// Stores one element, converted.
  /// Throws   invalid_argument also when the dtype cannot hold the value or an axis is broadcast,
  ///          access_denied
  void set(std::span<const index_t> index, const scalar& value);
  void set(std::initializer_list<index_t> index, const scalar& value) {
    set(std::span<const index_t>(index.begin(), index.size()), value);
  }

  // ---- views: O(rank), share the storage; rules in layout.hpp ---------------------------------

  /// As the members of `layout` with these names, which say what each does.
  tensor narrow(index_t axis, index_t start, index_t length) const;
  tensor select(index_t axis, index_t index) const;
  tensor sliced(index_t axis, const shale::slice& which) const;

  /// NumPy's basic indexing: `x.index({2, slice{.step = -1}, ellipsis, newaxis})`. Axes that no
  /// entry names are kept whole, at the ellipsis or else at the end.
  tensor index(std::span<const index_entry> entries) const;
  tensor index(std::initializer_list<index_entry> entries) const {
    return index(std::span<const index_entry>(entries.begin(), entries.size()));
  }

  /// As the members of `layout` with these names.
  tensor transpose(index_t axis_a, index_t axis_b) const;
  tensor permute_dims(const dims& axes) const;
  tensor moveaxis(index_t from, index_t to) const;
  tensor squeeze() const;
  tensor squeeze(index_t axis) const;
  tensor unsqueeze(index_t axis) const;
  tensor expand(const dims& shape) const;
  tensor unfold(index_t axis, index_t size, index_t step) const;
  tensor diagonal(index_t offset = 0, index_t axis_a = 0, index_t axis_b = 1) const;
  tensor flip(const dims& axes) const;
  tensor flip() const;

  /// The same elements under another shape, without a copy.
  /// Throws   invalid_argument if strides cannot express it: `reshape` copies then
  tensor view(const dims& shape) const;

  /// Any layout over the same storage. Throws invalid_argument if an element lies outside.
  tensor as_strided(const dims& shape, const dims& strides, index_t offset) const;

  /// The same bytes as another dtype. Equal widths: any layout. Else the last axis must have
  /// neighbours side by side and scales by the ratio of the widths; towards a wider dtype the other
  /// strides, the offset and the address must be multiples of it.
  tensor view_as(shale::dtype type) const;

  /// The same bytes, refusing writes through this handle's storage.
  tensor as_read_only() const;

  // ---- copies ----------------------------------------------------------------------------------

  /// A row-major copy in fresh memory from `pool`. Single-threaded; the engine's `copy` is
  /// parallel.
  tensor clone(memory_pool* pool = nullptr) const;

  /// This tensor if contiguous, else a clone.
  tensor contiguous(memory_pool* pool = nullptr) const;

  /// `view` where possible, else a clone of that shape.
  tensor reshape(const dims& shape, memory_pool* pool = nullptr) const;

  /// The pieces of `length` (> 0) along `axis`, the last one possibly shorter; one empty piece of
  /// an empty axis. Views.
  /// Throws   out_of_memory if there is none for so many, as `chunk` and `unbind` do
  std::vector<tensor> split(index_t length, index_t axis = 0) const;

  /// At most `count` (> 0) pieces along `axis`, all of ceil(n / count) but the last. Views.
  std::vector<tensor> chunk(index_t count, index_t axis = 0) const;

  /// One tensor a position of `axis`, each without it. Views.
  std::vector<tensor> unbind(index_t axis = 0) const;

  // ---- in-place geometry, as the ancestors have it ---------------------------------------------

  /// Becomes row-major over `shape` on the same storage and at the same offset, growing it if it
  /// must and can; elements keep their positions in the storage. Other handles are untouched.
  /// Throws   invalid_argument if the storage is too small and cannot grow; out_of_memory
  void resize(const dims& shape);

 private:
  tensor with(const layout& which) const;  // a view: `which` names elements of this tensor only
  static constexpr index_t any_rank = -1;
  void require(shale::dtype type, index_t rank, bool writing) const;
  void require_contiguous() const;
  static void require_count(const dims& shape, std::size_t count);

  shale::storage storage_;
  shale::dtype dtype_;
  layout layout_;
};

/// Whether dtype, shape and the bits of every element are the same: a NaN equals itself, and 0.0
/// does not equal -0.0.
/// Cost     O(elements), single-threaded
/// Throws   io if a mapped file lost bytes
bool equal_bits(const tensor& a, const tensor& b);

template <class T>
tensor tensor::borrow(T* elements, const dims& shape) {
  const std::size_t bytes = static_cast<std::size_t>(element_count(shape)) * sizeof(T);
  using Plain = std::remove_const_t<T>;
  return tensor(shale::storage::adopt(const_cast<Plain*>(elements), bytes, nullptr,
                                      std::is_const_v<T> ? access::read_only : access::read_write),
                dtype_of<T>(), layout(shape));
}

template <class T>
tensor tensor::of(std::initializer_list<T> values) {
  return of(std::span<const T>(values.begin(), values.size()),
            {static_cast<index_t>(values.size())});
}

template <class T>
tensor tensor::of(std::span<const T> values, const dims& shape) {
  require_count(shape, values.size());
  return borrow(values.data(), shape).clone();
}

template <class T, int Rank>
shale::view<T, Rank> tensor::as() const {
  require(dtype_of<T>(), Rank, !std::is_const_v<T>);
  std::array<index_t, Rank> shape{}, strides{};
  for (int axis = 0; axis < Rank; ++axis) {
    shape[axis] = layout_.shape()[axis];
    strides[axis] = layout_.strides()[axis];
  }
  auto* first = reinterpret_cast<T*>(const_cast<std::byte*>(data()));
  return shale::view<T, Rank>(storage_, first, shape, strides);
}

template <class T>
std::span<T> tensor::elements() const {
  require(dtype_of<T>(), any_rank, !std::is_const_v<T>);
  require_contiguous();
  return {reinterpret_cast<T*>(const_cast<std::byte*>(data())), static_cast<std::size_t>(size())};
}

}  // namespace shale
