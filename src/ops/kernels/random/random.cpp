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
#include "ops/kernels/dispatch/table.hpp"
#include "ops/kernels/elementwise/elements.hpp"
#include "ops/kernels/elementwise/loops.hpp"
#include "ops/kernels/random/philox.hpp"
#include "ops/kernels/random/reproducible_functions.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

// ---- distributions -----------------------------------------------------------------------------
//
// A distribution makes the elements of some blocks from their words. `per_block` is the number for
// one block.

/// The bits that an element of a floating type uses: one word for float32, two for float64.
template <class Float>
using bits_of = std::conditional_t<sizeof(Float) == 4, u32, u64>;

template <class Float>
inline constexpr int elements_per_block = static_cast<int>(16 / sizeof(Float));

/// Element i of the sequence of all words, or of all pairs of words, whose first word is the lower
/// half.
template <class Bits>
inline Bits bits_at(const words& from, int i) {
  Bits bits;
  __builtin_memcpy(&bits, reinterpret_cast<const Bits*>(from.word) + i, sizeof(bits));
  return bits;
}

/// Distributions whose elements are functions of one word each. `Element::of` is that function.
template <class Element>
struct by_word {
  using type = typename Element::type;
  using bits = typename Element::bits;
  static constexpr int per_block = static_cast<int>(16 / sizeof(bits));

  static void make(const random_draw& draw, const words& from, int blocks, type* out) {
    SHALE_INDEPENDENT
    for (int i = 0; i < blocks * per_block; ++i) out[i] = Element::of(draw, bits_at<bits>(from, i));
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

  static void make(const random_draw& draw, const words& from, int blocks, u64* out) {
    for (int i = 0; i < blocks; ++i) {
      const u128 low = u128{bits_at<u64>(from, 2 * i)} * draw.count;
      const u128 high = u128{bits_at<u64>(from, 2 * i + 1)} * draw.count + (low >> 64);
      out[i] = draw.whole + static_cast<u64>(high >> 64);
    }
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
  static void make(const random_draw& draw, const words& from, int blocks, Float* out) {
    SHALE_INDEPENDENT
    for (int i = 0; i < blocks * per_block; i += 2)
      make_pair(draw, bits_at<bits_of<Float>>(from, i), bits_at<bits_of<Float>>(from, i + 1),
                out + i);
  }
};

template <class Float>
struct log_normal {
  using type = Float;
  static constexpr int per_block = elements_per_block<Float>;

  static void make(const random_draw& draw, const words& from, int blocks, Float* out) {
    normal<Float>::make(draw, from, blocks, out);
    SHALE_INDEPENDENT
    for (int i = 0; i < blocks * per_block; ++i) out[i] = power_of_e(out[i]);
  }
};

// ---- kernels -----------------------------------------------------------------------------------

/// The elements of blocks whose numbers are known. `blocks` is their number.
template <class Distribution>
void draw_blocks(const random_draw& draw, const block_numbers& numbers, int blocks,
                 typename Distribution::type* out) {
  words encrypted;
  encrypt(numbers, 4 / Distribution::per_block, draw.seed, blocks, encrypted);
  Distribution::make(draw, encrypted, blocks, out);
}

template <class Distribution>
void run(const random_draw& draw, u64 first, std::int64_t count, std::byte* bytes) {
  constexpr int per_block = Distribution::per_block;
  auto* out = reinterpret_cast<typename Distribution::type*>(bytes);
  const random_draw own = draw;  // no store to `out` can change it
  block_numbers numbers;
  typename Distribution::type made[per_block * blocks_max];
  while (count > 0) {
    const u64 block = first / per_block;
    const int skipped = static_cast<int>(first % per_block);
    const std::int64_t wanted = (skipped + count + per_block - 1) / per_block;
    const int blocks = wanted < blocks_max ? static_cast<int>(wanted) : blocks_max;
    for (int i = 0; i < blocks; ++i) numbers.number[i] = block + static_cast<u64>(i);
    const std::int64_t all = blocks * per_block - skipped, here = all < count ? all : count;
    if (here == blocks * per_block) {
      draw_blocks<Distribution>(own, numbers, blocks, out);
    } else {
      draw_blocks<Distribution>(own, numbers, blocks, made);
      for (std::int64_t i = 0; i < here; ++i) out[i] = made[skipped + i];
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
  block_numbers numbers;
  typename Distribution::type made[per_block * blocks_max];
  while (count > 0) {
    const int n = count < blocks_max ? static_cast<int>(count) : blocks_max;
    for (int i = 0; i < n; ++i) numbers.number[i] = positions[i] / per_block;
    draw_blocks<Distribution>(own, numbers, n, made);
    for (int i = 0; i < n; ++i)
      out[i] = made[i * per_block + static_cast<int>(positions[i] % per_block)];
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
