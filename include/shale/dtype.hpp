// Element types: their names, sizes and kinds, the dispatch from a dtype to a C++ type, and type
// promotion.
// Throws   invalid_argument from every function that is not noexcept, if a value is not a dtype
// Threads  safe
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

/// An element type. The numbers are stored in files and never change.
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

/// The kind of a dtype's numbers, which decides promotion. float8 types count as `floating`,
/// although they have no arithmetic.
enum class dtype_kind : std::uint8_t {
  boolean,
  signed_integer,
  unsigned_integer,
  floating,
  complex
};

/// The name in the array API: "bool", "int8", …, "complex128", "float8_e5m2". A value that is no
/// dtype gives "no dtype".
std::string_view name(dtype type) noexcept;

/// The dtype with that name or with that short code of NumPy ("f4", "<i8", "|b1"), or nothing.
std::optional<dtype> parse_dtype(std::string_view text) noexcept;

/// The dtype whose number in files is `code`, or nothing. Use it for every stored number.
std::optional<dtype> dtype_from_code(std::uint8_t code) noexcept;

/// Bytes of one element. This is also its alignment, except that complex types have the alignment
/// of their parts.
std::size_t item_bytes(dtype type);

/// The kind of a dtype. It decides promotion, and which operations the dtype has.
dtype_kind kind(dtype type);

/// Whether the elements are integers. A bool is not an integer.
bool is_integer(dtype type);

/// Whether the elements are floats, real or complex, and may be NaN.
bool is_inexact(dtype type);

/// False for the float8 types, which can only be stored and converted.
bool computes(dtype type);

/// The dtype of the result of `a op b`. Within a kind, and between bool and any kind, the array
/// API's lattice applies. Across kinds PyTorch's rule applies: an integer with a float gives the
/// float's dtype, so int64 with float32 gives float32. float16 with bfloat16 gives float32.
/// Throws   invalid_argument for int64 with uint64 (no integer type holds both: cast one), and for
///          float8 with any other dtype
/// Source   the array API standard, type promotion; PyTorch across kinds
dtype promote(dtype a, dtype b);

/// Whether `to` can represent every value of `from` exactly.
bool converts_losslessly(dtype from, dtype to);

/// A list of C++ element types, from which `visit` chooses one.
template <class... Types>
struct type_list {};

/// The element types of each kind. `computing_types` has all types with arithmetic, `all_types` has
/// the float8 types too.
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

/// The dtype of a C++ element type. Any other type is a compile-time error.
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
    // The type is chosen by size and sign, so that long and long long both find theirs.
    constexpr dtype types[2][4] = {{dtype::uint8, dtype::uint16, dtype::uint32, dtype::uint64},
                                   {dtype::int8, dtype::int16, dtype::int32, dtype::int64}};
    constexpr int log2 = sizeof(Type) == 1 ? 0 : sizeof(Type) == 2 ? 1 : sizeof(Type) == 4 ? 2 : 3;
    return types[std::is_signed_v<Type>][log2];
  }
}

namespace detail {
[[noreturn]] void throw_dtype_not_in_list(dtype type);
}  // namespace detail

/// Calls `function(std::type_identity<T>{})` for the type T in the list whose dtype is `type`, and
/// returns its result. This is the dispatch from a dtype at run time to code for a C++ type.
/// Cost     up to one comparison for each type in the list: use it once per call, not per element
/// Throws   invalid_argument (the list does not have that type), and whatever `function` throws
template <class... Types, class Function>
decltype(auto) visit(dtype type, type_list<Types...>, Function&& function) {
  using Result = std::common_type_t<decltype(function(std::type_identity<Types>{}))...>;
  if constexpr (std::is_void_v<Result>) {
    if (!((type == dtype_of<Types>() && (function(std::type_identity<Types>{}), true)) || ...))
      detail::throw_dtype_not_in_list(type);
  } else {
    std::optional<Result> result;
    const auto call = [&](auto type_tag) { return result.emplace(function(type_tag)), true; };
    if (!((type == dtype_of<Types>() && call(std::type_identity<Types>{})) || ...))
      detail::throw_dtype_not_in_list(type);
    return Result(std::move(*result));
  }
}

}  // namespace shale
