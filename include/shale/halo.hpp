// Halos: the elements around a tile that its function may read. Used by map_tiles.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "shale/index.hpp"
#include "shale/scalar.hpp"

namespace [[gnu::visibility("default")]] shale {

/// What a halo has beyond the ends of an axis. The comments show what a function finds around an
/// axis of `a b c d`, whatever tiles cut it, and what others call it.
enum class halo_mode : std::uint8_t {
  clipped,    ///< a b c d: nothing. The halo ends where the axis ends (`none` in Dask)
  constant,   ///< v v v | a b c d | v v v: one value
  edge,       ///< a a a | a b c d | d d d: the nearest element (`nearest` in SciPy and Dask)
  reflect,    ///< d c b | a b c d | c b a: reflected at the end elements (`mirror` in SciPy)
  symmetric,  ///< c b a | a b c d | d c b: reflected behind them (`reflect` in SciPy and Dask)
  wrap,       ///< b c d | a b c d | a b c: repeated (`grid-wrap` in SciPy, `periodic` in Dask)
};

/// The elements of a halo along an axis, in front of a tile and behind it.
struct halo_width {
  index_t before = 0;
  index_t after = 0;
};

/// Which elements around its tiles an operand shows.
struct halo_options {
  /// An entry for each axis of the output, or one for all of them. Without an entry there is no
  /// halo.
  std::vector<halo_width> widths = {};

  halo_mode mode = halo_mode::clipped;

  /// The value of halo_mode::constant. It takes the dtype of the operand.
  scalar value = 0;
};

}  // namespace shale
