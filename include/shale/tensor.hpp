// The tensor: a handle with a dtype and a layout over a storage.
//
// The header is longer than others, because all members of the class are declared in one place. The
// definitions of its templates follow the class.
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
/// see the same bytes. `clone` copies elements. Like a pointer, a `const tensor` gives write access
/// to its elements. The storage decides at run time whether elements can be written (`writable`,
/// `as_read_only`). A negative axis counts from the back, wherever an axis is expected.
/// Throws   invalid_argument from every function whose arguments do not fit, also for values that
///          are not a dtype; out_of_memory from functions that allocate
/// Threads  a handle is a value. Elements may be read by several threads at once; the caller
///          synchronises writes
/// Lifetime keeps its storage alive
class tensor {
 public:
  /// A float32 tensor of shape (0). A tensor that was moved from is like it, but keeps its dtype.
  tensor();
  tensor(const tensor&) = default;
  tensor& operator=(const tensor&) = default;
  tensor(tensor&& other) noexcept;
  tensor& operator=(tensor&& other) noexcept;

  /// A view of `bytes`, whose first byte is position 0. An empty layout fits any storage. A stride
  /// of an axis of length 0 or 1 becomes 1 if it is longer than 2^62 bytes: it is never used, and
  /// would overflow.
  /// Throws   invalid_argument if an element would lie outside the storage or be misaligned
  tensor(shale::storage bytes, shale::dtype type, const shale::layout& elements);

  /// A row-major, uninitialised tensor in memory from `pool` (null: the default pool).
  /// Throws   out_of_memory, invalid_argument (negative extent, too many bytes)
  static tensor empty(const dims& shape, shale::dtype type, memory_pool* pool = nullptr);

  /// Like `empty`, with all bytes zero.
  /// Cost     one pass of one thread; `eval(zeros(…))` is parallel
  static tensor zeros(const dims& shape, shale::dtype type, memory_pool* pool = nullptr);

  /// Like `empty`, with one value in every element.
  /// Throws   as empty; invalid_argument (the dtype cannot hold the value, see scalar::to)
  /// Cost     one pass of one thread; `eval(full(…))` is parallel
  static tensor full(const dims& shape, const scalar& value, shale::dtype type,
                     memory_pool* pool = nullptr);
  static tensor ones(const dims& shape, shale::dtype type, memory_pool* pool = nullptr);

  /// The same with the shape and the dtype of `other`.
  static tensor empty_like(const tensor& other, memory_pool* pool = nullptr);
  static tensor zeros_like(const tensor& other, memory_pool* pool = nullptr);
  static tensor ones_like(const tensor& other, memory_pool* pool = nullptr);

  /// A row-major tensor over memory of the caller, who keeps it alive. Cost: O(1).
  template <class T>
  static tensor borrow(T* elements, const dims& shape);

  /// A row-major copy of the values. The nesting of the lists gives the shape, or `shape` does.
  /// Write complex elements out, as in of<C>({C{3, 4}, C{0, 0}}): {{3, 4}, {0, 0}} are two rows.
  /// Throws   invalid_argument if rows have different lengths, or `shape` another number of
  ///          elements
  template <class T>
  static tensor of(std::initializer_list<T> values);
  template <class T>
  static tensor of(std::initializer_list<std::initializer_list<T>> rows);
  template <class T>
  static tensor of(std::initializer_list<std::initializer_list<std::initializer_list<T>>> blocks);
  template <class T>
  static tensor of(std::span<const T> values, const dims& shape);

  /// The parts of this view. Strides and offset count elements.
  shale::dtype dtype() const noexcept { return dtype_; }
  const dims& shape() const noexcept { return layout_.shape(); }
  index_t shape(index_t axis) const;
  const dims& strides() const noexcept { return layout_.strides(); }
  index_t stride(index_t axis) const;
  index_t offset() const noexcept { return layout_.offset(); }
  index_t rank() const noexcept { return layout_.rank(); }

  /// The number of indices. A broadcast element counts once for each index that names it.
  index_t size() const noexcept { return layout_.size(); }

  /// Bytes of one element.
  std::size_t item_bytes() const noexcept { return shale::item_bytes(dtype_); }

  /// size() * item_bytes(), the size of a contiguous copy. Saturates at the largest size_t if a
  /// broadcast tensor's size overflows.
  std::size_t size_bytes() const noexcept;

  /// Whether the elements lie in row-major order without gaps. Axes of length 1 do not matter.
  bool is_contiguous() const noexcept { return layout_.is_contiguous(); }

  /// Whether the storage can be written. Stores into a broadcast tensor throw even then.
  bool writable() const noexcept { return storage_.writable(); }

