// Logical dtypes: what integers stand for, besides numbers. Points in time and durations are int64.
// A text of fixed length is a row of characters along the last axis: of uint8 (NumPy's S) or of
// uint32 (NumPy's U). The engine computes with the integers; commands and foreign files use the
// logical dtype, and logical_arrays.hpp stores it beside an array.
// Throws   invalid_argument from every function, if a value is no logical dtype; out_of_memory
// Threads  safe
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/index.hpp"

namespace [[gnu::visibility("default")]] shale {

/// What the integers stand for.
enum class logical_kind : std::uint8_t {
  datetime,   ///< int64: a count of units since the beginning of 1970, in UTC
  timedelta,  ///< int64: a count of units
  bytes,      ///< uint8: any bytes, ended by zeros or by the end of the axis
  text,       ///< uint32: code points of Unicode, ended likewise
};

/// NumPy's units of time. Years and months are those of the calendar.
enum class time_unit : std::uint8_t {
  generic,  ///< none is known
  year,
  month,
  week,
  day,
  hour,
  minute,
  second,
  millisecond,
  microsecond,
  nanosecond,
  picosecond,
  femtosecond,
  attosecond,
};

/// A logical dtype. The length of texts is that of the last axis, so it is not a part of it.
struct logical_dtype {
  logical_kind kind = logical_kind::datetime;
  time_unit unit = time_unit::generic;  ///< of datetime and timedelta; else generic

  /// How many units one count is, at least 1, as in `datetime64[25s]`; 1 without a unit.
  std::int32_t step = 1;

  friend bool operator==(const logical_dtype&, const logical_dtype&) noexcept = default;
};

/// The count that marks a missing datetime or timedelta: NumPy's NaT.
inline constexpr std::int64_t not_a_time = std::numeric_limits<std::int64_t>::min();

/// The dtype of the integers.
dtype storage_dtype(const logical_dtype& type);

/// Whether the last axis holds the characters of a text: it is no axis of the logical array.
bool has_character_axis(const logical_dtype& type);

/// The axes without that of the characters.
dims logical_shape(const logical_dtype& type, const dims& shape);

/// Throws   invalid_argument unless integers of that dtype and shape can stand for it: naming the
///          dtype that it needs, or the axis of characters that is missing
void require_storage(const logical_dtype& type, dtype storage, const dims& shape);

/// The name, which NumPy's `dtype` reads: "datetime64[ns]", "timedelta64[25s]", "datetime64", "S",
/// "U".
std::string name(const logical_dtype& type);

/// The name for an array of that shape, with the length of texts: "datetime64[ns]", "S10", "U5".
std::string name(const logical_dtype& type, const dims& shape);

/// The logical dtype of that name without a length, or nothing.
std::optional<logical_dtype> parse_logical_dtype(std::string_view text);

/// A count of a datetime, in ISO 8601 as NumPy writes it: down to the unit, with a year of four
/// digits or more; "NaT". For a timedelta, and for a datetime without a unit, the text is the
/// count. If the date does not fit in 64 bits of the unit, the text is the count and the unit.
///
///    time_text({.kind = logical_kind::datetime, .unit = time_unit::second}, 0);
///    // "1970-01-01T00:00:00"
///
/// Throws   invalid_argument also for bytes and texts
/// Source   the proleptic Gregorian calendar by H. Hinnant's algorithm civil_from_days
std::string time_text(const logical_dtype& type, std::int64_t count);

/// The bytes before the zeros at the end.
std::string decoded_text(std::span<const std::uint8_t> characters);

/// The characters before the zeros at the end, as UTF-8. A number that is no character of Unicode
/// becomes U+FFFD.
std::string decoded_text(std::span<const std::uint32_t> characters);

}  // namespace shale
