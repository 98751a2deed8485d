#include "format/codec/shuffle.hpp"

#include <cstdint>
#include <cstring>

#include "format/bytes/byte_order.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace shale::format {
namespace {

#ifdef __SSE2__

// Sixteen elements of `Width` bytes fill `Width` registers. One step splits each pair of registers
// into a register of their even bytes and one of their odd bytes. The even registers then hold the
// even byte positions of all elements, the odd registers the odd ones. The recursion does the same
// with both halves. After log2(Width) steps, each register holds one byte position of all sixteen
// elements: a plane. `stride` is the distance between two planes of the present half in `out`.
// `zip_planes` is the inverse: it interleaves the bytes of two registers at each step.
template <std::size_t Width>
inline void split_planes(const __m128i* in, __m128i* out, std::size_t stride) noexcept {
  if constexpr (Width == 1) {
    out[0] = in[0];
  } else {
    const __m128i low = _mm_set1_epi16(0x00ff);
    __m128i even[Width / 2];
    __m128i odd[Width / 2];
    for (std::size_t j = 0; j < Width / 2; ++j) {
      const __m128i a = in[2 * j];
      const __m128i b = in[2 * j + 1];
      even[j] = _mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low));
      odd[j] = _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8));
    }
    split_planes<Width / 2>(even, out, stride * 2);
    split_planes<Width / 2>(odd, out + stride, stride * 2);
  }
}

template <std::size_t Width>
inline void zip_planes(const __m128i* in, std::size_t stride, __m128i* out) noexcept {
  if constexpr (Width == 1) {
    out[0] = in[0];
  } else {
    __m128i even[Width / 2];
    __m128i odd[Width / 2];
    zip_planes<Width / 2>(in, stride * 2, even);
    zip_planes<Width / 2>(in + stride, stride * 2, odd);
    for (std::size_t j = 0; j < Width / 2; ++j) {
      out[2 * j] = _mm_unpacklo_epi8(even[j], odd[j]);
      out[2 * j + 1] = _mm_unpackhi_epi8(even[j], odd[j]);
    }
  }
}

// Returns how many elements were done. A plain loop does the rest.
template <std::size_t Width>
std::size_t shuffle_groups(const std::byte* from, std::size_t count, std::byte* to) noexcept {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m128i in[Width];
    __m128i planes[Width];
    for (std::size_t k = 0; k < Width; ++k)
      in[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * Width + 16 * k));
    split_planes<Width>(in, planes, 1);
    for (std::size_t k = 0; k < Width; ++k)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + k * count + i), planes[k]);
  }
  return i;
}

template <std::size_t Width>
std::size_t unshuffle_groups(const std::byte* from, std::size_t count, std::byte* to) noexcept {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m128i planes[Width];
    __m128i out[Width];
    for (std::size_t k = 0; k < Width; ++k)
      planes[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k * count + i));
    zip_planes<Width>(planes, 1, out);
    for (std::size_t k = 0; k < Width; ++k)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * Width + 16 * k), out[k]);
  }
  return i;
}

#else

template <std::size_t Width>
std::size_t shuffle_groups(const std::byte*, std::size_t, std::byte*) noexcept {
  return 0;
}

template <std::size_t Width>
std::size_t unshuffle_groups(const std::byte*, std::size_t, std::byte*) noexcept {
  return 0;
}

#endif

template <std::size_t Width>
void shuffle(const std::byte* from, std::size_t count, std::byte* to) noexcept {
  const std::size_t done = shuffle_groups<Width>(from, count, to);
  for (std::size_t k = 0; k < Width; ++k)
    for (std::size_t i = done; i < count; ++i) to[k * count + i] = from[i * Width + k];
}

template <std::size_t Width>
void unshuffle(const std::byte* from, std::size_t count, std::byte* to) noexcept {
  const std::size_t done = unshuffle_groups<Width>(from, count, to);
  for (std::size_t i = done; i < count; ++i)
    for (std::size_t k = 0; k < Width; ++k) to[i * Width + k] = from[k * count + i];
}

