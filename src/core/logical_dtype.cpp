#include "shale/logical_dtype.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "shale/error.hpp"

namespace shale {

namespace {

// What NumPy calls the units, in their order. The name of `generic` is never written.
constexpr std::array<std::string_view, 14> unit_codes{
    "generic", "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"};

constexpr std::string_view datetime_name = "datetime64";
constexpr std::string_view timedelta_name = "timedelta64";

bool is_time(const logical_dtype& type) {
  return type.kind == logical_kind::datetime || type.kind == logical_kind::timedelta;
}

void require_valid(const logical_dtype& type) {
  detail::require_enumerator(type.kind, logical_kind::text, "logical_kind");
  detail::require_enumerator(type.unit, time_unit::attosecond, "time_unit");
  if (type.step < 1)
    throw error(errc::invalid_argument, "not a logical dtype",
                {fmt::format("got {} units a count, wanted at least 1", type.step)});
  const bool has_unit = type.unit != time_unit::generic;
  if ((has_unit && !is_time(type)) || (!has_unit && type.step != 1))
    throw error(errc::invalid_argument, "not a logical dtype",
                {has_unit ? "texts have no unit" : "a number of units needs a unit"});
}

std::string_view code_of(time_unit unit) { return unit_codes[static_cast<std::size_t>(unit)]; }

// "[25s]", "[s]", or nothing for the generic unit.
std::string unit_text(const logical_dtype& type) {
  if (type.unit == time_unit::generic) return {};
  const std::string step = type.step == 1 ? "" : fmt::format("{}", type.step);
  return fmt::format("[{}{}]", step, code_of(type.unit));
}

// Parses "[25s]" or "" behind the name of a kind.
std::optional<logical_dtype> parse_unit(logical_kind kind, std::string_view text) {
  logical_dtype type{.kind = kind};
  if (text.empty()) return type;
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  if (text.front() >= '0' && text.front() <= '9') {
    const char* const end = text.data() + text.size();
    const auto [rest, failure] = std::from_chars(text.data(), end, type.step);
    if (failure != std::errc() || type.step < 1) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  }
  const auto known = std::find(unit_codes.begin() + 1, unit_codes.end(), text);
  if (known == unit_codes.end()) return std::nullopt;
  type.unit = static_cast<time_unit>(known - unit_codes.begin());
  return type;
}

// ---- times --------------------------------------------------------------------------------------

struct quotient {
  std::int64_t whole;
  std::int64_t rest;  // 0 to divisor - 1
};

quotient floor_divide(std::int64_t value, std::int64_t divisor) {
  const std::int64_t rest = value % divisor;
  return rest < 0 ? quotient{value / divisor - 1, rest + divisor} : quotient{value / divisor, rest};
}

// "2026-01-31" of the day with that number, of which day 0 is the first of 1970. Years of the
// algorithm begin with March, so that a leap day is the last of its year, and an era has 400 years.
std::optional<std::string> date_text(std::int64_t day) {
  constexpr std::int64_t days_before_1970 = 719'468, days_of_era = 146'097, years_of_era = 400;
  const auto since_march_0 = checked_add(day, days_before_1970);
  if (!since_march_0) return std::nullopt;
  const auto [era, day_of_era] = floor_divide(*since_march_0, days_of_era);
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_from_march = (5 * day_of_year + 2) / 153;
  const std::int64_t day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  const std::int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const std::int64_t year = era * years_of_era + year_of_era + (month <= 2 ? 1 : 0);
  return fmt::format("{:04}-{:02}-{:02}", year, month, day_of_month);
}

// The time of a day, down to the unit.
std::string clock_text(time_unit unit, std::int64_t seconds) {
  const std::int64_t hour = seconds / 3600, minute = seconds / 60 % 60;
  if (unit == time_unit::hour) return fmt::format("T{:02}", hour);
  if (unit == time_unit::minute) return fmt::format("T{:02}:{:02}", hour, minute);
  return fmt::format("T{:02}:{:02}:{:02}", hour, minute, seconds % 60);
}

// `units` of hours or shorter units since 1970.
std::optional<std::string> day_and_clock(time_unit unit, std::int64_t units) {
  std::string fraction;
  std::int64_t whole = units;  // units of hours, minutes or seconds
  if (unit > time_unit::second) {
    const int digits = 3 * (static_cast<int>(unit) - static_cast<int>(time_unit::second));
    std::int64_t per_second = 1;
    for (int digit = 0; digit < digits; ++digit) per_second *= 10;
    const quotient parts = floor_divide(units, per_second);
    whole = parts.whole;
    fraction = fmt::format(".{:0{}}", parts.rest, digits);
  }
  const std::int64_t unit_seconds = unit == time_unit::hour     ? 3600
                                    : unit == time_unit::minute ? 60
                                                                : 1;
  const quotient days = floor_divide(whole, 86'400 / unit_seconds);
  const auto date = date_text(days.whole);
  if (!date) return std::nullopt;
  return *date + clock_text(unit, days.rest * unit_seconds) + fraction;
}

// `units` since 1970; nothing if a step of the way does not fit into 64 bits.
std::optional<std::string> iso_text(time_unit unit, std::int64_t units) {
  constexpr std::int64_t epoch_year = 1970;
  if (unit == time_unit::year || unit == time_unit::month) {
    const quotient months = unit == time_unit::month ? floor_divide(units, 12) : quotient{units, 0};
    const auto year = checked_add(months.whole, epoch_year);
    if (!year) return std::nullopt;
    if (unit == time_unit::year) return fmt::format("{:04}", *year);
    return fmt::format("{:04}-{:02}", *year, months.rest + 1);
  }
  if (unit == time_unit::day) return date_text(units);
  if (unit == time_unit::week) {
    const auto days = checked_mul(units, std::int64_t{7});
    return days ? date_text(*days) : std::nullopt;
  }
  return day_and_clock(unit, units);
}

void append_utf8(std::string& text, std::uint32_t character) {
  constexpr std::uint32_t replacement = 0xfffd;
  const bool is_surrogate = character >= 0xd800 && character < 0xe000;
  const std::uint32_t value = is_surrogate || character > 0x10ffff ? replacement : character;
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto put_last = [&](int bits) { put(0x80u | ((value >> bits) & 0x3fu)); };
  if (value < 0x80) return put(value);
  if (value < 0x800) {
    put(0xc0u | (value >> 6));
  } else if (value < 0x10000) {
    put(0xe0u | (value >> 12));
    put_last(6);
  } else {
    put(0xf0u | (value >> 18));
    put_last(12);
    put_last(6);
  }
  put_last(0);
}

// The characters before the zeros at the end.
template <class Character>
std::span<const Character> without_end(std::span<const Character> characters) {
  std::size_t length = characters.size();
  while (length > 0 && characters[length - 1] == 0) --length;
  return characters.first(length);
}

}  // namespace

dtype storage_dtype(const logical_dtype& type) {
  require_valid(type);
  if (is_time(type)) return dtype::int64;
  return type.kind == logical_kind::bytes ? dtype::uint8 : dtype::uint32;
}

bool has_character_axis(const logical_dtype& type) {
  require_valid(type);
  return !is_time(type);
}

dims logical_shape(const logical_dtype& type, const dims& shape) {
  dims result;
  const index_t rank = shape.size() - (has_character_axis(type) && !shape.empty() ? 1 : 0);
  for (index_t axis = 0; axis < rank; ++axis) result.push_back(shape[axis]);
  return result;
}

void require_storage(const logical_dtype& type, dtype storage, const dims& shape) {
  detail::allocating([&] {
    const dtype wanted = storage_dtype(type);
    if (storage != wanted)
      throw error(
          errc::invalid_argument, "elements do not have the dtype of their logical dtype",
          {fmt::format("got {}, {} is stored as {}", name(storage), name(type), name(wanted))});
    if (has_character_axis(type) && shape.empty())
      throw error(errc::invalid_argument, "texts have no axis of characters",
                  {"got rank 0, the last axis holds the characters"});
  });
}

std::string name(const logical_dtype& type) {
  return detail::allocating([&] {
    require_valid(type);
    if (type.kind == logical_kind::bytes) return std::string("S");
    if (type.kind == logical_kind::text) return std::string("U");
    return std::string(type.kind == logical_kind::datetime ? datetime_name : timedelta_name) +
           unit_text(type);
  });
}

std::string name(const logical_dtype& type, const dims& shape) {
  return detail::allocating([&] {
    const bool is_text = has_character_axis(type) && !shape.empty();
    return is_text ? fmt::format("{}{}", name(type), shape[shape.size() - 1]) : name(type);
  });
}

std::optional<logical_dtype> parse_logical_dtype(std::string_view text) {
  if (text == "S") return logical_dtype{.kind = logical_kind::bytes};
  if (text == "U") return logical_dtype{.kind = logical_kind::text};
  for (const auto& [kind, start] : {std::pair(logical_kind::datetime, datetime_name),
                                    std::pair(logical_kind::timedelta, timedelta_name)})
    if (text.starts_with(start)) return parse_unit(kind, text.substr(start.size()));
  return std::nullopt;
}

std::string time_text(const logical_dtype& type, std::int64_t count) {
  return detail::allocating([&] {
    if (has_character_axis(type))
      throw error(errc::invalid_argument, "a text is no time", {"got " + name(type)});
    if (count == not_a_time) return std::string("NaT");
    if (type.kind == logical_kind::timedelta || type.unit == time_unit::generic)
      return fmt::format("{}", count);
    const auto units = checked_mul(count, std::int64_t{type.step});
    if (units)
      if (auto text = iso_text(type.unit, *units)) return *std::move(text);
    return fmt::format("{}{}", count, unit_text(type));
  });
}

std::string decoded_text(std::span<const std::uint8_t> characters) {
  return detail::allocating([&] {
    std::string text;
    for (const std::uint8_t character : without_end(characters))
      text += static_cast<char>(character);
    return text;
  });
}

std::string decoded_text(std::span<const std::uint32_t> characters) {
  return detail::allocating([&] {
    std::string text;
    for (const std::uint32_t character : without_end(characters)) append_utf8(text, character);
    return text;
  });
}

}  // namespace shale
