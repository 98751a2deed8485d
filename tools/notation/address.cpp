#include "notation/address.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "notation/index_text.hpp"
#include "notation/shape_text.hpp"
#include "notation/text_cursor.hpp"
#include "notation/text_error.hpp"

namespace shale::tools {

namespace {

struct suffix {
  std::string_view text;
  file_format format;
};

constexpr std::string_view bracket_advice = "a '[' in the name of an array is written '[['";

constexpr std::array<suffix, 6> suffixes{{{".shale", file_format::shale},
                                          {".npy", file_format::npy},
                                          {".npz", file_format::npz},
                                          {".t7", file_format::t7},
                                          {".raw", file_format::raw},
                                          {".bin", file_format::raw}}};

struct file_end {
  std::size_t at;
  file_format format;
};

std::optional<file_end> find_file_end(std::string_view text) {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] != '.' || text[at - 1] == '/') continue;
    for (const suffix& candidate : suffixes) {
      if (!text.substr(at).starts_with(candidate.text)) continue;
      const std::size_t end = at + candidate.text.size();
      if (end == text.size() || text[end] == ':' || text[end] == '[')
        return file_end{end, candidate.format};
    }
  }
  return std::nullopt;
}

void take_raw_type(text_cursor& cursor, address& result) {
  const std::size_t first = cursor.at();
  const std::string_view word = cursor.take_word();
  result.raw_dtype = parse_dtype(word);
  if (!result.raw_dtype)
    cursor.fail(word.empty() ? "expected a dtype after ':'" : fmt::format("no dtype '{}'", word),
                first, "a raw file is addressed as x.raw:float32(128,256)");
  if (cursor.take("(")) result.raw_shape = take_shape(cursor, ")");
}

}  // namespace

std::string_view name(file_format format) noexcept {
  switch (format) {
    case file_format::shale:
      return "shale";
    case file_format::npy:
      return "npy";
    case file_format::npz:
      return "npz";
    case file_format::t7:
      return "t7";
    case file_format::raw:
      return "raw";
  }
  return "?";
}

std::optional<file_format> format_of(std::string_view file_name) noexcept {
  for (const suffix& candidate : suffixes)
    if (file_name.ends_with(candidate.text)) return candidate.format;
  return std::nullopt;
}

std::string address::label() const { return array.empty() ? file : tools::label(file, array); }

std::string name_in_address(std::string_view array) {
  std::string text;
  for (const char c : array) text += c == '[' ? std::string("[[") : std::string(1, c);
  return text;
}

std::string label(const std::string& file, std::string_view array) {
  return file + ':' + name_in_address(array);
}

address parse_address(std::string_view text) {
  address result;
  result.text = text;
  const std::optional<file_end> end = find_file_end(text);
  if (!end)
    throw error(
        errc::invalid_argument, fmt::format("address: '{}' names no known format", text),
        {"files end in .shale, .npy, .npz, .t7, .raw or .bin, then :array and [slice] may follow",
         "as in survey.shale:dem[10:20, ::-1]"});
  result.file = text.substr(0, end->at);
  result.format = end->format;
  text_cursor cursor("address", text, end->at);
  if (cursor.take(":")) {
    const std::size_t first = cursor.at();
    if (result.format == file_format::npy)
      cursor.fail("an .npy file holds one array, which has no name", first - 1);
    if (result.format == file_format::raw) {
      take_raw_type(cursor, result);
    } else {
      result.array = cursor.take_name();
      if (result.array.empty()) cursor.fail("expected the name of an array after ':'", first);
    }
  }
  const std::size_t bracket = cursor.at();
  if (cursor.take("[")) {
    result.index = take_index(cursor, result.array.empty() ? "" : bracket_advice);
    if ((result.format == file_format::shale || result.format == file_format::npz) &&
        result.array.empty())
      cursor.fail("a slice needs the name of an array in front", bracket,
                  fmt::format("as in {}:NAME[...]; `shale ls {}` lists the names", result.file,
                              result.file));
  }
  if (!cursor.done()) cursor.fail("expected nothing more here");
  return result;
}

address parse_whole_address(std::string_view text) {
  address result = parse_address(text);
  if (result.index)
    throw_at("address", "a slice cannot stand here: this names a whole array", text,
             text.rfind('['), result.array.empty() ? "" : bracket_advice);
  return result;
}

address parse_array_address(std::string_view text) {
  const address result = parse_whole_address(text);
  if (result.format != file_format::shale)
    throw error(errc::invalid_argument,
                fmt::format("'{}' is not an array in a .shale container", text),
                {"survey.shale:dem is one"});
  if (result.array.empty())
    throw_no_array(result.text,
                   fmt::format("write {0}:NAME; `shale ls {0}` lists the names", text));
  return result;
}

void throw_no_array(const std::string& text, const std::string& advice) {
  throw error(errc::invalid_argument, fmt::format("'{}' does not say which array", text), {advice});
}

std::optional<std::string> named_file(std::string_view text) {
  const std::optional<file_end> end = find_file_end(text);
  if (!end) return std::nullopt;
  return std::string(text.substr(0, end->at));
}

bool is_same_file(const std::string& a, const std::string& b) {
  const std::filesystem::path first(a), second(b);
  std::error_code failure;
  const bool same = std::filesystem::equivalent(first, second, failure);
  return failure ? first.lexically_normal() == second.lexically_normal() : same;
}

}  // namespace shale::tools
