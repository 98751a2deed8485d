// Reads and writes numbers in the byte order of the file: little-endian in fields, big-endian in
// keys. The bytes need no alignment.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>

#include "format/bytes/types.hpp"

namespace shale::format {

namespace detail {
template <std::unsigned_integral T>
constexpr T reversed(T value) noexcept {
  if constexpr (sizeof(T) == 1) return value;
  else if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  else if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  else return __builtin_bswap64(value);
}
}  // namespace detail

/// The little-endian number at `address`.
template <std::unsigned_integral T>
T load(const std::byte* address) noexcept {
  T value;
  std::memcpy(&value, address, sizeof value);
  return std::endian::native == std::endian::little ? value : detail::reversed(value);
}

template <std::unsigned_integral T>
void store(std::byte* address, T value) noexcept {
  if constexpr (std::endian::native != std::endian::little) value = detail::reversed(value);
  std::memcpy(address, &value, sizeof value);
}

inline checksum128 load_checksum(const std::byte* address) noexcept {
  return {load<std::uint64_t>(address), load<std::uint64_t>(address + 8)};
}

inline void store_checksum(std::byte* address, const checksum128& checksum) noexcept {
  store(address, checksum.low);
  store(address + 8, checksum.high);
}

/// Bytes of a stored page reference: offset (8) and checksum (16).
inline constexpr std::size_t page_ref_bytes = 24;

inline page_ref load_page_ref(const std::byte* address) noexcept {
  return {load<std::uint64_t>(address), load_checksum(address + 8)};
}

inline void store_page_ref(std::byte* address, const page_ref& ref) noexcept {
  store(address, ref.offset);
  store_checksum(address + 8, ref.checksum);
}

/// Appends the number to a key, big-endian: keys that are compared byte by byte then order as their
/// numbers do.
inline void append_ordered(std::string& key, std::uint64_t number) {
  if constexpr (std::endian::native == std::endian::little) number = detail::reversed(number);
  char bytes[8];
  std::memcpy(bytes, &number, 8);
  key.append(bytes, 8);
}

/// The big-endian number at `offset` of a key that is long enough.
inline std::uint64_t load_ordered(std::string_view key, std::size_t offset) noexcept {
  std::uint64_t number;
  std::memcpy(&number, key.data() + offset, 8);
  return std::endian::native == std::endian::little ? detail::reversed(number) : number;
}

}  // namespace shale::format
