#include "address.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "text_error.hpp"

namespace shale::tools {

namespace {

struct suffix {
  std::string_view text;
  file_format format;
};

constexpr std::string_view bracket_advice = "a '[' in the name of an array is written '[['";

constexpr std::array<suffix, 5> suffixes{{{".shale", file_format::shale},
                                          {".npy", file_format::npy},
                                          {".npz", file_format::npz},
                                          {".raw", file_format::raw},
                                          {".bin", file_format::raw}}};

struct file_end {
  std::size_t at;
  file_format format;
};

std::optional<file_end> find_file_end(std::string_view text) {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] != '.' || text[at - 1] == '/') continue;
    for (const suffix& each : suffixes) {
      if (!text.substr(at).starts_with(each.text)) continue;
      const std::size_t end = at + each.text.size();
      if (end == text.size() || text[end] == ':' || text[end] == '[')
        return file_end{end, each.format};
    }
  }
  return std::nullopt;
}

// Reads characters of one text and knows where it stands in it.
class cursor {
 public:
  cursor(std::string_view subject, std::string_view text, std::size_t at = 0)
      : subject_(subject), text_(text), at_(at) {}

  std::size_t at() const { return at_; }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool done() {
    skip_spaces();
    return at_ == text_.size();
  }
  bool sees(std::string_view token) {
    skip_spaces();
    return text_.substr(at_).starts_with(token);
  }
  bool take(std::string_view token) {
    if (!sees(token)) return false;
    at_ += token.size();
    return true;
  }
  bool sees_number() {
    skip_spaces();
    const std::size_t digit = at_ + (sees("-") || sees("+") ? 1 : 0);
    return digit < text_.size() && text_[digit] >= '0' && text_[digit] <= '9';
  }
  index_t take_number() {
    skip_spaces();
    const std::size_t first = at_;
    if (text_[at_] == '+') ++at_;
    index_t value = 0;
    const char* end = text_.data() + text_.size();
    const auto [rest, failure] = std::from_chars(text_.data() + at_, end, value);
    if (failure != std::errc()) fail("the number does not fit in 64 bits", first);
    at_ = static_cast<std::size_t>(rest - text_.data());
    return value;
  }
  // A word of letters, digits and '_'.
  std::string_view take_word() {
    skip_spaces();
    const std::size_t first = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    return text_.substr(first, at_ - first);
  }
  // The name of an array: up to a '[' that is not doubled.
  std::string take_name() {
    std::string name;
    while (at_ < text_.size()) {
      if (text_[at_] == '[') {
        if (!text_.substr(at_).starts_with("[[")) break;
        ++at_;
      }
      name += text_[at_++];
    }
    return name;
  }
  [[noreturn]] void fail(std::string_view message, std::size_t at,
                         std::string_view advice = {}) const {
    throw_at(subject_, message, text_, at, advice);
  }
  [[noreturn]] void fail(std::string_view message) const { fail(message, at_); }

 private:
  std::string_view subject_;
  std::string_view text_;
  std::size_t at_;
};

std::optional<index_t> take_bound(cursor& in) {
  if (in.sees_number()) return in.take_number();
  return std::nullopt;
}

index_entry take_index_entry(cursor& in, std::string_view advice) {
  if (in.take("...") || in.take("…")) return ellipsis;
  in.skip_spaces();
  const std::size_t first = in.at();
  if (in.sees("N") || in.sees("n")) {
    const std::string_view word = in.take_word();
    if (word == "None" || word == "newaxis") return newaxis;
    in.fail(fmt::format("'{}' is not an index", word), first, advice);
  }
  slice which;
  which.start = take_bound(in);
  if (!in.take(":")) {
    if (!which.start) in.fail("expected an index, a slice, '...' or None", in.at(), advice);
    return *which.start;
  }
  which.stop = take_bound(in);
  if (in.take(":")) {
    in.skip_spaces();
    const std::size_t step_at = in.at();
    which.step = take_bound(in).value_or(1);
    if (which.step == 0) in.fail("a slice's step cannot be 0", step_at);
  }
  return which;
}

// "[" has been taken.
std::vector<index_entry> take_index(cursor& in, std::string_view advice) {
  std::vector<index_entry> entries;
  bool ellipsis_seen = false;
  do {
    if (in.sees("]") && !entries.empty()) break;  // a trailing comma, as in Python
    in.skip_spaces();
    const std::size_t first = in.at();
    entries.push_back(take_index_entry(in, advice));
    if (entries.back().what() == index_entry::kind::rest) {
      if (ellipsis_seen) in.fail("only one '...' can be resolved", first);
      ellipsis_seen = true;
    }
    if (entries.size() > 2 * static_cast<std::size_t>(max_rank))
      in.fail(fmt::format("more than {} entries", 2 * max_rank), first);
  } while (in.take(","));
  if (!in.take("]")) in.fail("expected ',' or ']'");
  return entries;
}

