// Kernels of random numbers: Philox4x32-10, and the functions that turn its words into numbers.
//
// Philox encrypts a counter. So any element can be computed alone, and neighbours side by side in
// vector lanes. A *block* is the result for one counter: four words of 32 bits. An element takes
// one, two or four words, and the elements of a block follow one another in the order of its words.
// Counters of different widths differ in their third word, so that no two of them meet.
//
// Invariants
//   random.1  an element depends on the seed, the position and the parameters alone. Its functions
//             use only operations that IEEE 754 or C++ define to the last bit (+ - * / sqrt,
//             conversions, integers), in a fixed order, so all instruction sets give the same bits
//   random.2  elements of different positions share no word, except that positions 2k and 2k + 1 of
//             a normal distribution share a pair of words (Box-Muller)
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ops/kernels/dispatch/table.hpp"
#include "ops/kernels/elementwise/elements.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// ---- Philox4x32-10 -----------------------------------------------------------------------------

/// Blocks that are computed side by side. Their words and results lie in the L1 cache.
constexpr int blocks_max = 64;

/// Word k of block i is the lower half of `word[k][i]`. The upper half has no meaning.
struct words {
  alignas(64) u64 word[4][blocks_max];
};

// The products of the lower halves of 64-bit lanes. Of a plain product of integers GCC 12 makes one
// of all 64 bits, with which encryption takes 1.4 (AVX-512) to 6 times as long (measured).
#if defined(__AVX512F__)
typedef u64 lanes __attribute__((vector_size(64)));
inline lanes product_of_halves(lanes a, lanes b) {
  // Not _mm512_mul_epu32: GCC 12 warns of an uninitialized vector inside it.
  return (lanes)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
typedef u64 lanes __attribute__((vector_size(32)));
inline lanes product_of_halves(lanes a, lanes b) {
  return (lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
#elif defined(__SSE2__)
typedef u64 lanes __attribute__((vector_size(16)));
inline lanes product_of_halves(lanes a, lanes b) {
  return (lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
}
#else
typedef u64 lanes __attribute__((vector_size(16)));
inline lanes product_of_halves(lanes a, lanes b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
#endif

constexpr int lane_count = static_cast<int>(sizeof(lanes) / sizeof(u64));

/// Encrypts the counters whose words lie in `blocks`. It may encrypt a few blocks more.
/// Source   J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as
///          1, 2, 3, SC11 (2011): the multipliers, the Weyl constants and ten rounds
void encrypt(words& blocks, u64 seed, int count) {
  constexpr int rounds = 10;
  u64 keys[rounds][2];
  u32 key_a = static_cast<u32>(seed), key_b = static_cast<u32>(seed >> 32);
  for (auto& key : keys) {
    key[0] = key_a;
    key[1] = key_b;
    key_a += 0x9E3779B9u;
    key_b += 0xBB67AE85u;
  }
  const lanes zero = {};
  const lanes factor_a = zero + 0xD2511F53u, factor_c = zero + 0xCD9E8D57u;
  for (int i = 0; i < count; i += lane_count) {
    auto& a = *reinterpret_cast<lanes*>(&blocks.word[0][i]);
    auto& b = *reinterpret_cast<lanes*>(&blocks.word[1][i]);
    auto& c = *reinterpret_cast<lanes*>(&blocks.word[2][i]);
    auto& d = *reinterpret_cast<lanes*>(&blocks.word[3][i]);
    lanes w = a, x = b, y = c, z = d;
#pragma GCC unroll 10
    for (const auto& key : keys) {
      const lanes product_w = product_of_halves(w, factor_a);
      const lanes product_y = product_of_halves(y, factor_c);
      w = (product_y >> 32) ^ x ^ (zero + key[0]);
      y = (product_w >> 32) ^ z ^ (zero + key[1]);
      x = product_y;
      z = product_w;
    }
    a = w;
    b = x;
    c = y;
    d = z;
  }
}

inline u64 joined(u32 low, u32 high) { return u64{high} << 32 | low; }

// ---- functions of elements ---------------------------------------------------------------------
//
// Each exists for float and double. They are series that converge quickly on the short range that
// is left after the exponent, or the quadrant, was taken out.

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

/// The double of an integer below 2^53. The two halves are placed in the mantissas of 2^52 and
/// 2^84, because only AVX-512 converts integers of 64 bits.
inline double to_double(u64 whole) {
  const double low = as_bits<double>(0x4330000000000000u | (whole & 0xffffffffu));
  const double high = as_bits<double>(0x4530000000000000u | (whole >> 32));
  return (high - (0x1p84 + 0x1p52)) + low;
}

/// The double of an integer between -2^51 and 2^51, given modulo 2^64.
inline double to_double_signed(u64 whole) {
  return as_bits<double>(whole + 0x4338000000000000u) - 0x1.8p52;
}

/// log(1 + f) for 1 + f between sqrt(1/2) and sqrt(2), as twice the area tangent of f / (2 + f).
inline float log_near_1(float f) {
  const float s = f / (2.0f + f);
  const float z = s * s;
  float sum = 1.0f / 9;
  sum = sum * z + 1.0f / 7;
  sum = sum * z + 1.0f / 5;
  sum = sum * z + 1.0f / 3;
  const float twice = s + s;
  return twice + twice * (z * sum);
}
inline double log_near_1(double f) {
  const double s = f / (2.0 + f);
  const double z = s * s;
  double sum = 1.0 / 21;
  sum = sum * z + 1.0 / 19;
  sum = sum * z + 1.0 / 17;
  sum = sum * z + 1.0 / 15;
  sum = sum * z + 1.0 / 13;
  sum = sum * z + 1.0 / 11;
  sum = sum * z + 1.0 / 9;
  sum = sum * z + 1.0 / 7;
  sum = sum * z + 1.0 / 5;
  sum = sum * z + 1.0 / 3;
  const double twice = s + s;
  return twice + twice * (z * sum);
}

/// -log(u) for u = (k + 1/2) / 2^31, where k has the upper 31 bits of the word. It is positive.
inline float minus_log(u32 word) {
  const u32 whole = word | 1u;  // u * 2^32
  // Near 1 the distance from 1 is rounded, not the number, so that the result keeps its digits.
  const bool near_1 = whole >= 0xb504f334u;
  const float value = static_cast<float>(near_1 ? 0u - whole : whole);
  const u32 bits = as_bits<u32>(value);
  constexpr u32 root_of_half = 0x3f3504f3u;
  const u32 exponent = (bits - root_of_half) >> 23;
  const float mantissa = as_bits<float>(bits - (exponent << 23));
  const float f = near_1 ? value * -0x1p-32f : mantissa - 1.0f;
  const float twos = near_1 ? 0.0f : static_cast<float>(32 - static_cast<std::int32_t>(exponent));
  // ln 2 in two parts; the product with the first part is exact.
  return twos * 0x1.63p-1f + (twos * -0x1.bd0106p-13f - log_near_1(f));
}
/// -log(u) for u = (k + 1/2) / 2^52, where k has the upper 52 bits of the word.
inline double minus_log(u64 word) {
  const double value = to_double(word >> 11 | 1u) * 0x1p-53;
  const u64 bits = as_bits<u64>(value);
  constexpr u64 root_of_half = 0x3fe6a09e667f3bcdu;
  const u64 exponent = (bits - root_of_half + (u64{1023} << 52)) >> 52;  // biased, at most 1023
  const double mantissa = as_bits<double>(bits - (exponent << 52) + (u64{1023} << 52));
  const double twos = 1023.0 - to_double(exponent);
  return twos * 0x1.62e42fee00000p-1 + (twos * 0x1.a39ef35793c76p-33 - log_near_1(mantissa - 1.0));
}

template <class Float>
struct sine_and_cosine {
  Float sine;
  Float cosine;
};

/// Sine and cosine of 2 pi (w + 1/2) / 2^32.
inline sine_and_cosine<float> circle(u32 word) {
  const u32 quadrant = (word + 0x20000000u) >> 30;
  const auto offset = static_cast<std::int32_t>(2 * (word - (quadrant << 30)) + 1);
  const float y = static_cast<float>(offset) * 0x1.921fb6p-31f;  // pi / 2^32
  const float z = y * y;
  float odd = 1.0f / 362880;
  odd = odd * z - 1.0f / 5040;
  odd = odd * z + 1.0f / 120;
  odd = odd * z - 1.0f / 6;
  const float sine = y + y * (z * odd);
  float even = -1.0f / 3628800;
  even = even * z + 1.0f / 40320;
  even = even * z - 1.0f / 720;
  even = even * z + 1.0f / 24;
  even = even * z - 0.5f;
  const float cosine = 1.0f + z * even;
  const bool swap = (quadrant & 1) != 0;
  const u32 sine_bits = as_bits<u32>(swap ? cosine : sine) ^ (quadrant & 2) << 30;
  const u32 cosine_bits = as_bits<u32>(swap ? sine : cosine) ^ ((quadrant + 1) & 2) << 30;
  return {as_bits<float>(sine_bits), as_bits<float>(cosine_bits)};
}
/// Sine and cosine of 2 pi (k + 1/2) / 2^52, where k has the upper 52 bits of the word.
inline sine_and_cosine<double> circle(u64 word) {
  const u64 turn = word >> 12;
  const u64 quadrant = (turn + (u64{1} << 49)) >> 50;
  const double offset = to_double_signed(2 * (turn - (quadrant << 50)) + 1);
  const double y = offset * 0x1.921fb54442d18p-51;  // pi / 2^52
  const double z = y * y;
  double odd = 1.0 / 355687428096000;
  odd = odd * z - 1.0 / 1307674368000;
  odd = odd * z + 1.0 / 6227020800;
  odd = odd * z - 1.0 / 39916800;
  odd = odd * z + 1.0 / 362880;
  odd = odd * z - 1.0 / 5040;
  odd = odd * z + 1.0 / 120;
  odd = odd * z - 1.0 / 6;
  const double sine = y + y * (z * odd);
  double even = 1.0 / 20922789888000;
  even = even * z - 1.0 / 87178291200;
  even = even * z + 1.0 / 479001600;
  even = even * z - 1.0 / 3628800;
  even = even * z + 1.0 / 40320;
  even = even * z - 1.0 / 720;
  even = even * z + 1.0 / 24;
  even = even * z - 0.5;
  const double cosine = 1.0 + z * even;
  const bool swap = (quadrant & 1) != 0;
  const u64 sine_bits = as_bits<u64>(swap ? cosine : sine) ^ (quadrant & 2) << 62;
  const u64 cosine_bits = as_bits<u64>(swap ? sine : cosine) ^ ((quadrant + 1) & 2) << 62;
  return {as_bits<double>(sine_bits), as_bits<double>(cosine_bits)};
}

/// e^x; infinity or 0 beyond the range of the type. x = n ln 2 + r, with |r| <= ln 2 / 2.
inline float power_of_e(float x) {
  const float high = x > 90.0f ? 90.0f : x;
  const float inside = high < -110.0f ? -110.0f : high;
  const float shifted = inside * 0x1.715476p+0f + 0x1.8p23f;  // n is in the last bits
  const float n = shifted - 0x1.8p23f;
  const float r = (inside - n * 0x1.63p-1f) - n * -0x1.bd0106p-13f;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = 1.0f + (r + r * r * sum);
  // 2^n may lie outside the range although the result is inside, so two factors make it.
  const u32 biased = as_bits<u32>(shifted) - 0x4b400000u + 254u;
  const u32 half = biased >> 1;
  return sum * as_bits<float>(half << 23) * as_bits<float>((biased - half) << 23);
}
inline double power_of_e(double x) {
  const double high = x > 720.0 ? 720.0 : x;
  const double inside = high < -760.0 ? -760.0 : high;
  const double shifted = inside * 0x1.71547652b82fep+0 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  const double r = (inside - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  double sum = 1.0 / 6227020800;
  sum = sum * r + 1.0 / 479001600;
  sum = sum * r + 1.0 / 39916800;
  sum = sum * r + 1.0 / 3628800;
  sum = sum * r + 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 0.5;
  sum = 1.0 + (r + r * r * sum);
  const u64 biased = as_bits<u64>(shifted) - 0x4338000000000000u + 2046u;
  const u64 half = biased >> 1;
  return sum * as_bits<double>(half << 52) * as_bits<double>((biased - half) << 52);
}

// ---- distributions -----------------------------------------------------------------------------
//
// A distribution makes the elements of one block from its words. `per_block` is their number.

/// The bits that an element of a floating type uses: one word for float32, two for float64.
template <class Float>
using bits_of = std::conditional_t<sizeof(Float) == 4, u32, u64>;

template <class Float>
inline constexpr int elements_per_block = static_cast<int>(16 / sizeof(Float));

/// Distributions whose elements are functions of one word each. `Element::of` is that function.
template <class Element>
struct by_word {
  using type = typename Element::type;
  using bits = typename Element::bits;
  static constexpr int per_block = static_cast<int>(16 / sizeof(bits));

  static void make(const random_draw& draw, const u32 (&word)[4], type (&out)[per_block]) {
    if constexpr (per_block == 4) {
      for (int k = 0; k < 4; ++k) out[k] = Element::of(draw, word[k]);
    } else {
      out[0] = Element::of(draw, joined(word[0], word[1]));
      out[1] = Element::of(draw, joined(word[2], word[3]));
    }
  }
};

template <class Float>
struct uniform_element {
  using type = Float;
  using bits = bits_of<Float>;
  static Float of(const random_draw& draw, bits word) {
    Float fraction;  // at least 0, less than 1
    if constexpr (sizeof(Float) == 4) {
      fraction = static_cast<float>(static_cast<std::int32_t>((word >> 8) >> draw.unused_bits)) *
                 as_bits<float>((127u - 24u + draw.unused_bits) << 23);
    } else {
      fraction = to_double(word >> 11) * 0x1p-53;
    }
    const Float value = static_cast<Float>(draw.first) + fraction * static_cast<Float>(draw.second);
    const Float highest = static_cast<Float>(draw.highest);
    return value < highest ? value : highest;
  }
};

template <class Float>
struct exponential_element {
  using type = Float;
  using bits = bits_of<Float>;
  static Float of(const random_draw& draw, bits word) {
    return static_cast<Float>(draw.first) * minus_log(word);
  }
};

template <class Float>
struct cauchy_element {
  using type = Float;
  using bits = bits_of<Float>;
  static Float of(const random_draw& draw, bits word) {
    const sine_and_cosine<Float> at = circle(word);
    return static_cast<Float>(draw.first) + static_cast<Float>(draw.second) * (at.sine / at.cosine);
  }
};

struct geometric_element {
  using type = double;
  using bits = u64;
  static double of(const random_draw& draw, u64 word) {
    return __builtin_floor(minus_log(word) / draw.first) + 1.0;
  }
};

struct bernoulli_element {
  using type = boolean;
  using bits = u64;
  static boolean of(const random_draw& draw, u64 word) {
    return {static_cast<std::uint8_t>((word <= draw.whole) & !draw.never)};
  }
};

struct words_element {
  using type = u64;
  using bits = u64;
  static u64 of(const random_draw&, u64 word) { return word; }
};

/// The upper half of the product of a word of 64 bits with a number below 2^32.
struct integers_element {
  using type = u64;
  using bits = u64;
  static u64 of(const random_draw& draw, u64 word) {
    const u64 count = draw.count & 0xffffffffu;
    const u64 carried = ((word & 0xffffffffu) * count) >> 32;
    return draw.whole + (((word >> 32) * count + carried) >> 32);
  }
};

/// The upper 64 bits of the product of a word of 128 bits with a number of 64 bits.
struct integers_of_64 {
  using type = u64;
  static constexpr int per_block = 1;
  __extension__ using u128 = unsigned __int128;

  static void make(const random_draw& draw, const u32 (&word)[4], u64 (&out)[1]) {
    const u128 low = u128{joined(word[0], word[1])} * draw.count;
    const u128 high = u128{joined(word[2], word[3])} * draw.count + (low >> 64);
    out[0] = draw.whole + static_cast<u64>(high >> 64);
  }
};

/// Two elements from a pair of words: the first one gives the radius, the second one the angle.
/// Source   G. E. P. Box, M. E. Muller, A note on the generation of random normal deviates, Annals
///          of Mathematical Statistics 29 (1958)
template <class Float>
struct normal {
  using type = Float;
  static constexpr int per_block = elements_per_block<Float>;

  static void make_pair(const random_draw& draw, bits_of<Float> radius, bits_of<Float> angle,
                        Float* out) {
    const Float minus = minus_log(radius);
    const Float length = root(minus + minus) * static_cast<Float>(draw.second);
    const sine_and_cosine<Float> at = circle(angle);
    out[0] = static_cast<Float>(draw.first) + length * at.cosine;
    out[1] = static_cast<Float>(draw.first) + length * at.sine;
  }
  static void make(const random_draw& draw, const u32 (&word)[4], Float (&out)[per_block]) {
    if constexpr (per_block == 4) {
      make_pair(draw, word[0], word[1], out);
      make_pair(draw, word[2], word[3], out + 2);
    } else {
      make_pair(draw, joined(word[0], word[1]), joined(word[2], word[3]), out);
    }
  }
};

template <class Float>
struct log_normal {
  using type = Float;
  static constexpr int per_block = elements_per_block<Float>;

  static void make(const random_draw& draw, const u32 (&word)[4], Float (&out)[per_block]) {
    normal<Float>::make(draw, word, out);
    for (int k = 0; k < per_block; ++k) out[k] = power_of_e(out[k]);
  }
};

// ---- kernels -----------------------------------------------------------------------------------

/// The elements of the blocks, element k of block i at `element[k][i]`.
template <class Distribution>
struct results {
  alignas(64) typename Distribution::type element[Distribution::per_block][blocks_max];
};

/// The words of the counters become elements.
template <class Distribution>
void draw_blocks(const random_draw& draw, words& blocks, int count, results<Distribution>& made) {
  constexpr int per_block = Distribution::per_block;
  encrypt(blocks, draw.seed, count);
  for (int i = 0; i < count; ++i) {
    const u32 word[4] = {static_cast<u32>(blocks.word[0][i]), static_cast<u32>(blocks.word[1][i]),
                         static_cast<u32>(blocks.word[2][i]), static_cast<u32>(blocks.word[3][i])};
    typename Distribution::type out[per_block];
    Distribution::make(draw, word, out);
    for (int k = 0; k < per_block; ++k) made.element[k][i] = out[k];
  }
}

template <class Distribution>
inline void set_counter(words& blocks, int i, u64 block) {
  blocks.word[0][i] = block & 0xffffffffu;
  blocks.word[1][i] = block >> 32;
  blocks.word[2][i] = 4 / Distribution::per_block;
  blocks.word[3][i] = 0;
}

template <class Distribution>
void run(const random_draw& draw, u64 first, std::int64_t count, std::byte* bytes) {
  constexpr int per_block = Distribution::per_block;
  using T = typename Distribution::type;
  auto* out = reinterpret_cast<T*>(bytes);
  const random_draw own = draw;  // no store to `out` can change it
  words blocks;
  results<Distribution> made;
  while (count > 0) {
    const u64 block = first / per_block;
    const int skipped = static_cast<int>(first % per_block);
    const std::int64_t wanted = (skipped + count + per_block - 1) / per_block;
    const int n = wanted < blocks_max ? static_cast<int>(wanted) : blocks_max;
    for (int i = 0; i < n; ++i) set_counter<Distribution>(blocks, i, block + static_cast<u64>(i));
    draw_blocks<Distribution>(own, blocks, n, made);
    const std::int64_t here = n * per_block - skipped < count ? n * per_block - skipped : count;
    if (skipped == 0 && here == n * per_block) {
      for (int i = 0; i < n; ++i)
        for (int k = 0; k < per_block; ++k) out[i * per_block + k] = made.element[k][i];
    } else {
      for (std::int64_t i = 0; i < here; ++i) {
        const auto place = static_cast<int>(skipped + i);
        out[i] = made.element[place % per_block][place / per_block];
      }
    }
    out += here;
    first += static_cast<u64>(here);
    count -= here;
  }
}

template <class Distribution>
void gather(const random_draw& draw, const u64* positions, std::int64_t count, std::byte* bytes) {
  constexpr int per_block = Distribution::per_block;
  auto* out = reinterpret_cast<typename Distribution::type*>(bytes);
  const random_draw own = draw;
  words blocks;
  results<Distribution> made;
  while (count > 0) {
    const int n = count < blocks_max ? static_cast<int>(count) : blocks_max;
    for (int i = 0; i < n; ++i) set_counter<Distribution>(blocks, i, positions[i] / per_block);
    draw_blocks<Distribution>(own, blocks, n, made);
    for (int i = 0; i < n; ++i) out[i] = made.element[positions[i] % per_block][i];
    positions += n;
    out += n;
    count -= n;
  }
}

template <class Distribution>
void set(kernel_table& table, distribution kind, dtype type) {
  table.set(kind, type, {&run<Distribution>, &gather<Distribution>});
}

template <class Float>
void fill_floats(kernel_table& table) {
  constexpr dtype type = type_of<Float>;
  set<by_word<uniform_element<Float>>>(table, distribution::uniform, type);
  set<by_word<exponential_element<Float>>>(table, distribution::exponential, type);
  set<by_word<cauchy_element<Float>>>(table, distribution::cauchy, type);
  set<normal<Float>>(table, distribution::normal, type);
  set<log_normal<Float>>(table, distribution::log_normal, type);
}

}  // namespace

void fill_random(kernel_table& table) {
  fill_floats<float>(table);
  fill_floats<double>(table);
  set<by_word<geometric_element>>(table, distribution::geometric, dtype::float64);
  set<by_word<bernoulli_element>>(table, distribution::bernoulli, dtype::boolean);
  set<by_word<integers_element>>(table, distribution::integers, dtype::uint64);
  set<by_word<words_element>>(table, distribution::words, dtype::uint64);
  set<integers_of_64>(table, distribution::integers_of_64, dtype::uint64);
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
