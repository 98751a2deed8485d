// The compressors that end codec pipelines: zstd, and lz4, which packs less and decodes faster. A
// compressor gets the output of the other stages and makes the stored bytes of a chunk.
//
// Invariants
//   compressors.1  `unpack` writes exactly the bytes that it is given room for, or throws
//                  `corrupt`; sizes that the stored bytes declare make it allocate or write nothing
#pragma once

#include <cstddef>
#include <memory>

#include "format/bytes/types.hpp"
#include "format/codec/stages.hpp"

// Contexts of the two libraries, whose headers the source alone includes.
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace shale::format {

/// The contexts that the libraries need between calls. Each context is made when it is first
/// needed.
/// Cost     about 1.3 MiB for zstd at level 1, more at higher levels; 16 KiB for lz4, 256 KiB from
///          its level 3 on, and 64 KiB more during a call from level 10 on
/// Threads  one at a time
class compressors {
 public:
  compressors() noexcept;
  compressors(const compressors&) = delete;
  compressors& operator=(const compressors&) = delete;
  ~compressors();

  /// The size that `to` of `pack` needs for an input of `bytes`. It is the size of the input,
  /// because longer results are not stored. From lz4's level 10 on it is the size of the longest
  /// possible result: there the library reports missing memory and missing room alike.
  static std::size_t room(const codec_stage& stage, std::size_t bytes) noexcept;

  /// Compresses by a stage that compresses. `from` is not empty, and `to` has `room` for it.
  /// Returns the number of bytes written to the front of `to`, or 0 if `from` does not become
  /// shorter.
  /// Throws   out_of_memory
  std::size_t pack(const codec_stage& stage, bytes_view from, bytes_span to);

  /// Fills `into` with the input of `pack`.
  /// Throws   corrupt (compressors.1), out_of_memory
  void unpack(stage_kind kind, bytes_view stored, bytes_span into);

 private:
  std::size_t pack_zstd(int level, bytes_view from, bytes_span to);
  std::size_t pack_lz4(int level, bytes_view from, bytes_span to);

  struct free_zstd {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  struct free_lz4 {
    void operator()(void* state) const noexcept;
  };

  std::unique_ptr<ZSTD_CCtx_s, free_zstd> zstd_packer_;
  std::unique_ptr<ZSTD_DCtx_s, free_zstd> zstd_unpacker_;
  std::unique_ptr<void, free_lz4> lz4_fast_;  // of levels up to 2
  std::unique_ptr<void, free_lz4> lz4_high_;  // of higher levels
};

}  // namespace shale::format
