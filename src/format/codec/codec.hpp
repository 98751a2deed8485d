// Codes chunks: a pipeline of stages turns elements into stored bytes, and back. Stages run in the
// order of their numbers.
//
//   elements -> bitround -> delta -> byte or bit shuffle -> zstd or lz4 -> stored bytes
//
// Invariants
//   codec.1  decode(encode(x)) == x, unless bitround rounds x; coding the rounded elements again
//            changes nothing
//   codec.2  a stored chunk is never longer than the chunk: where the pipeline does not shrink it,
//            the elements themselves are stored (after bitround) and the chunk is flagged `raw`
//   codec.3  decoding writes exactly as many bytes as the chunk has, or throws `corrupt`; the
//            stored bytes cannot make it allocate or write more
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/codec/stages.hpp"
#include "shale/dtype.hpp"

namespace shale::format {

/// Bits of a chunk's `flags` in the index.
inline constexpr std::uint32_t chunk_flag_raw = 1;  ///< the elements themselves (codec.2)

/// Buffers and compressor contexts that calls reuse. Each thread that codes has one.
/// Cost     grows to a few times the largest chunk seen, and does not shrink
class codec_workspace {
 public:
  codec_workspace() noexcept;
  codec_workspace(const codec_workspace&) = delete;
  codec_workspace& operator=(const codec_workspace&) = delete;
  ~codec_workspace();

  /// The workspace of the calling thread. It stays usable while the thread ends, until destructors
  /// of thread_local objects have run. In the thread that ends the process it is never destroyed.
  /// Throws bad_alloc.
  static codec_workspace& of_this_thread();

  /// A buffer of that many bytes for the caller, who reads stored bytes into it. `encode` and
  /// `decode` do not use it. Valid until the next call. Throws out_of_memory.
  bytes_span staging(std::size_t bytes);

  struct state;
  state& own();  // for the coder itself

 private:
  std::unique_ptr<state> state_;
};

/// The result of `encode`.
struct encoded_chunk {
  bytes_view stored;        ///< in the workspace, or the input itself: valid until their next use
  std::uint32_t flags = 0;  ///< chunk_flag_…
};

/// The pipeline of one array. Its stages are checked when it is made.
/// Threads  immutable: any number of threads may use one, each with its own workspace
class codec {
 public:
  /// Throws   invalid_argument: order, repeated stage, a stage that the dtype cannot have, a
  ///          parameter out of range
  codec(std::vector<codec_stage> stages, shale::dtype type);

  const std::vector<codec_stage>& stages() const noexcept { return stages_; }

  /// The elements as `decode` will return them: after bitround, if the pipeline has it. They are in
  /// the workspace, or the input itself, and valid until the workspace's next use.
  /// Throws   out_of_memory
  bytes_view rounded(bytes_view elements, codec_workspace& workspace) const;

  /// The bytes to store for a whole chunk of elements, already padded to its full size.
  /// Throws   out_of_memory
  encoded_chunk encode(bytes_view chunk, codec_workspace& workspace) const;

  /// Checks what `decode` checks before it looks at the stored bytes: flags and length.
  /// Throws   corrupt
  void require_form(std::size_t stored_bytes, std::uint32_t flags, std::size_t chunk_bytes) const;

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
