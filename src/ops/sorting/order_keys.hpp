// Keys: unsigned integers in whose order the elements of a dtype are sorted.
//
// Invariants
//   keys.1  the key of a is less than that of b if and only if a comes before b
//   keys.2  all NaNs have one key, and so have -0 and +0: elements that are equal stay in the order
//           in which they were
//   keys.3  the key of a number that is neither NaN nor -0 gives back its bits
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "shale/dtype.hpp"
#include "shale/small_floats.hpp"

namespace shale::ops {

/// The types whose elements have an order: all but complex.
using ordered_types = type_list<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, float16,
                                bfloat16, float, double, float8_e4m3fn, float8_e5m2>;

template <std::size_t width>
struct bits_of_width;
template <>
struct bits_of_width<1> {
  using type = std::uint8_t;
};
template <>
struct bits_of_width<2> {
  using type = std::uint16_t;
};
template <>
struct bits_of_width<4> {
  using type = std::uint32_t;
};
template <>
struct bits_of_width<8> {
  using type = std::uint64_t;
};

// The largest magnitude, as bits, that is not NaN; 0 for types without NaN.
template <class T>
constexpr std::uint64_t largest_number() {
  if constexpr (std::is_same_v<T, double>) return 0x7ff0000000000000;
  else if constexpr (std::is_same_v<T, float>) return 0x7f800000;
  else if constexpr (std::is_same_v<T, float16>) return 0x7c00;
  else if constexpr (std::is_same_v<T, bfloat16>) return 0x7f80;
  else if constexpr (std::is_same_v<T, float8_e4m3fn>) return 0x7e;
  else if constexpr (std::is_same_v<T, float8_e5m2>) return 0x7c;
  else return 0;
}

/// The keys of the elements of type `T`. A descending order has the complements of the keys of the
/// ascending one, so NaN comes first in it.
template <class T>
struct order_keys {
  using bits = typename bits_of_width<sizeof(T)>::type;
  static constexpr bits sign = static_cast<bits>(bits{1} << (8 * sizeof(T) - 1));
  static constexpr bits largest = static_cast<bits>(largest_number<T>());
  static constexpr bool has_nan = largest != 0;
  static constexpr bits last = std::numeric_limits<bits>::max();

  static constexpr bits magnitude(bits element) { return static_cast<bits>(element & ~sign); }
  static constexpr bool is_nan(bits element) { return has_nan && magnitude(element) > largest; }
  static constexpr bool is_minus_zero(bits element) { return has_nan && element == sign; }

  /// The ascending key of an element, as bits. It has no branches, so loops of it are vectorised.
  static constexpr bits key(bits element) {
    if constexpr (std::is_same_v<T, bool>) {
      return element != 0 ? 1 : 0;
    } else if constexpr (!has_nan) {
      return static_cast<bits>(std::is_signed_v<T> ? element ^ sign : element);
    } else {
      const auto negative = static_cast<bits>(-static_cast<bits>(element >> (8 * sizeof(T) - 1)));
      // Negative numbers: the complement, plus 1, so that -0 gets the key of +0.
      const auto number = static_cast<bits>(
          static_cast<bits>(element ^ static_cast<bits>(negative | sign)) - negative);
      const auto nan = static_cast<bits>(-static_cast<bits>(magnitude(element) > largest ? 1 : 0));
      return static_cast<bits>(number | nan);
    }
  }

  /// The element with that ascending key; a quiet NaN and +0 where several elements have it.
  static constexpr bits element(bits key) {
    if constexpr (std::is_same_v<T, bool>) {
      return key;
    } else if constexpr (!has_nan) {
      return static_cast<bits>(std::is_signed_v<T> ? key ^ sign : key);
    } else {
      const auto negative = static_cast<bits>(static_cast<bits>(key >> (8 * sizeof(T) - 1)) - 1);
      const auto number =
          static_cast<bits>(static_cast<bits>(key + negative) ^ static_cast<bits>(negative | sign));
      return key == last ? static_cast<bits>(~sign) : number;
    }
  }
};

}  // namespace shale::ops
