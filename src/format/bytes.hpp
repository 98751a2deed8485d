// Numbers to and from bytes: little-endian fields, big-endian keys. Works on any alignment.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>

#include "format/types.hpp"

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

/// The little-endian number at `at`.
template <std::unsigned_integral T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return std::endian::native == std::endian::little ? value : detail::reversed(value);
}

template <std::unsigned_integral T>
void store(std::byte* at, T value) noexcept {
  if constexpr (std::endian::native != std::endian::little) value = detail::reversed(value);
  std::memcpy(at, &value, sizeof value);
}

inline checksum128 load_checksum(const std::byte* at) noexcept {
  return {load<std::uint64_t>(at), load<std::uint64_t>(at + 8)};
}

inline void store_checksum(std::byte* at, const checksum128& checksum) noexcept {
  store(at, checksum.low);
  store(at + 8, checksum.high);
}

/// 24 bytes: where the page is, and what it must hash to.
inline constexpr std::size_t page_ref_bytes = 24;

inline page_ref load_page_ref(const std::byte* at) noexcept {
  return {load<std::uint64_t>(at), load_checksum(at + 8)};
}

inline void store_page_ref(std::byte* at, const page_ref& ref) noexcept {
  store(at, ref.offset);
  store_checksum(at + 8, ref.checksum);
}

/// Appends the number to a key, big-endian: keys that are compared byte by byte then order as their
/// numbers do.
inline void append_ordered(std::string& key, std::uint64_t number) {
  if constexpr (std::endian::native == std::endian::little) number = detail::reversed(number);
  char bytes[8];
  std::memcpy(bytes, &number, 8);
  key.append(bytes, 8);
}

/// The big-endian number at `at` of a key that is long enough.
inline std::uint64_t load_ordered(std::string_view key, std::size_t at) noexcept {
  std::uint64_t number;
  std::memcpy(&number, key.data() + at, 8);
  return std::endian::native == std::endian::little ? detail::reversed(number) : number;
}

}  // namespace shale::format