  /// Shape, strides and offset together.
  const shale::layout& layout() const noexcept { return layout_; }

  /// The storage that holds the elements, and perhaps others.
  const shale::storage& storage() const noexcept { return storage_; }

  /// The address of the element at index (0, …, 0). If the tensor is empty, the address of the
  /// storage, which may be null. It is not checked whether the bytes were lost.
  std::byte* data() const noexcept;

  /// Whether both handles have the same storage, dtype, layout and writability.
  bool is_set_to(const tensor& other) const noexcept;

  // ---- typed access ----------------------------------------------------------------------------

  /// A typed view for loops: `as<float, 2>()(i, j)`. `as<const float, 2>()` only reads.
  /// Cost     O(rank), allocates nothing
  /// Throws   invalid_argument (another dtype or rank; T is not const and an axis is broadcast),
  ///          access_denied (T is not const and the storage is read-only), io (a mapped file lost
  ///          bytes), unsupported (in a forked child, for a writable mapping of the parent)
  /// Lifetime the view keeps the storage alive
  template <class T, int Rank>
  shale::view<T, Rank> as() const;

  /// The elements as a span.
  /// Throws   as `as`; invalid_argument unless is_contiguous()
  /// Lifetime valid as long as the storage; the span does not keep it alive
  template <class T>
  std::span<T> elements() const;

  /// The only element of a tensor of size 1.
  /// Throws   invalid_argument (another size), io (a mapped file lost bytes)
  scalar item() const;

  /// The element at `index`, with checks. Negative indices count from the back. In loops, `as` is
  /// faster.
  /// Throws   invalid_argument (another rank, an index outside), io (a mapped file lost bytes)
  scalar at(std::span<const index_t> index) const;
  scalar at(std::initializer_list<index_t> index) const {
    return at(std::span<const index_t>(index.begin(), index.size()));
  }

  /// Stores a value at `index`, converted to the tensor's dtype.
  /// Throws   as `at`; invalid_argument (the dtype cannot hold the value, an axis is broadcast),
  ///          access_denied (the storage is read-only)
  void set(std::span<const index_t> index, const scalar& value) const;
  void set(std::initializer_list<index_t> index, const scalar& value) const {
    set(std::span<const index_t>(index.begin(), index.size()), value);
  }

  // ---- views: O(rank), share the storage --------------------------------------------------------

  /// These views have the rules of the members of `layout` with the same names.
  tensor narrow(index_t axis, index_t start, index_t length) const;
  tensor select(index_t axis, index_t index) const;
  tensor sliced(index_t axis, const shale::slice& range) const;

  /// NumPy's basic indexing: `x.index({2, slice{.step = -1}, ellipsis, newaxis})`. Axes without an
  /// entry are kept whole. They stand where the ellipsis is, or else at the end.
  tensor index(std::span<const index_entry> entries) const;
  tensor index(std::initializer_list<index_entry> entries) const {
    return index(std::span<const index_entry>(entries.begin(), entries.size()));
  }
  tensor operator[](std::initializer_list<index_entry> entries) const { return index(entries); }

  /// These too have the rules of the members of `layout`.
  tensor swapaxes(index_t axis_a, index_t axis_b) const;
  tensor permute_dims(const dims& axes) const;
  tensor moveaxis(index_t from, index_t to) const;
  tensor squeeze() const;
  tensor squeeze(index_t axis) const;
  tensor squeeze(const dims& axes) const;
  tensor expand_dims(index_t axis) const;
  tensor broadcast_to(const dims& shape) const;
  tensor unfold(index_t axis, index_t size, index_t step) const;
  tensor diagonal(index_t offset = 0, index_t axis_a = 0, index_t axis_b = 1) const;
  tensor flip(const dims& axes) const;
  tensor flip() const;

  /// The same elements in the same order under another shape, without a copy. One extent may be -1.
  /// Throws   invalid_argument if strides cannot express the view; `reshape` copies then
  tensor view(const dims& shape) const;

  /// Any layout over the same storage.
  /// Throws   invalid_argument if an element lies outside the storage
  tensor as_strided(const dims& shape, const dims& strides, index_t offset) const;

  /// The same bytes as elements of another dtype. If the width changes, the last axis must have
  /// stride 1, and its extent changes by the ratio of the widths. For a wider dtype, the other
  /// strides, the offset and the address must be multiples of the new width.
  tensor view_as(shale::dtype type) const;

  /// A view of the same elements that is not writable.
  tensor as_read_only() const;

  // ---- copies ----------------------------------------------------------------------------------

  /// A row-major copy in memory from `pool` (null: the default pool).
  /// Cost     one pass of one thread; `copy` and `eval` are parallel
  /// Throws   out_of_memory, io (a mapped file lost bytes)
  tensor clone(memory_pool* pool = nullptr) const;

