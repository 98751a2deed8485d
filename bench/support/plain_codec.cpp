#include "support/plain_codec.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace shale::bench {

namespace {

// So many elements stay in the cache while each of their bytes is moved.
constexpr std::size_t block = 4096;

template <class Word>
void shuffle(const std::byte* chunk, std::size_t count, std::byte* __restrict out) {
  const auto* __restrict in = reinterpret_cast<const Word*>(chunk);
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t end = std::min(count, begin + block);
    for (std::size_t k = 0; k < sizeof(Word); ++k)
      for (std::size_t i = begin; i < end; ++i)
        out[k * count + i] = static_cast<std::byte>(in[i] >> (8 * k));
  }
}

template <class Word>
void unshuffle(const std::byte* __restrict in, std::size_t count, std::byte* chunk) {
  auto* __restrict out = reinterpret_cast<Word*>(chunk);
  for (std::size_t i = 0; i < count; ++i) {
    Word value = 0;
    for (std::size_t k = 0; k < sizeof(Word); ++k)
      value = static_cast<Word>(value | static_cast<Word>(in[k * count + i]) << (8 * k));
    out[i] = value;
  }
}

// Calls `function` with a value of the unsigned type of so many bytes.
template <class Function>
void with_word(std::size_t bytes, Function function) {
  switch (bytes) {
    case 1:
      return function(std::uint8_t{});
    case 2:
      return function(std::uint16_t{});
    case 4:
      return function(std::uint32_t{});
    default:
      return function(std::uint64_t{});
  }
}

}  // namespace

void plain_codec::end_of_compressor::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

void plain_codec::end_of_decompressor::operator()(ZSTD_DCtx_s* context) const {
  ZSTD_freeDCtx(context);
}

plain_codec::plain_codec(std::size_t item_bytes, int level)
    : item_bytes_(item_bytes),
      level_(level),
      compressor_(ZSTD_createCCtx()),
      decompressor_(ZSTD_createDCtx()) {}

plain_codec::~plain_codec() = default;
plain_codec::plain_codec(plain_codec&&) noexcept = default;
plain_codec& plain_codec::operator=(plain_codec&&) noexcept = default;

std::size_t plain_codec::encode(std::span<const std::byte> chunk) {
  shuffled_.resize(chunk.size());
  packed_.resize(ZSTD_compressBound(chunk.size()));
  with_word(item_bytes_, [&](auto word) {
    shuffle<decltype(word)>(chunk.data(), chunk.size() / sizeof(word), shuffled_.data());
  });
  const std::size_t written = ZSTD_compressCCtx(compressor_.get(), packed_.data(), packed_.size(),
                                                shuffled_.data(), shuffled_.size(), level_);
  if (ZSTD_isError(written)) throw std::runtime_error(ZSTD_getErrorName(written));
  return written;
}

void plain_codec::decode(std::span<const std::byte> stored, std::span<std::byte> chunk) {
  if (stored.size() == chunk.size()) {
    std::memcpy(chunk.data(), stored.data(), chunk.size());
    return;
  }
  shuffled_.resize(chunk.size());
  const std::size_t got = ZSTD_decompressDCtx(decompressor_.get(), shuffled_.data(),
                                              shuffled_.size(), stored.data(), stored.size());
  if (got != chunk.size()) throw std::runtime_error("not a chunk that zstd compressed");
  with_word(item_bytes_, [&](auto word) {
    unshuffle<decltype(word)>(shuffled_.data(), chunk.size() / sizeof(word), chunk.data());
  });
}

}  // namespace shale::bench
