// The entries of `tensor::index`, which are NumPy's basic indexing. `expr::index` also takes arrays
// (shale/expr.hpp).
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "shale/index.hpp"
#include "shale/slice.hpp"

namespace [[gnu::visibility("default")]] shale {

// The enumeration is declared before constants that have the names of its values, because compilers
// warn about the other order.
/// The kinds of entries: an index, a slice, `newaxis`, `ellipsis`.
enum class index_entry_kind : std::uint8_t { position, range, new_axis, ellipsis };

/// The type of `newaxis`.
struct newaxis_t {};
/// The type of `ellipsis`.
struct ellipsis_t {};

/// NumPy's names: `newaxis` inserts an axis of length 1, `ellipsis` keeps all axes that no other
/// entry names.
inline constexpr newaxis_t newaxis{};
inline constexpr ellipsis_t ellipsis{};

/// One entry of `tensor::index`: an index, a slice, a new axis, or "…".
class index_entry {
 public:
  /// Entries are written as they are: `x.index({2, slice{.step = -1}, newaxis})`.
  template <class Integer>
  requires std::is_integral_v<Integer> index_entry(Integer position)
  noexcept : kind_(index_entry_kind::position), position_(as_index(position)) {}
  index_entry(const shale::slice& range) noexcept : kind_(index_entry_kind::range), slice_(range) {}
  index_entry(newaxis_t) noexcept : kind_(index_entry_kind::new_axis) {}
  index_entry(ellipsis_t) noexcept : kind_(index_entry_kind::ellipsis) {}

  /// The kind of this entry. Each function below may be called for one kind only.
  index_entry_kind kind() const noexcept { return kind_; }
  index_t position() const noexcept { return position_; }        ///< for index_entry_kind::position
  const shale::slice& slice() const noexcept { return slice_; }  ///< for index_entry_kind::range

 private:
  // Larger values become 2^63 - 1. No axis has that position, so they stay out of range.
  template <class Integer>
  static index_t as_index(Integer position) noexcept {
    constexpr index_t most = std::numeric_limits<index_t>::max();
    if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) >= sizeof(index_t))
      return static_cast<index_t>(position > Integer{most} ? Integer{most} : position);
    else return static_cast<index_t>(position);
  }

  index_entry_kind kind_;
  index_t position_ = 0;
  shale::slice slice_ = {};
};

}  // namespace shale
