#include "shale/dtype.hpp"

#include <algorithm>
#include <array>

#include "shale/error.hpp"

namespace shale {

namespace {

// Describes the values of a dtype. Floating values are sign * m * 2^e, where m has `digits` bits.
// Integers have no exponent, so `digits` is the number of bits of the largest one.
struct traits {
  dtype type;
  std::string_view name;
  std::string_view numpy;  // kind and width, without byte order; empty if NumPy has no such type
  std::uint8_t bytes;
  dtype_kind kind;
  std::int16_t digits;            // significant bits of a value (of one part, if complex)
  std::int16_t lowest_exponent;   // of the smallest subnormal value
  std::int16_t highest_exponent;  // of the highest bit of the largest finite value
};

using enum dtype_kind;

constexpr std::array<traits, 17> table{{
    {dtype::boolean, "bool", "b1", 1, boolean, 1, 0, 0},
    {dtype::int8, "int8", "i1", 1, signed_integer, 7, 0, 6},
    {dtype::int16, "int16", "i2", 2, signed_integer, 15, 0, 14},
    {dtype::int32, "int32", "i4", 4, signed_integer, 31, 0, 30},
    {dtype::int64, "int64", "i8", 8, signed_integer, 63, 0, 62},
    {dtype::uint8, "uint8", "u1", 1, unsigned_integer, 8, 0, 7},
    {dtype::uint16, "uint16", "u2", 2, unsigned_integer, 16, 0, 15},
    {dtype::uint32, "uint32", "u4", 4, unsigned_integer, 32, 0, 31},
    {dtype::uint64, "uint64", "u8", 8, unsigned_integer, 64, 0, 63},
    {dtype::float16, "float16", "f2", 2, floating, 11, -24, 15},
    {dtype::bfloat16, "bfloat16", "", 2, floating, 8, -133, 127},
    {dtype::float32, "float32", "f4", 4, floating, 24, -149, 127},
    {dtype::float64, "float64", "f8", 8, floating, 53, -1074, 1023},
    {dtype::complex64, "complex64", "c8", 8, complex, 24, -149, 127},
    {dtype::complex128, "complex128", "c16", 16, complex, 53, -1074, 1023},
    {dtype::float8_e4m3fn, "float8_e4m3fn", "", 1, floating, 4, -9, 8},
    {dtype::float8_e5m2, "float8_e5m2", "", 1, floating, 3, -16, 15},
}};

[[noreturn]] void throw_no_dtype(dtype type) {
  throw error(errc::invalid_argument, "invalid dtype",
              {"got " + std::to_string(static_cast<int>(type)) + ", wanted 1 (bool) to " +
                   std::to_string(table.size()) + " (" + std::string(table.back().name) + ")",
               "dtype_from_code returns the dtype of a number, if there is one"});
}

constexpr bool is_dtype(dtype type) noexcept {
  return type >= table.front().type && type <= table.back().type;
}

constexpr const traits& traits_of(dtype type) {
  if (!is_dtype(type)) [[unlikely]]
    throw_no_dtype(type);
  return table[static_cast<std::size_t>(type) - 1];
}

constexpr bool table_is_indexed_by_code() {
  return std::all_of(table.begin(), table.end(),
                     [](const traits& entry) { return &traits_of(entry.type) == &entry; });
}
static_assert(table_is_indexed_by_code());

[[noreturn]] void throw_no_promotion(dtype a, dtype b, std::string advice) {
  throw error(errc::invalid_argument,
              std::string(name(a)) + " and " + std::string(name(b)) + " have no common dtype",
              {std::move(advice)});
}

// Both dtypes are floating and different; neither is a float8.
dtype promote_floating(dtype a, dtype b) {
  if (item_bytes(a) == item_bytes(b)) return dtype::float32;  // float16 with bfloat16
  return item_bytes(a) > item_bytes(b) ? a : b;
}

dtype promote_integers(dtype a, dtype b) {
  if (kind(a) == kind(b)) return item_bytes(a) > item_bytes(b) ? a : b;
  const dtype signed_type = kind(a) == signed_integer ? a : b;
  const dtype unsigned_type = kind(a) == signed_integer ? b : a;
  // A signed type holds all values of an unsigned type only if it has at least twice its width.
  switch (std::max(item_bytes(signed_type), 2 * item_bytes(unsigned_type))) {
    case 2:
      return dtype::int16;
    case 4:
      return dtype::int32;
    case 8:
      return dtype::int64;
  }
  throw_no_promotion(a, b,
                     "no integer type holds both: cast the uint64 to int64, or both to float64");
}

}  // namespace

std::string_view name(dtype type) noexcept {
  return is_dtype(type) ? traits_of(type).name : "no dtype";
}

std::optional<dtype> parse_dtype(std::string_view text) noexcept {
  for (const auto& entry : table)
    if (text == entry.name) return entry.type;
  if (!text.empty() && (text[0] == '<' || text[0] == '=' || text[0] == '|')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  for (const auto& entry : table)
    if (text == entry.numpy) return entry.type;
  return std::nullopt;
}

std::optional<dtype> dtype_from_code(std::uint8_t code) noexcept {
  if (code < 1 || code > table.size()) return std::nullopt;
  return static_cast<dtype>(code);
}

std::size_t item_bytes(dtype type) { return traits_of(type).bytes; }

dtype_kind kind(dtype type) { return traits_of(type).kind; }

bool is_integer(dtype type) {
  return kind(type) == signed_integer || kind(type) == unsigned_integer;
}

bool is_inexact(dtype type) { return kind(type) == floating || kind(type) == dtype_kind::complex; }

bool computes(dtype type) {
  return traits_of(type).type != dtype::float8_e4m3fn && type != dtype::float8_e5m2;
}

dtype promote(dtype a, dtype b) {
  if (traits_of(a).type == traits_of(b).type) return a;
  if (!computes(a) || !computes(b))
    throw_no_promotion(
        a, b, "float8 types support only storage and conversion: cast to float16 or float32");
  if (kind(a) == boolean) return b;
  if (kind(b) == boolean) return a;
  if (is_integer(a) && is_integer(b)) return promote_integers(a, b);
  if (is_integer(a)) return b;
  if (is_integer(b)) return a;
  if (kind(a) == floating && kind(b) == floating) return promote_floating(a, b);
  const int digits = std::max(traits_of(a).digits, traits_of(b).digits);
  return digits > traits_of(dtype::complex64).digits ? dtype::complex128 : dtype::complex64;
}

bool converts_losslessly(dtype from, dtype to) {
  const traits& source = traits_of(from);
  const traits& target = traits_of(to);
  if (from == to) return true;
  if (source.kind == complex && target.kind != complex) return false;
  if (source.kind == floating && target.kind != floating && target.kind != complex) return false;
  if (target.kind == boolean) return false;
  if (source.kind == signed_integer && target.kind == unsigned_integer) return false;
  // The remaining condition concerns bits. The lowest value of a signed type, -2^digits, needs no
  // condition of its own: it is a single bit, and every target that passes can represent it.
  return source.digits <= target.digits && source.highest_exponent <= target.highest_exponent &&
         source.lowest_exponent >= target.lowest_exponent;
}

void detail::throw_dtype_not_in_list(dtype type) {
  throw error(
      errc::invalid_argument, std::string(name(type)) + " cannot be used here",
      {computes(type)
           ? "the operation is not defined for this dtype: cast first"
           : "float8 types support only storage and conversion: cast to float16 or float32"});
}

}  // namespace shale
