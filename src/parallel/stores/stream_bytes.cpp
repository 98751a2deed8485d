#include "parallel/stores/stream_bytes.hpp"

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
using stream_lines = void (*)(std::byte* to, const std::byte* from, std::size_t lines,
                              std::span<const needed_soon> needed);

inline void prefetch(std::span<const needed_soon> needed, std::size_t line) {
  for (const needed_soon& next : needed)
    _mm_prefetch(
        reinterpret_cast<const char*>(next.address + static_cast<std::ptrdiff_t>(line) * next.step),
        _MM_HINT_T0);
}

void stream_lines_sse2(std::byte* to, const std::byte* from, std::size_t lines,
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

__attribute__((target("avx"))) void stream_lines_avx(std::byte* to, const std::byte* from,
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

}  // namespace

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes,
                  std::span<const needed_soon> needed) noexcept {
  static const stream_lines stream =
      __builtin_cpu_supports("avx") != 0 ? stream_lines_avx : stream_lines_sse2;
  const std::size_t before = std::min(
      bytes, (line_bytes - reinterpret_cast<std::uintptr_t>(to) % line_bytes) % line_bytes);
  std::memcpy(to, from, before);
  const std::size_t lines = (bytes - before) / line_bytes;
  stream(to + before, from + before, lines, needed);
  const std::size_t done = before + lines * line_bytes;
  std::memcpy(to + done, from + done, bytes - done);
}

void finish_streams() noexcept { _mm_sfence(); }

#else

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes,
                  std::span<const needed_soon>) noexcept {
  std::memcpy(to, from, bytes);
}

void finish_streams() noexcept {}

#endif

}  // namespace shale::parallel
