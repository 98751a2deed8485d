// Rearranges the bytes or bits of elements, so that those of equal significance are neighbours, and
// back.
// docs/container-format.md, "Codec stages", gives the exact orders.
#pragma once

#include <cstddef>

#include "format/bytes/types.hpp"

namespace shale::format {

/// `to` becomes all first bytes of the elements, then all second bytes, …. The spans have equal
/// sizes, a multiple of `item_bytes` (1, 2, 4, 8 or 16), and do not overlap.
/// Cost     one pass, SSE2 where there is SSE2
void shuffle_bytes(bytes_view from, std::size_t item_bytes, bytes_span to) noexcept;
void unshuffle_bytes(bytes_view from, std::size_t item_bytes, bytes_span to) noexcept;

/// `to` becomes all lowest bits of the elements, then all second bits, …. Up to 7 elements after
/// the last whole group of 8 follow unchanged. `scratch` is as long as the other spans; no two
/// overlap.
void shuffle_bits(bytes_view from, std::size_t item_bytes, bytes_span scratch,
                  bytes_span to) noexcept;
void unshuffle_bits(bytes_view from, std::size_t item_bytes, bytes_span scratch,
                    bytes_span to) noexcept;

}  // namespace shale::format
