#include "format/codec/bitround.hpp"

#include <cstddef>

#include "format/bytes/byte_order.hpp"
#include "format/codec/words.hpp"

namespace shale::format {
namespace {

// Bits of a real number's parts; 0 where bitround is undefined.
struct float_bits {
  int mantissa = 0;
  int exponent = 0;
};

float_bits bits_of(dtype type) noexcept {
  switch (type) {
    case dtype::float16:
      return {10, 5};
    case dtype::bfloat16:
      return {7, 8};
    case dtype::float32:
    case dtype::complex64:
      return {23, 8};
    case dtype::float64:
    case dtype::complex128:
      return {52, 11};
    default:
      return {};
  }
}

// Rounds to nearest, ties to even, by integer arithmetic on the bit pattern: it adds just less than
// half of the last kept bit (exactly half if that bit is set, which makes ties even) and clears the
// bits after it. A carry out of the mantissa increments the exponent, which is the right result,
// even when it gives infinity. NaNs keep their payload.
template <class Word>
void round_bits(bytes_view from, bytes_span to, const float_bits& bits, int keep) noexcept {
  const int drop = bits.mantissa - keep;
  const Word low = static_cast<Word>((Word{1} << drop) - 1);
  const Word half = static_cast<Word>(Word{1} << (drop - 1));
  const Word mantissa = static_cast<Word>((Word{1} << bits.mantissa) - 1);
  const Word exponent = static_cast<Word>(((Word{1} << bits.exponent) - 1) << bits.mantissa);
  for (std::size_t i = 0; i < from.size(); i += sizeof(Word)) {
    const Word value = load<Word>(from.data() + i);
    const bool is_nan = (value & exponent) == exponent && (value & mantissa) != 0;
    const Word odd = static_cast<Word>((value >> drop) & 1);
    const Word rounded =
        static_cast<Word>(static_cast<Word>(value + odd + half - 1) & static_cast<Word>(~low));
    store(to.data() + i, is_nan ? value : rounded);
  }
}

}  // namespace

int mantissa_bits(dtype type) noexcept { return bits_of(type).mantissa; }

void round_mantissas(bytes_view from, bytes_span to, dtype type, int keep) noexcept {
  const float_bits bits = bits_of(type);
  const std::size_t real_bytes = static_cast<std::size_t>(1 + bits.exponent + bits.mantissa) / 8;
  with_word(real_bytes, [&](auto zero) {
    if constexpr (sizeof zero > 1) round_bits<decltype(zero)>(from, to, bits, keep);
  });
}

}  // namespace shale::format
