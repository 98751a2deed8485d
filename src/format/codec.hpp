// How a chunk becomes stored bytes and back: a pipeline of stages, in the order of their numbers.
//
//   elements -> bitround -> delta -> byte or bit shuffle -> zstd -> stored bytes
//
// Invariants
//   codec.1  decode(encode(x)) == x, except that bitround rounds: then encode(decode(…)) repeats
//   codec.2  a stored chunk is never longer than the chunk: where the pipeline does not shrink it,
//            the elements themselves are stored (after bitround) and the chunk is flagged `raw`
//   codec.3  decoding writes exactly the chunk's known bytes, or throws `corrupt`; whatever the
//            stored bytes say, nothing is allocated or written beyond that
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "format/types.hpp"
#include "shale/dtype.hpp"

namespace shale::format {

/// What a stage does. The values are written into files and never change; stages appear in
/// increasing order of their values, each at most once, at most one shuffle.
enum class stage_kind : std::uint8_t {
  bitround = 1,      ///< parameter: mantissa bits to keep, >= 0; floating and complex types
  delta = 2,         ///< element minus its predecessor, modulo 2^bits; integer types
  byte_shuffle = 3,  ///< all first bytes of the elements, then all second bytes, …
  bit_shuffle = 4,   ///< all lowest bits of the elements, then all second bits, …
  zstd = 5,          ///< parameter: level; one standard frame
};

struct codec_stage {
  stage_kind kind = stage_kind::zstd;
  std::int32_t parameter = 0;

  friend bool operator==(const codec_stage&, const codec_stage&) noexcept = default;
};

/// Bits of a chunk's `flags` in the index.
inline constexpr std::uint32_t chunk_flag_raw = 1;  ///< no stage applies: the elements themselves

/// Buffers and compressor contexts that calls reuse; one for each thread that codes.
/// Cost     grows to the largest chunk seen plus its compression bound, and stays
class codec_workspace {
 public:
  codec_workspace() noexcept;
  codec_workspace(const codec_workspace&) = delete;
  codec_workspace& operator=(const codec_workspace&) = delete;
  ~codec_workspace();

  /// The calling thread's own.
  static codec_workspace& of_this_thread();

  /// A buffer of that many bytes for the caller's own use (reading stored bytes into), kept apart
  /// from those that encode and decode use. Valid until the next call. Throws out_of_memory.
  bytes_span staging(std::size_t bytes);

  struct state;
  state& own();  // for the coder itself

 private:
  std::unique_ptr<state> state_;
};

/// What `encode` made.
struct encoded_chunk {
  bytes_view stored;        ///< inside the workspace, or the input itself: valid until its next use
  std::uint32_t flags = 0;  ///< chunk_flag_…
};

/// One array's pipeline, checked once.
/// Threads  immutable: any number of threads may use one, each with its own workspace
class codec {
 public:
  /// Throws   invalid_argument: order, repeated stage, a stage that the dtype cannot have, a
  ///          parameter out of range
  codec(std::vector<codec_stage> stages, shale::dtype type);

  const std::vector<codec_stage>& stages() const noexcept { return stages_; }

  /// The bytes to store for a whole chunk of elements, already padded to its full size.
  /// Throws   out_of_memory
  encoded_chunk encode(bytes_view chunk, codec_workspace& workspace) const;

  /// Fills `chunk`, whose size is the chunk's full size in bytes.
  /// Throws   corrupt (codec.3), out_of_memory
  void decode(bytes_view stored, std::uint32_t flags, bytes_span chunk,
              codec_workspace& workspace) const;

 private:
  std::vector<codec_stage> stages_;
  std::size_t item_bytes_;
  shale::dtype type_;
};

}  // namespace shale::format
