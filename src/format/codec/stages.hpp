// Lists the stages of codec pipelines, with the properties of each that other code needs.
// docs/architecture.md ("To add a stage of the codec") names all places that a new stage changes.
// The numbers rise in a pipeline, so a new stage cannot run between two that have neighbouring
// numbers, unless the format allows another order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace shale::format {

/// The kinds of stages. The values are written into files and never change. In a pipeline they
/// increase, so each kind appears at most once; at most one of them is a shuffle, and at most one
/// compresses.
enum class stage_kind : std::uint8_t {
  bitround = 1,      ///< parameter: mantissa bits to keep, >= 0; floating and complex types
  delta = 2,         ///< element minus its predecessor, modulo 2^bits; integer types
  byte_shuffle = 3,  ///< all first bytes of the elements, then all second bytes, …
  bit_shuffle = 4,   ///< all lowest bits of the elements, then all second bits, …
  zstd = 5,          ///< parameter: level; one standard frame
  lz4 = 6,           ///< parameter: level; one block, without a frame
};

struct codec_stage {
  stage_kind kind = stage_kind::zstd;
  std::int32_t parameter = 0;

  friend bool operator==(const codec_stage&, const codec_stage&) noexcept = default;
};

struct stage_facts {
  stage_kind kind;
  std::string_view name;
  /// The range of the parameter, in any dtype. A stage without a parameter stores 0.
  std::int32_t parameter_min;
  std::int32_t parameter_max;
  bool is_shuffle;
  /// The most bytes that one byte of output can stand for; 1 if the stage keeps the number of
  /// bytes. A stage with more compresses: it comes last, and decoding begins with it.
  std::uint64_t ratio_max;

  constexpr bool takes_parameter() const noexcept { return parameter_max > parameter_min; }
  constexpr bool compresses() const noexcept { return ratio_max > 1; }
};

/// In the order of a pipeline.
inline constexpr std::array<stage_facts, 6> all_stages{{
    {stage_kind::bitround, "bitround", 0, 52, false, 1},
    {stage_kind::delta, "delta", 0, 0, false, 1},
    {stage_kind::byte_shuffle, "byte shuffle", 0, 0, true, 1},
    {stage_kind::bit_shuffle, "bit shuffle", 0, 0, true, 1},
    // A zstd block takes at least 4 bytes and holds at most 128 KiB.
    {stage_kind::zstd, "zstd", -100, 22, false, 32768},
    // In an lz4 block a byte lengthens a copy of earlier bytes by at most 255.
    {stage_kind::lz4, "lz4", -100, 12, false, 255},
}};

/// The facts of the stage that has this number in files; null if this build does not know it.
constexpr const stage_facts* find_stage(int number) noexcept {
  for (const stage_facts& stage : all_stages)
    if (static_cast<int>(stage.kind) == number) return &stage;
  return nullptr;
}

/// The most bytes of a chunk that one stored byte can stand for after these stages; 1 if none of
/// them compresses.
constexpr std::uint64_t stored_ratio_max(std::span<const codec_stage> stages) noexcept {
  std::uint64_t ratio = 1;
  for (const codec_stage& stage : stages)
    if (const stage_facts* const facts = find_stage(static_cast<int>(stage.kind)))
      ratio = std::max(ratio, facts->ratio_max);
  return ratio;
}

}  // namespace shale::format