// Transposes an 8 x 8 matrix of bits: bit c of byte r becomes bit r of byte c. Three rounds swap
// the off-diagonal blocks of 1 x 1, 2 x 2 and 4 x 4 bits.
// Source: Warren, Hacker's Delight, 2nd edition, section 7-3 (the 8x8 transpose).
std::uint64_t transpose_bits(std::uint64_t x) noexcept {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaull;
  x = x ^ t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000cccc0000ccccull;
  x = x ^ t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ull;
  return x ^ t ^ (t << 28);
}

// `plane` holds one byte of each of `count` elements (a multiple of 8); its 8 bit planes follow
// each other at `to`.
void split_bits(const std::byte* plane, std::size_t count, std::byte* to) noexcept {
  const std::size_t stride = count / 8;
  std::size_t i = 0;
#ifdef __SSE2__
  for (; i + 16 <= count; i += 16) {
    __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(plane + i));
    for (std::size_t bit = 8; bit-- > 0; v = _mm_add_epi8(v, v))
      store(to + bit * stride + i / 8, static_cast<std::uint16_t>(_mm_movemask_epi8(v)));
  }
#endif
  for (; i < count; i += 8) {
    const std::uint64_t bits = transpose_bits(load<std::uint64_t>(plane + i));
    for (std::size_t bit = 0; bit < 8; ++bit)
      to[bit * stride + i / 8] = static_cast<std::byte>(bits >> (8 * bit));
  }
}

void zip_bits(const std::byte* from, std::size_t count, std::byte* plane) noexcept {
  const std::size_t stride = count / 8;
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t bits = 0;
    for (std::size_t bit = 0; bit < 8; ++bit)
      bits |= static_cast<std::uint64_t>(from[bit * stride + i / 8]) << (8 * bit);
    store(plane + i, transpose_bits(bits));
  }
}

void copy(bytes_view from, bytes_span to) noexcept {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

void shuffle_bytes(bytes_view from, std::size_t item_bytes, bytes_span to) noexcept {
  const std::size_t count = from.size() / item_bytes;
  switch (item_bytes) {
    case 2:
      return shuffle<2>(from.data(), count, to.data());
    case 4:
      return shuffle<4>(from.data(), count, to.data());
    case 8:
      return shuffle<8>(from.data(), count, to.data());
    case 16:
      return shuffle<16>(from.data(), count, to.data());
    default:
      return copy(from, to);
  }
}

void unshuffle_bytes(bytes_view from, std::size_t item_bytes, bytes_span to) noexcept {
  const std::size_t count = from.size() / item_bytes;
  switch (item_bytes) {
    case 2:
      return unshuffle<2>(from.data(), count, to.data());
    case 4:
      return unshuffle<4>(from.data(), count, to.data());
    case 8:
      return unshuffle<8>(from.data(), count, to.data());
    case 16:
      return unshuffle<16>(from.data(), count, to.data());
    default:
      return copy(from, to);
  }
}

void shuffle_bits(bytes_view from, std::size_t item_bytes, bytes_span scratch,
                  bytes_span to) noexcept {
  const std::size_t count = from.size() / item_bytes / 8 * 8;
  const std::size_t grouped = count * item_bytes;
  shuffle_bytes(from.first(grouped), item_bytes, scratch.first(grouped));
  for (std::size_t k = 0; k < item_bytes; ++k)
    split_bits(scratch.data() + k * count, count, to.data() + k * count);
  copy(from.subspan(grouped), to.subspan(grouped));
}

void unshuffle_bits(bytes_view from, std::size_t item_bytes, bytes_span scratch,
                    bytes_span to) noexcept {
  const std::size_t count = from.size() / item_bytes / 8 * 8;
  const std::size_t grouped = count * item_bytes;
  for (std::size_t k = 0; k < item_bytes; ++k)
    zip_bits(from.data() + k * count, count, scratch.data() + k * count);
  unshuffle_bytes(scratch.first(grouped), item_bytes, to.first(grouped));
  copy(from.subspan(grouped), to.subspan(grouped));
}

}  // namespace shale::format
