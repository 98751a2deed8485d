#include "shale/gradient.hpp"

#include <string>
#include <vector>

#include "core/allocating.hpp"
#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/padding.hpp"

namespace shale {

expr gradient(const expr& a, double spacing, index_t axis) {
  return detail::allocating([&] {
    const index_t along = normalize_axis(axis, a.rank()), extent = a.shape(along);
    if (extent < 2)
      throw error(errc::invalid_argument, "gradient needs at least two positions along the axis",
                  {"axis " + std::to_string(along) + " of shape " + to_string(a.shape())});
    // At an end, the position itself takes the place of the neighbour that is missing.
    std::vector<pad_width> widths(static_cast<std::size_t>(a.rank()));
    widths[static_cast<std::size_t>(along)] = {1, 1};
    const expr padded = pad(a, widths, {.mode = pad_mode::edge});
    const expr wider = is_inexact(a.dtype()) ? padded : astype(padded, dtype::float64);
    const expr difference = wider.narrow(along, 2, extent) - wider.narrow(along, 0, extent);
    const expr position = arange(extent);
    expr distance = where((position == 0) | (position == extent - 1), spacing, 2 * spacing);
    for (index_t k = along + 1; k < a.rank(); ++k) distance = distance.expand_dims(1);
    return astype(difference / distance, difference.dtype());
  });
}

}  // namespace shale
