// What `tensor::index` and `expr::index` take: NumPy's basic indexing, entry by entry.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "shale/index.hpp"
#include "shale/slice.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Stands for an axis of length 1 that the operand does not have.
struct newaxis_t {};

/// Stands for all axes that no other entry names.
struct ellipsis_t {};

/// The entries of `tensor::index` that are no numbers, under NumPy's names.
inline constexpr newaxis_t newaxis{};
inline constexpr ellipsis_t ellipsis{};

/// One entry of `tensor::index`: an index, a slice, a new axis, or "…".
class index_entry {
 public:
  /// An index, a slice, a new axis, or "…".
  enum class kind : std::uint8_t { position, range, new_axis, rest };

  /// Entries are written as what they stand for: `x.index({2, slice{.step = -1}, newaxis})`.
  template <class Integer>
  requires std::is_integral_v<Integer> index_entry(Integer at)
  noexcept : what_(kind::position), at_(as_index(at)) {}
  index_entry(const shale::slice& which) noexcept : what_(kind::range), which_(which) {}
  index_entry(newaxis_t) noexcept : what_(kind::new_axis) {}
  index_entry(ellipsis_t) noexcept : what_(kind::rest) {}

  /// What it is; the members below hold a value for that kind only.
  kind what() const noexcept { return what_; }
  index_t position() const noexcept { return at_; }              ///< for kind::position
  const shale::slice& slice() const noexcept { return which_; }  ///< for kind::range

 private:
  // No axis has a position 2^63 - 1, so what is beyond it may stay out of range as that.
  template <class Integer>
  static index_t as_index(Integer at) noexcept {
    constexpr index_t most = std::numeric_limits<index_t>::max();
    if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) >= sizeof(index_t))
      return static_cast<index_t>(at > Integer{most} ? Integer{most} : at);
    else return static_cast<index_t>(at);
  }

  kind what_;
  index_t at_ = 0;
  shale::slice which_ = {};
};

}  // namespace shale