  /// This tensor if it is contiguous, else a clone. Throws as `clone`.
  tensor contiguous(memory_pool* pool = nullptr) const;

  /// A `view` of that shape if possible, else a clone. `ravel` gives it rank 1.
  /// Throws   as `clone`; invalid_argument (another number of elements)
  tensor reshape(const dims& shape, memory_pool* pool = nullptr) const;
  tensor ravel(memory_pool* pool = nullptr) const { return reshape({-1}, pool); }

  /// Views of consecutive pieces of `length` (> 0) along `axis`. The last piece may be shorter. An
  /// empty axis gives one empty piece.
  std::vector<tensor> split(index_t length, index_t axis = 0) const;

  /// Views of at most `count` (> 0) pieces along `axis`. All but the last have the length
  /// ceil(n / count).
  std::vector<tensor> chunk(index_t count, index_t axis = 0) const;

  /// One view for each position of `axis`, without that axis.
  std::vector<tensor> unstack(index_t axis = 0) const;

  // ---- changing this handle ---------------------------------------------------------------------

  /// Changes this handle to a row-major layout of `shape` at the same offset, or to `new_layout`,
  /// over the same storage. Elements keep their positions in it. If the storage is too small, it
  /// grows into its reserve. Pool memory that no other handle holds (or no memory, as in a
  /// default-constructed tensor) is replaced by a larger block from the default pool. New elements
  /// are uninitialised, except that new bytes of a file are zero. Other handles do not change.
  /// Cost     O(rank), and growing the storage or copying it
  /// Throws   invalid_argument (the storage is too small and cannot be replaced), out_of_memory,
  ///          and as storage::grow
  void resize(const dims& shape);
  void resize(const shale::layout& new_layout);

 private:
  tensor with_layout(const shale::layout& view) const;  // `view` names elements of this tensor only
  static constexpr index_t any_rank = -1;
  void require(shale::dtype type, index_t rank, bool writing) const;
  void require_contiguous() const;
  static void require_count(const dims& shape, std::size_t count);

  shale::storage storage_;
  shale::dtype dtype_;
  shale::layout layout_;
};

/// Whether dtype, shape and the bits of every element are the same. So a NaN equals itself, and 0.0
/// does not equal -0.0.
/// Cost     one pass of one thread
/// Throws   io (a mapped file lost bytes)
bool equal_bits(const tensor& a, const tensor& b);

template <class T>
tensor tensor::borrow(T* elements, const dims& shape) {
  const std::size_t bytes = static_cast<std::size_t>(element_count(shape)) * sizeof(T);
  using Plain = std::remove_const_t<T>;
  return tensor(shale::storage::adopt(const_cast<Plain*>(elements), bytes, nullptr,
                                      std::is_const_v<T> ? access::read_only : access::read_write),
                dtype_of<T>(), shale::layout(shape));
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

template <class T>
tensor tensor::of(std::initializer_list<std::initializer_list<T>> rows) {
  return of({rows}).select(0, 0);
}

template <class T>
tensor tensor::of(std::initializer_list<std::initializer_list<std::initializer_list<T>>> blocks) {
  const std::size_t rows = blocks.size() == 0 ? 0 : blocks.begin()->size();
  const std::size_t columns = rows == 0 ? 0 : blocks.begin()->begin()->size();
  const tensor made = empty({static_cast<index_t>(blocks.size()), static_cast<index_t>(rows),
                             static_cast<index_t>(columns)},
                            dtype_of<T>());
  T* next = made.elements<T>().data();
  for (const auto& block : blocks) {
    require_count({static_cast<index_t>(rows)}, block.size());
    for (const auto& row : block) {
      require_count({static_cast<index_t>(columns)}, row.size());
      for (const T& value : row) *next++ = value;
    }
  }
  return made;
}

template <class T, int Rank>
shale::view<T, Rank> tensor::as() const {
  require(dtype_of<T>(), Rank, !std::is_const_v<T>);
  std::array<index_t, Rank> shape{}, strides{};
  for (int axis = 0; axis < Rank; ++axis) {
    shape[axis] = layout_.shape()[axis];
    strides[axis] = layout_.strides()[axis];
  }
  auto* first = reinterpret_cast<T*>(data());
  return shale::view<T, Rank>(storage_, first, shape, strides);
}

template <class T>
std::span<T> tensor::elements() const {
  require(dtype_of<T>(), any_rank, !std::is_const_v<T>);
  require_contiguous();
  return {reinterpret_cast<T*>(data()), static_cast<std::size_t>(size())};
}

}  // namespace shale
