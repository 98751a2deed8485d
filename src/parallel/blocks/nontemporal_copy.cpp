#include "parallel/blocks/nontemporal_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace shale::parallel {

#if defined(__SSE2__)

namespace {

constexpr std::size_t line_bytes = 64;

// Stores whole lines to `to`, which is the start of a line. All stores of a line stand together, so
// that they leave as one write.
using copy_lines = void (*)(std::byte* to, const std::byte* from, std::size_t lines,
                            std::span<const needed_soon> needed);

inline void prefetch(std::span<const needed_soon> needed, std::size_t line) {
  for (const needed_soon& next : needed) {
    const std::byte* const first = next.address + static_cast<std::ptrdiff_t>(line) * next.step;
    std::ptrdiff_t done = 0;
    do {
      _mm_prefetch(reinterpret_cast<const char*>(first + done), _MM_HINT_T0);
      done += static_cast<std::ptrdiff_t>(line_bytes);
    } while (done < next.step);
  }
}

void copy_lines_sse2(std::byte* to, const std::byte* from, std::size_t lines,
                     std::span<const needed_soon> needed) {
  for (std::size_t line = 0; line < lines; ++line, to += line_bytes, from += line_bytes) {
    prefetch(needed, line);
    const auto* const in = reinterpret_cast<const __m128i*>(from);
    auto* const out = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
}

__attribute__((target("avx"))) void copy_lines_avx(std::byte* to, const std::byte* from,
                                                   std::size_t lines,
                                                   std::span<const needed_soon> needed) {
  for (std::size_t line = 0; line < lines; ++line, to += line_bytes, from += line_bytes) {
    prefetch(needed, line);
    const auto* const in = reinterpret_cast<const __m256i*>(from);
    auto* const out = reinterpret_cast<__m256i*>(to);
    const __m256i a = _mm256_loadu_si256(in), b = _mm256_loadu_si256(in + 1);
    _mm256_stream_si256(out, a);
    _mm256_stream_si256(out + 1, b);
  }
}

// One store for each line leaves more room in the processor's queue of stores, so that the work on
// the next elements begins while these lines leave.
__attribute__((target("avx512f"))) void copy_lines_avx512(std::byte* to, const std::byte* from,
                                                          std::size_t lines,
                                                          std::span<const needed_soon> needed) {
  for (std::size_t line = 0; line < lines; ++line, to += line_bytes, from += line_bytes) {
    prefetch(needed, line);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
}

copy_lines fastest_copy() noexcept {
  if (__builtin_cpu_supports("avx512f") != 0) return copy_lines_avx512;
  return __builtin_cpu_supports("avx") != 0 ? copy_lines_avx : copy_lines_sse2;
}

}  // namespace

void copy_nontemporally(std::byte* to, const std::byte* from, std::size_t bytes,
                        std::span<const needed_soon> needed) noexcept {
  static const copy_lines copy = fastest_copy();
  const std::size_t before = std::min(
      bytes, (line_bytes - reinterpret_cast<std::uintptr_t>(to) % line_bytes) % line_bytes);
  std::memcpy(to, from, before);
  const std::size_t lines = (bytes - before) / line_bytes;
  copy(to + before, from + before, lines, needed);
  const std::size_t done = before + lines * line_bytes;
  std::memcpy(to + done, from + done, bytes - done);
}

void order_nontemporal_stores() noexcept { _mm_sfence(); }

#else

void copy_nontemporally(std::byte* to, const std::byte* from, std::size_t bytes,
                        std::span<const needed_soon>) noexcept {
  std::memcpy(to, from, bytes);
}

void order_nontemporal_stores() noexcept {}

#endif

}  // namespace shale::parallel
