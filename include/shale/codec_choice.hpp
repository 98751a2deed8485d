// Chooses how the chunks of an array are compressed, by trying pipelines on a sample.
#pragma once

#include <cstdint>
#include <vector>

#include "shale/array_spec.hpp"
#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A pipeline that was tried, and the bytes that it stores for the sample.
struct codec_trial {
  codec_spec codec;
  std::uint64_t stored_bytes = 0;
};

/// The result of `choose_codec`.
struct codec_choice {
  codec_spec codec;

  /// The bytes of the sample's elements.
  std::uint64_t sample_bytes = 0;

  /// The pipelines that were tried, in order. Empty if the array has no elements.
  std::vector<codec_trial> trials;
};

/// Chooses the pipeline for an array of `spec` that will hold `values`. The sample is up to four
/// blocks of at most 1 MiB, spread evenly over the array. Pipelines are tried in the order of the
/// speed at which they decode most data, the fastest first: no compression, lz4:1, zstd:1, zstd:6.
/// Each compressor is tried with each shuffle, and for integers also with delta. A later pipeline
/// replaces the one chosen so far only if it stores less than nine tenths of that one's bytes. The
/// choice depends on the elements alone, not on the machine's speed.
///
/// `spec.codec.bitround` is kept, and never added, because it loses digits. The other stages of
/// `spec.codec`, `spec.kind` and `spec.fill_value` are ignored.
/// Shape    `values` are broadcast to `spec.shape`; elements are converted to `spec.dtype`
/// Cost     evaluates the sample: this reads whole tiles of sources, and whole operands of
///          reductions. Then it compresses up to 72 MiB on the calling thread
/// Throws   as `eval`; invalid_argument (a shape that does not fit, a bitround that the dtype
///          cannot have, a chunk shape of another rank or with an extent below 1)
codec_choice choose_codec(const expr& values, const array_spec& spec);

}  // namespace shale
