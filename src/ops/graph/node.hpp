// The nodes of the graph behind `expr`, by what they hold (see graph.hpp). They are immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "ops/kernels/operations/operations.hpp"
#include "ops/kernels/operations/random_draw.hpp"
#include "parallel/sources/axis_map.hpp"
#include "shale/scalar.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace shale::detail {

struct node;
using node_ref = std::shared_ptr<const node>;

/// A value on the heap. A node stays small if the large parts that few nodes have lie elsewhere.
template <class T>
class boxed {
 public:
  boxed(T value) : held_(std::make_unique<const T>(std::move(value))) {}
  boxed(const boxed& other) : boxed(*other) {}
  boxed(boxed&&) noexcept = default;
  boxed& operator=(boxed other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }

  const T& operator*() const noexcept { return *held_; }
  const T* operator->() const noexcept { return held_.get(); }

 private:
  std::unique_ptr<const T> held_;  // null if it was moved from
};

/// Elements in memory. The tensor's layout expresses views of the leaf.
struct tensor_leaf {
  explicit tensor_leaf(const tensor& held) : values(held) {}
  tensor values;
};

/// Elements of a tile source. The map expresses views of the leaf.
struct source_leaf {
  std::shared_ptr<const tile_source> source;
  boxed<parallel::axis_map> map;
};

/// One number for all elements. A weak constant is a number written in C++ that has no dtype yet:
/// it takes the dtype of the tensor that it meets.
struct constant_leaf {
  scalar value;
  bool weak = false;
};

/// The numbers start + step * k, where k is the position along the map's only input axis.
struct range_leaf {
  scalar start;
  scalar step;
  boxed<parallel::axis_map> map;
};

/// Random numbers. The layout expresses views of the leaf: the element at position p of the layout
/// is the one that the draw has at position `first` + p.
struct random_leaf {
  ops::distribution kind;
  ops::random_draw draw;
  std::uint64_t first;
  boxed<layout> arrangement;
};

/// Elements of an input, repeated. Along axis a, position p of the map has the element of the input
/// at p % modulus[a] if modulus[a] > 0 (for `tile`), or else at p / divisor[a] (for `repeat`).
struct repeated_leaf {
  node_ref input;  // a tensor leaf or a staged node
  boxed<parallel::axis_map> map;
  dims modulus;
  dims divisor;  // never 0
};

/// Pieces that follow one another along an axis of the map's input.
struct concat_leaf {
  std::vector<node_ref> pieces;  // tensor leaves or staged nodes, of the node's dtype
  std::vector<index_t> starts;   // of the pieces along `axis`, and the end of the last one
  index_t axis;
  boxed<parallel::axis_map> map;
};

/// Says what gives the position along an axis of an indexed leaf's input: an axis of the leaf, or
/// an index. If both are -1, the position is 0.
struct position_of_axis {
  index_t axis = -1;   // of the map's input
  index_t index = -1;  // the number of the index
  index_t named = -1;  // the axis that an error of the index names; -1: that of the input
};

/// Elements of an input at positions that indices name.
struct indexed_leaf {
  node_ref input;                 // a tensor leaf or a staged node; in a stage also a source leaf
  std::vector<node_ref> indices;  // int64, of the shape that the map views; nodes as `input`
  std::vector<position_of_axis> axes;  // by axis of `input`; for a source leaf whose rank is not 1,
                                       // also one entry whose index counts all elements
  boxed<parallel::axis_map> map;
};

/// Sums of products: the element at p is the sum of weights[t] * input[p - before + t] over all
/// positions t of `weights` for which p - before + t lies inside the input.
struct window_leaf {
  node_ref input;                 // a tensor leaf or a staged node
  node_ref weights;               // likewise; contiguous, of the dtype in which sums are computed
  dims before;                    // by axis
  boxed<parallel::axis_map> map;  // keeps all axes, with steps of 1; other views are staged
};

/// The inputs of an operation, at most three, without memory of their own.
class operation_inputs {
 public:
  operation_inputs() = default;
  operation_inputs(node_ref a) : held_{std::move(a)}, size_(1) {}
  operation_inputs(node_ref a, node_ref b) : held_{std::move(a), std::move(b)}, size_(2) {}
  operation_inputs(node_ref a, node_ref b, node_ref c)
      : held_{std::move(a), std::move(b), std::move(c)}, size_(3) {}

  void push_back(node_ref input) { held_[size_++] = std::move(input); }

  std::size_t size() const noexcept { return size_; }
  node_ref& operator[](std::size_t position) noexcept { return held_[position]; }
  const node_ref& operator[](std::size_t position) const noexcept { return held_[position]; }
  const node_ref& back() const noexcept { return held_[size_ - 1]; }
  node_ref* begin() noexcept { return held_.data(); }
  node_ref* end() noexcept { return held_.data() + size_; }
  const node_ref* begin() const noexcept { return held_.data(); }
  const node_ref* end() const noexcept { return held_.data() + size_; }

 private:
  std::array<node_ref, 3> held_;
  std::size_t size_ = 0;
};

struct operation_node {
  ops::operation op;
  operation_inputs inputs;
};

struct cast_node {
  node_ref input;
};

/// The computation of a staged node. The fields say which one it is:
///   reduces            a reduction by `kind` over `axes`
///   scans              a scan along axes[0]
///   width > 0          a rolling reduction by `kind`, along axes[0]
///   factor, no before  a matrix product
///   factor and before  sums over windows by Fourier transforms
///   none of these      the input itself
struct stage {
  node_ref input;
  node_ref factor = nullptr;  // the right factor of a product; both factors are in memory or staged
                              // (sums over windows: the weights, contiguous complex128, likewise)
  bool reduces = false;
  ops::reduction kind = ops::reduction::sum;
  dims axes = {};  // the folded axes, ascending; or the one axis of the scan or of the windows
  std::optional<ops::scan> scans = std::nullopt;
  index_t width = 0;  // of the windows whose elements `kind` reduces; 0 unless it is rolling
  std::optional<dims> before = std::nullopt;  // as in window_leaf; only for sums over windows
  double parameter = 0;
  dims shape =
      {};  // of the result; folded axes have length 1 or are left out; may reshape the input
  dtype type = dtype::float32;
};

/// The result of a stage. The map expresses views of the leaf.
struct staged_leaf {
  std::shared_ptr<const stage> from;

  /// None: the leaf is the whole result.
  std::optional<boxed<parallel::axis_map>> map = std::nullopt;

  /// The layout that the map applies to, if it is not the result's row-major layout: a view of the
  /// result that a map cannot express, such as a diagonal.
  std::optional<boxed<layout>> under = std::nullopt;
};

struct node {
  using any_content =
      std::variant<tensor_leaf, source_leaf, constant_leaf, range_leaf, random_leaf, repeated_leaf,
                   concat_leaf, indexed_leaf, window_leaf, operation_node, cast_node, staged_leaf>;

  template <class Content, class... Parts>
  node(dtype element_type, const dims& extents, std::in_place_type_t<Content> kind,
       Parts&&... parts)
      : type(element_type), shape(extents), content(kind, std::forward<Parts>(parts)...) {}
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  dtype type;
  dims shape;
  any_content content;
  node_ref destroyed_next = nullptr;  // used by the destructor only (graph.4)
};

}  // namespace shale::detail
