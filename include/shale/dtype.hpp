// Element types: their names, sizes and kinds, the one dispatch over them, and promotion.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "shale/small_floats.hpp"

namespace [[gnu::visibility("default")]] shale {

/// An element type. The values are written into files and never change.
enum class dtype : std::uint8_t {
  boolean = 1,
  int8 = 2,
  int16 = 3,
  int32 = 4,
  int64 = 5,
  uint8 = 6,
  uint16 = 7,
  uint32 = 8,
  uint64 = 9,
  float16 = 10,
  bfloat16 = 11,
  float32 = 12,
  float64 = 13,
  complex64 = 14,
  complex128 = 15,
  float8_e4m3fn = 16,  ///< storage and conversion only
  float8_e5m2 = 17,    ///< storage and conversion only
};

/// What arithmetic a dtype belongs to; float8 types count as `floating`.
enum class dtype_kind : std::uint8_t {
  boolean,
  signed_integer,
  unsigned_integer,
  floating,
  complex
};

/// The array API's name: "bool", "int8", …, "complex128", "float8_e5m2".
std::string_view name(dtype type) noexcept;

/// The dtype of that name, or nothing. Also takes NumPy's short codes ("f4", "<i8", "|b1").
std::optional<dtype> parse_dtype(std::string_view text) noexcept;

/// The dtype whose file code is `code`, or nothing: the only way from stored bytes to a dtype.
std::optional<dtype> dtype_from_code(std::uint8_t code) noexcept;

/// Bytes of one element; also its alignment, except for complex types, which align as their parts.
std::size_t item_bytes(dtype type) noexcept;

/// Decides promotion, and which operations a dtype has.
dtype_kind kind(dtype type) noexcept;

/// False for the float8 types, which convert but do not compute.
bool computes(dtype type) noexcept;

/// The dtype of `a op b`: the array API's lattice, and PyTorch's rule across kinds (an integer met
/// by a float takes the float's type: int64 with float32 gives float32). float16 with bfloat16
/// gives float32.
/// Throws   invalid_argument for int64 with uint64 (no integer type holds both: cast one), and for
///          float8 with anything but itself
dtype promote(dtype a, dtype b);

/// Whether every value of `from` is a value of `to`.
bool converts_losslessly(dtype from, dtype to) noexcept;

/// A list of C++ types that `visit` chooses from.
template <class... Types>
struct type_list {};

/// The lists by kind; `computing_types` has all that arithmetic takes, `all_types` the float8 types
/// too.
using boolean_types = type_list<bool>;
using integer_types = type_list<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                                std::uint16_t, std::uint32_t, std::uint64_t>;
using floating_types = type_list<float16, bfloat16, float, double>;
using complex_types = type_list<std::complex<float>, std::complex<double>>;
using computing_types =
    type_list<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
              std::uint16_t, std::uint32_t, std::uint64_t, float16, bfloat16, float, double,
              std::complex<float>, std::complex<double>>;
using all_types =
    type_list<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
              std::uint16_t, std::uint32_t, std::uint64_t, float16, bfloat16, float, double,
              std::complex<float>, std::complex<double>, float8_e4m3fn, float8_e5m2>;

/// The dtype of a C++ element type; a compile-time error for any other type.
template <class T>
constexpr dtype dtype_of() noexcept {
  using Type = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Type, bool>) return dtype::boolean;
  else if constexpr (std::is_same_v<Type, float>) return dtype::float32;
  else if constexpr (std::is_same_v<Type, double>) return dtype::float64;
  else if constexpr (std::is_same_v<Type, float16>) return dtype::float16;
  else if constexpr (std::is_same_v<Type, bfloat16>) return dtype::bfloat16;
  else if constexpr (std::is_same_v<Type, std::complex<float>>) return dtype::complex64;
  else if constexpr (std::is_same_v<Type, std::complex<double>>) return dtype::complex128;
  else if constexpr (std::is_same_v<Type, float8_e4m3fn>) return dtype::float8_e4m3fn;
  else if constexpr (std::is_same_v<Type, float8_e5m2>) return dtype::float8_e5m2;
  else {
    static_assert(std::is_integral_v<Type> && sizeof(Type) <= 8, "not an element type of Shale");
    // By size and sign, so that long and long long both find their type.
    constexpr dtype types[2][4] = {{dtype::uint8, dtype::uint16, dtype::uint32, dtype::uint64},
                                   {dtype::int8, dtype::int16, dtype::int32, dtype::int64}};
    constexpr int log2 = sizeof(Type) == 1 ? 0 : sizeof(Type) == 2 ? 1 : sizeof(Type) == 4 ? 2 : 3;
    return types[std::is_signed_v<Type>][log2];
  }
}

namespace detail {
[[noreturn]] void throw_dtype_not_in_list(dtype type);
}  // namespace detail

/// Calls `function(std::type_identity<T>{})` for the type T of `types` whose dtype is `type`: the
/// one dispatch from a run-time dtype to code compiled for it.
/// Cost     a chain of comparisons: once per call, never per element
/// Throws   invalid_argument if the list does not hold it; whatever `function` throws
template <class... Types, class Function>
decltype(auto) visit(dtype type, type_list<Types...>, Function&& function) {
  using Result = std::common_type_t<decltype(function(std::type_identity<Types>{}))...>;
  if constexpr (std::is_void_v<Result>) {
    const bool found =
        ((type == dtype_of<Types>() ? (function(std::type_identity<Types>{}), true) : false) ||
         ...);
    if (!found) detail::throw_dtype_not_in_list(type);
  } else {
    std::optional<Result> result;
    const bool found =
        ((type == dtype_of<Types>() ? (result.emplace(function(std::type_identity<Types>{})), true)
                                    : false) ||
         ...);
    if (!found) detail::throw_dtype_not_in_list(type);
    return Result(std::move(*result));
  }
}

}  // namespace shale
