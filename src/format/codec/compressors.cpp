#include "format/codec/compressors.hpp"

#include <fmt/format.h>
#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "format/codec/corrupt_chunk.hpp"
#include "shale/error.hpp"

namespace shale::format {

namespace {

[[noreturn]] void throw_no_memory(const char* library) {
  throw error(errc::out_of_memory, fmt::format("{} has no memory to work in", library));
}

// Levels from here on use the slow compressor; those below 0 make the fast one look for fewer
// matches. The library's own limit differs between its versions.
constexpr int lz4_level_of_high = 3;

// Levels from here on take memory during each call. Without it the library returns 0, as it does if
// the result does not fit.
constexpr int lz4_level_that_takes_memory = 10;

constexpr int lz4_acceleration(int level) noexcept { return level < 0 ? 1 - level : 1; }

// Decodes one zstd frame.
void unpack_zstd(bytes_view stored, bytes_span into, ZSTD_DCtx* context) {
  const std::size_t frame = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(frame) || frame != stored.size())
    throw_corrupt_chunk("its stored bytes are not one zstd frame");
  const std::size_t got =
      ZSTD_decompressDCtx(context, into.data(), into.size(), stored.data(), stored.size());
  if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation) throw_no_memory("zstd");
  if (ZSTD_isError(got)) throw_corrupt_chunk(fmt::format("zstd: {}", ZSTD_getErrorName(got)));
  if (got != into.size())
    throw_corrupt_chunk(fmt::format("wanted {} bytes, its frame holds {}", into.size(), got));
}

// Decodes one lz4 block. A block does not say how much it holds: that is known from the chunk.
void unpack_lz4(bytes_view stored, bytes_span into) {
  if (stored.size() > std::size_t{std::numeric_limits<int>::max()})
    throw_corrupt_chunk(fmt::format("{} bytes are no lz4 block", stored.size()));
  const int got = LZ4_decompress_safe(
      reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(into.data()),
      static_cast<int>(stored.size()), static_cast<int>(into.size()));
  if (got < 0) throw_corrupt_chunk("its stored bytes are not one lz4 block");
  if (static_cast<std::size_t>(got) != into.size())
    throw_corrupt_chunk(fmt::format("wanted {} bytes, its block holds {}", into.size(), got));
}

}  // namespace

void compressors::free_zstd::operator()(ZSTD_CCtx* context) const noexcept {
  ZSTD_freeCCtx(context);
}
void compressors::free_zstd::operator()(ZSTD_DCtx* context) const noexcept {
  ZSTD_freeDCtx(context);
}
void compressors::free_lz4::operator()(void* state) const noexcept { std::free(state); }

compressors::compressors() noexcept = default;
compressors::~compressors() = default;

std::size_t compressors::room(const codec_stage& stage, std::size_t bytes) noexcept {
  if (stage.kind != stage_kind::lz4 || stage.parameter < lz4_level_that_takes_memory) return bytes;
  return static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(bytes)));
}

std::size_t compressors::pack(const codec_stage& stage, bytes_view from, bytes_span to) {
  return stage.kind == stage_kind::zstd ? pack_zstd(stage.parameter, from, to)
                                        : pack_lz4(stage.parameter, from, to);
}

std::size_t compressors::pack_zstd(int level, bytes_view from, bytes_span to) {
  if (!zstd_packer_) zstd_packer_.reset(ZSTD_createCCtx());
  if (!zstd_packer_) throw_no_memory("zstd");
  const std::size_t written = ZSTD_compressCCtx(zstd_packer_.get(), to.data(), from.size() - 1,
                                                from.data(), from.size(), level);
  if (!ZSTD_isError(written)) return written;
  if (ZSTD_getErrorCode(written) != ZSTD_error_dstSize_tooSmall) throw_no_memory("zstd");
  return 0;
}

std::size_t compressors::pack_lz4(int level, bytes_view from, bytes_span to) {
  const bool high = level >= lz4_level_of_high;
  std::unique_ptr<void, free_lz4>& state = high ? lz4_high_ : lz4_fast_;
  if (!state)
    state.reset(
        std::malloc(static_cast<std::size_t>(high ? LZ4_sizeofStateHC() : LZ4_sizeofState())));
  if (!state) throw_no_memory("lz4");
  // Any result fits into the room of the levels that take memory, so 0 has one meaning there.
  const bool takes_memory = level >= lz4_level_that_takes_memory;
  const auto* const source = reinterpret_cast<const char*>(from.data());
  auto* const target = reinterpret_cast<char*>(to.data());
  const int given = static_cast<int>(from.size());
  const int most = takes_memory ? static_cast<int>(to.size()) : given - 1;
  const int written =
      high ? LZ4_compress_HC_extStateHC(state.get(), source, target, given, most, level)
           : LZ4_compress_fast_extState(state.get(), source, target, given, most,
                                        lz4_acceleration(level));
  if (takes_memory && written <= 0) throw_no_memory("lz4");
  return written > 0 && written < given ? static_cast<std::size_t>(written) : 0;
}

void compressors::unpack(stage_kind kind, bytes_view stored, bytes_span into) {
  if (kind == stage_kind::lz4) {
    unpack_lz4(stored, into);
    return;
  }
  if (!zstd_unpacker_) zstd_unpacker_.reset(ZSTD_createDCtx());
  if (!zstd_unpacker_) throw_no_memory("zstd");
  unpack_zstd(stored, into, zstd_unpacker_.get());
}

}  // namespace shale::format
