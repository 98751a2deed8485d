// Chunks that are coded as a program without Shale would do it: bytes grouped by a plain loop, then
// zstd. It is what coding costs at least.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace shale::bench {

/// Contexts and buffers of one thread, which are used again for each chunk.
class plain_codec {
 public:
  /// Elements have 1, 2, 4 or 8 bytes.
  explicit plain_codec(std::size_t item_bytes, int level = 1);
  ~plain_codec();
  plain_codec(plain_codec&&) noexcept;
  plain_codec& operator=(plain_codec&&) noexcept;

  /// Shuffles and compresses a chunk. The result, which is thrown away, has so many bytes.
  std::size_t encode(std::span<const std::byte> chunk);

  /// Decompresses and unshuffles. Bytes that are as many as those of the chunk are not compressed.
  /// Throws   std::runtime_error if they are not what zstd made of such a chunk
  void decode(std::span<const std::byte> stored, std::span<std::byte> chunk);

 private:
  struct end_of_compressor {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  struct end_of_decompressor {
    void operator()(ZSTD_DCtx_s* context) const;
  };

  std::size_t item_bytes_;
  int level_;
  std::unique_ptr<ZSTD_CCtx_s, end_of_compressor> compressor_;
  std::unique_ptr<ZSTD_DCtx_s, end_of_decompressor> decompressor_;
  std::vector<std::byte> shuffled_;
  std::vector<std::byte> packed_;
};

}  // namespace shale::bench