// The numbers of a shape up to `close`, which is taken; "" stands for the end of the text.
dims take_shape(cursor& in, std::string_view close) {
  dims shape;
  const auto closed = [&] { return close.empty() ? in.done() : in.sees(close); };
  while (!closed()) {
    in.skip_spaces();
    const std::size_t first = in.at();
    if (!in.sees_number()) in.fail("expected a whole number");
    const index_t extent = in.take_number();
    if (extent < 0) in.fail("an extent cannot be negative", first);
    if (shape.size() == max_rank) in.fail(fmt::format("more than {} axes", max_rank), first);
    shape.push_back(extent);
    if (closed()) break;
    if (!in.take(",") && !in.take("x"))
      in.fail(close.empty() ? "expected ','" : fmt::format("expected ',' or '{}'", close));
  }
  if (!close.empty()) in.take(close);
  return shape;
}

void parse_raw_type(cursor& in, address& result) {
  const std::size_t first = in.at();
  const std::string_view word = in.take_word();
  result.raw_dtype = parse_dtype(word);
  if (!result.raw_dtype)
    in.fail(word.empty() ? "expected a dtype after ':'" : fmt::format("no dtype '{}'", word), first,
            "a raw file is addressed as x.raw:float32(128,256)");
  if (in.take("(")) result.raw_shape = take_shape(in, ")");
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
    case file_format::raw:
      return "raw";
  }
  return "?";
}

std::string address::label() const { return array.empty() ? file : tools::label(file, array); }

std::string label(const std::string& file, std::string_view array) {
  std::string text = file + ':';
  for (const char each : array) text += each == '[' ? std::string("[[") : std::string(1, each);
  return text;
}

address parse_address(std::string_view text) {
  address result;
  result.text = text;
  const std::optional<file_end> end = find_file_end(text);
  if (!end)
    throw error(
        errc::invalid_argument, fmt::format("address: '{}' names no known format", text),
        {"files end in .shale, .npy, .npz, .raw or .bin, then :array and [slice] may follow",
         "as in survey.shale:dem[10:20, ::-1]"});
  result.file = text.substr(0, end->at);
  result.format = end->format;
  cursor in("address", text, end->at);
  if (in.take(":")) {
    const std::size_t first = in.at();
    if (result.format == file_format::npy)
      in.fail("an .npy file holds one array, which has no name", first - 1);
    if (result.format == file_format::raw) {
      parse_raw_type(in, result);
    } else {
      result.array = in.take_name();
      if (result.array.empty()) in.fail("expected the name of an array after ':'", first);
    }
  }
  const std::size_t bracket = in.at();
  if (in.take("[")) {
    result.index = take_index(in, result.array.empty() ? "" : bracket_advice);
    if ((result.format == file_format::shale || result.format == file_format::npz) &&
        result.array.empty())
      in.fail("a slice needs the name of an array in front", bracket,
              fmt::format("as in {}:NAME[...]; `shale ls {}` lists the names", result.file,
                          result.file));
  }
  if (!in.done()) in.fail("expected nothing more here");
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
    throw error(errc::invalid_argument, fmt::format("'{}' is no array in a .shale container", text),
                {"survey.shale:dem is one"});
  if (result.array.empty())
    throw error(errc::invalid_argument, fmt::format("'{}' does not say which array", text),
                {fmt::format("write {0}:NAME; `shale ls {0}` lists the names", text)});
  return result;
}

std::optional<std::string> named_file(std::string_view text) {
  const std::optional<file_end> end = find_file_end(text);
  if (!end) return std::nullopt;
  return std::string(text.substr(0, end->at));
}

bool is_same_file(const std::string& a, const std::string& b) {
  const std::filesystem::path first(a), second(b);
  std::error_code neither;
  const bool same = std::filesystem::equivalent(first, second, neither);
  return neither ? first.lexically_normal() == second.lexically_normal() : same;
}

dims parse_shape(std::string_view text) {
  cursor in("shape", text);
  if (in.done()) in.fail("expected extents, as in 344,403, or () for a single number");
  const std::string_view close = in.take("(") ? ")" : in.take("[") ? "]" : "";
  const dims shape = take_shape(in, close);
  if (!in.done()) in.fail("expected nothing more here");
  return shape;
}

dtype parse_dtype_option(std::string_view text) {
  if (const std::optional<dtype> type = parse_dtype(text)) return *type;
  throw error(
      errc::invalid_argument, fmt::format("no dtype '{}'", text),
      {"there are bool, int8 … int64, uint8 … uint64, float16, bfloat16, float32, float64, "
       "complex64, complex128, float8_e4m3fn and float8_e5m2, and NumPy's codes such as f4"});
}

}  // namespace shale::tools
