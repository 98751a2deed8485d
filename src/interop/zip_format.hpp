// Defines the constants of the ZIP format that reader and writer share.
// Source   PKWARE's APPNOTE.TXT 6.3, sections 4.3 (records), 4.4 (fields), 4.5 (extra fields)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shale::interop::zip {

inline constexpr std::uint32_t local_signature = 0x04034b50;
inline constexpr std::uint32_t central_signature = 0x02014b50;
inline constexpr std::uint32_t end_signature = 0x06054b50;
inline constexpr std::uint32_t end64_signature = 0x06064b50;
inline constexpr std::uint32_t end64_locator_signature = 0x07064b50;

// The size of each record without its variable parts.
inline constexpr std::size_t local_bytes = 30;
inline constexpr std::size_t central_bytes = 46;
inline constexpr std::size_t end_bytes = 22;
inline constexpr std::size_t end64_bytes = 56;
inline constexpr std::size_t end64_locator_bytes = 20;

inline constexpr std::uint16_t extra_zip64 = 0x0001;

/// Padding as zipalign writes it: an alignment, then zeros.
inline constexpr std::uint16_t extra_alignment = 0xd935;

// A field with all bits set means that a ZIP64 record holds the number.
inline constexpr std::uint32_t ones_32 = 0xffffffff;
inline constexpr std::uint16_t ones_16 = 0xffff;

inline constexpr std::uint16_t method_stored = 0;
inline constexpr std::uint16_t method_deflate = 8;

inline constexpr std::uint16_t flag_encrypted = 1u << 0;
inline constexpr std::uint16_t flag_descriptor = 1u << 3;  ///< sizes and CRC follow the data
inline constexpr std::uint16_t flag_patch = 1u << 5;
inline constexpr std::uint16_t flag_strong_encryption = 1u << 6;
inline constexpr std::uint16_t flag_utf8 = 1u << 11;
inline constexpr std::uint16_t flag_masked = 1u << 13;

/// Reads the little-endian number at `offset`; its bytes must lie inside `bytes`.
template <class Integer>
Integer load(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    value = static_cast<Integer>(value | std::to_integer<Integer>(bytes[offset + i]) << (8 * i));
  return value;
}

}  // namespace shale::interop::zip
