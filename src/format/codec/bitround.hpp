// The stage `bitround`: keeps the highest bits of each real number's mantissa.
// docs/container-format.md, "Codec stages", says how it rounds.
#pragma once

#include "format/bytes/types.hpp"
#include "shale/dtype.hpp"

namespace shale::format {

/// Mantissa bits of a real number of the type; 0 where bitround is undefined.
int mantissa_bits(dtype type) noexcept;

/// Rounds every real number of `from` to `keep` mantissa bits, fewer than it has. `to` has the same
/// size, and may be `from`.
void round_mantissas(bytes_view from, bytes_span to, dtype type, int keep) noexcept;

}  // namespace shale::format
