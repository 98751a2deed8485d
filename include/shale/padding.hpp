// Padding: an array with more positions at the ends of its axes.
//
//   expr framed = pad(x, {{1, 1}, {2, 2}}, {.mode = pad_mode::reflect});
#pragma once

#include <cstdint>
#include <vector>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// What stands at the new positions. The comments show what becomes of `a b c d`.
enum class pad_mode : std::uint8_t {
  constant,   ///< v v v | a b c d | v v v: one value
  edge,       ///< a a a | a b c d | d d d: the nearest element
  reflect,    ///< d c b | a b c d | c b a: reflected at the first and the last element
  symmetric,  ///< c b a | a b c d | d c b: reflected in front of the first and behind the last one
  wrap,       ///< b c d | a b c d | a b c: repeated
};

/// The number of new positions at the beginning and at the end of an axis.
struct pad_width {
  index_t before = 0;
  index_t after = 0;
};

/// How positions are filled.
struct pad_options {
  pad_mode mode = pad_mode::constant;

  /// The value of pad_mode::constant. It takes the dtype of the operand.
  scalar value = 0;
};

/// `a` with new positions at the ends of its axes, as NumPy's pad. `widths` has an entry for each
/// axis, or one for all of them. A reflected or repeated pattern goes on if a width is longer than
/// the axis.
/// Shape    each extent grows by both widths of its axis; dtype of `a`
/// Cost     a node of the expression; then one access to the operand for each element, as by
///          `take`. Held in memory until then: 8 bytes for each position of an axis that is padded,
///          and an operand that is not a tensor, which is first computed as a whole
/// Throws   invalid_argument (negative widths, another number of them, extents of 2^60 or more, a
///          value that the dtype cannot hold, an axis without elements except in constant mode),
///          out_of_memory
expr pad(const expr& a, const std::vector<pad_width>& widths, const pad_options& options = {});

}  // namespace shale
