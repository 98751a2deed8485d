// Converts values of attributes to their bytes in a file, and back. docs/container-format.md,
// "Attributes", is the stored form in prose.
#include "shale/attribute_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "core/allocating.hpp"
#include "core/utf8.hpp"
#include "format/bytes/byte_order.hpp"
#include "format/catalog/attributes.hpp"
#include "shale/error.hpp"

namespace shale {

namespace {

// A stored value begins with these bytes, the version of its form, and its kind. No text begins
// with them, because 0xff is not UTF-8.
constexpr std::string_view attribute_mark = "\xffSHATT";
constexpr char attribute_version = 1;
constexpr std::size_t attribute_head_bytes = attribute_mark.size() + 2;

constexpr std::size_t attribute_number_bytes = 8;
constexpr std::size_t text_length_bytes = 4;

// Bounds what a file can make a reader allocate: an empty text takes 4 bytes there, and 32 here.
constexpr std::size_t listed_texts_max = format::attributes_max;

const std::byte* content_bytes(std::string_view text) noexcept {
  return reinterpret_cast<const std::byte*>(text.data());
}

std::string number_content(std::uint64_t bits) {
  std::string content(attribute_number_bytes, '\0');
  format::store(reinterpret_cast<std::byte*>(content.data()), bits);
  return content;
}

template <class T>
std::string list_content(const std::vector<T>& values) {
  std::string content;
  content.reserve(values.size() * attribute_number_bytes);
  for (const T value : values) content += number_content(std::bit_cast<std::uint64_t>(value));
  return content;
}

[[noreturn]] void throw_too_long(std::size_t texts, std::size_t bytes) {
  throw error(errc::invalid_argument, "a list of texts is too long for an attribute",
              {fmt::format("got {} texts and {} bytes, at most {} texts and {} bytes are possible",
                           texts, bytes, listed_texts_max, format::attributes_bytes_max)});
}

void require_utf8(std::string_view text, const char* kind) {
  if (const auto wrong = detail::first_wrong_byte(text))
    throw error(errc::invalid_argument, "an attribute is not UTF-8",
                {fmt::format("byte {} of {} bytes of {}", *wrong, text.size(), kind),
                 "use attribute_value::bytes for bytes that are not text"});
}

// ---- checks of stored bytes ---------------------------------------------------------------------

std::optional<std::string> problem_of_text(std::string_view text) {
  if (const auto wrong = detail::first_wrong_byte(text))
    return fmt::format("byte {} is not UTF-8", *wrong);
  return std::nullopt;
}

std::optional<std::string> problem_of_numbers(std::string_view content, bool is_list) {
  const bool fits = is_list ? content.size() % attribute_number_bytes == 0
                            : content.size() == attribute_number_bytes;
  if (fits) return std::nullopt;
  return fmt::format("{} bytes, a number has {}", content.size(), attribute_number_bytes);
}

std::optional<std::string> problem_of_booleans(std::string_view content, bool is_list) {
  if (!is_list && content.size() != 1) return fmt::format("{} bytes, a bool has 1", content.size());
  const auto odd = std::find_if(content.begin(), content.end(),
                                [](char byte) { return byte != '\0' && byte != '\1'; });
  if (odd == content.end()) return std::nullopt;
  return fmt::format("a bool is {}", static_cast<unsigned char>(*odd));
}

// Takes the first text off `rest`. Returns nothing if `rest` ends inside of it.
std::optional<std::string_view> take_text(std::string_view& rest) {
  if (rest.size() < text_length_bytes) return std::nullopt;
  const std::size_t length = format::load<std::uint32_t>(content_bytes(rest));
  rest.remove_prefix(text_length_bytes);
  if (length > rest.size()) return std::nullopt;
  const std::string_view text = rest.substr(0, length);
  rest.remove_prefix(length);
  return text;
}

std::optional<std::string> problem_of_texts(std::string_view content) {
  std::size_t count = 0;
  for (std::string_view rest = content; !rest.empty(); ++count) {
    if (count == listed_texts_max)
      return fmt::format("more than {} texts in a list", listed_texts_max);
    const auto text = take_text(rest);
    if (!text) return fmt::format("it ends inside text {}", count);
    if (const auto problem = problem_of_text(*text))
      return fmt::format("text {}: {}", count, *problem);
  }
  return std::nullopt;
}

// Describes what is wrong with the bytes after the head; nothing if they are a value of that kind.
std::optional<std::string> problem_of_content(attribute_kind kind, std::string_view content) {
  switch (kind) {
    case attribute_kind::boolean:
      return problem_of_booleans(content, false);
    case attribute_kind::boolean_list:
      return problem_of_booleans(content, true);
    case attribute_kind::int64:
    case attribute_kind::uint64:
    case attribute_kind::float64:
      return problem_of_numbers(content, false);
    case attribute_kind::int64_list:
    case attribute_kind::uint64_list:
    case attribute_kind::float64_list:
      return problem_of_numbers(content, true);
    case attribute_kind::text:
    case attribute_kind::json:
      return problem_of_text(content);
    case attribute_kind::text_list:
      return problem_of_texts(content);
    case attribute_kind::bytes:
      break;
  }
  return std::nullopt;
}

// Whether a reader could take a text for JSON: after spaces and a byte order mark, it begins like a
// value that is not an empty text.
bool may_be_json(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) return true;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  const std::string_view rest = text.substr(first);
  return std::string_view("\"[{-0123456789").find(rest.front()) != std::string_view::npos ||
         rest.starts_with("true") || rest.starts_with("false") || rest.starts_with("null");
}

// ---- reading ------------------------------------------------------------------------------------

// The number as a To, if that has the same value.
template <class To, class From>
std::optional<To> converted_exactly(From value) {
  constexpr bool is_other_kind =
      std::is_same_v<To, bool> || std::is_same_v<From, bool> || std::is_floating_point_v<From>;
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_other_kind) {
    return std::nullopt;
  } else if constexpr (std::is_floating_point_v<To>) {
    constexpr std::int64_t exact_max = std::int64_t{1} << 53;
    if (std::cmp_greater(value, exact_max) || std::cmp_less(value, -exact_max)) return std::nullopt;
    return static_cast<To>(value);
  } else {
    if (!std::in_range<To>(value)) return std::nullopt;
    return static_cast<To>(value);
  }
}

template <class From>
constexpr std::size_t item_bytes_of = std::is_same_v<From, bool> ? 1 : attribute_number_bytes;

template <class From>
From number_in(std::string_view content, std::size_t index) {
  const std::byte* const bytes = content_bytes(content) + index * item_bytes_of<From>;
  if constexpr (std::is_same_v<From, bool>) return *bytes != std::byte{};
  else return std::bit_cast<From>(format::load<std::uint64_t>(bytes));
}

template <class To, class From>
std::optional<To> single_number(std::string_view content) {
  return converted_exactly<To>(number_in<From>(content, 0));
}

template <class To, class From>
std::optional<std::vector<To>> list_of_numbers(std::string_view content) {
  std::vector<To> values;
  const std::size_t count = content.size() / item_bytes_of<From>;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = converted_exactly<To>(number_in<From>(content, i));
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

// Each `read` returns nothing if the value is of another kind, or has a number that does not fit.
template <class T>
struct attribute_reader {
  static std::optional<T> read(attribute_kind kind, std::string_view content) {
    if (kind == attribute_kind::boolean) return single_number<T, bool>(content);
    if (kind == attribute_kind::int64) return single_number<T, std::int64_t>(content);
    if (kind == attribute_kind::uint64) return single_number<T, std::uint64_t>(content);
    if (kind == attribute_kind::float64) return single_number<T, double>(content);
    return std::nullopt;
  }
};

template <>
struct attribute_reader<std::string> {
  static std::optional<std::string> read(attribute_kind kind, std::string_view content) {
    if (kind != attribute_kind::text) return std::nullopt;
    return std::string(content);
  }
};

template <class T>
struct attribute_reader<std::vector<T>> {
  static std::optional<std::vector<T>> read(attribute_kind kind, std::string_view content) {
    if (kind == attribute_kind::boolean_list) return list_of_numbers<T, bool>(content);
    if (kind == attribute_kind::int64_list) return list_of_numbers<T, std::int64_t>(content);
    if (kind == attribute_kind::uint64_list) return list_of_numbers<T, std::uint64_t>(content);
    if (kind == attribute_kind::float64_list) return list_of_numbers<T, double>(content);
    return std::nullopt;
  }
};

template <>
struct attribute_reader<std::vector<std::string>> {
  static std::optional<std::vector<std::string>> read(attribute_kind kind,
                                                      std::string_view content) {
    if (kind != attribute_kind::text_list) return std::nullopt;
    std::vector<std::string> texts;
    while (!content.empty()) texts.emplace_back(*take_text(content));
    return texts;
  }
};

template <class T>
constexpr attribute_kind wanted_kind() {
  if constexpr (std::is_same_v<T, bool>) return attribute_kind::boolean;
  else if constexpr (std::is_same_v<T, std::int64_t>) return attribute_kind::int64;
  else if constexpr (std::is_same_v<T, std::uint64_t>) return attribute_kind::uint64;
  else if constexpr (std::is_same_v<T, double>) return attribute_kind::float64;
  else if constexpr (std::is_same_v<T, std::string>) return attribute_kind::text;
  else
    return static_cast<attribute_kind>(
        static_cast<std::uint8_t>(wanted_kind<typename T::value_type>()) | 16u);
}

// Describes a value for a message: its kind, and the value of a single number, because a number of
// a readable kind may still not fit.
std::string shown(attribute_kind kind, std::string_view content) {
  const auto with = [&](const auto& value) { return fmt::format("{} {}", name(kind), value); };
  if (kind == attribute_kind::int64) return with(number_in<std::int64_t>(content, 0));
  if (kind == attribute_kind::uint64) return with(number_in<std::uint64_t>(content, 0));
  if (kind == attribute_kind::float64) return with(number_in<double>(content, 0));
  return std::string(name(kind));
}

}  // namespace

std::string_view name(attribute_kind kind) noexcept {
  switch (kind) {
    case attribute_kind::boolean:
      return "bool";
    case attribute_kind::int64:
      return "int64";
    case attribute_kind::uint64:
      return "uint64";
    case attribute_kind::float64:
      return "double";
    case attribute_kind::text:
      return "text";
    case attribute_kind::json:
      return "JSON";
    case attribute_kind::bytes:
      return "bytes";
    case attribute_kind::boolean_list:
      return "list of bool";
    case attribute_kind::int64_list:
      return "list of int64";
    case attribute_kind::uint64_list:
      return "list of uint64";
    case attribute_kind::float64_list:
      return "list of double";
    case attribute_kind::text_list:
      return "list of texts";
  }
  return "unknown";
}

attribute_value::attribute_value(attribute_kind kind, std::string&& content) noexcept
    : kind_(kind), content_(std::move(content)) {}

void attribute_value::set_boolean(bool value) {
  kind_ = attribute_kind::boolean;
  content_.assign(1, value ? '\1' : '\0');
}

// A number of 8 bytes fits into the string itself, so these allocate nothing.
void attribute_value::set_int64(std::int64_t value) {
  kind_ = attribute_kind::int64;
  content_ = number_content(std::bit_cast<std::uint64_t>(value));
}

void attribute_value::set_uint64(std::uint64_t value) {
  kind_ = attribute_kind::uint64;
  content_ = number_content(value);
}

void attribute_value::set_float64(double value) {
  kind_ = attribute_kind::float64;
  content_ = number_content(std::bit_cast<std::uint64_t>(value));
}

attribute_value::attribute_value(std::string_view text) : kind_(attribute_kind::text) {
  detail::allocating([&] {
    require_utf8(text, "a text");
    content_ = text;
  });
}

attribute_value::attribute_value(const std::vector<bool>& values)
    : kind_(attribute_kind::boolean_list) {
  detail::allocating([&] {
    content_.reserve(values.size());
    for (const bool value : values) content_ += value ? '\1' : '\0';
  });
}

attribute_value::attribute_value(const std::vector<std::int64_t>& values)
    : kind_(attribute_kind::int64_list) {
  detail::allocating([&] { content_ = list_content(values); });
}

attribute_value::attribute_value(const std::vector<std::uint64_t>& values)
    : kind_(attribute_kind::uint64_list) {
  detail::allocating([&] { content_ = list_content(values); });
}

attribute_value::attribute_value(const std::vector<double>& values)
    : kind_(attribute_kind::float64_list) {
  detail::allocating([&] { content_ = list_content(values); });
}

attribute_value::attribute_value(const std::vector<std::string>& values)
    : kind_(attribute_kind::text_list) {
  detail::allocating([&] {
    std::size_t bytes = 0;
    for (const std::string& value : values) {
      require_utf8(value, "a text");
      bytes += text_length_bytes + value.size();
    }
    if (values.size() > listed_texts_max || bytes > format::attributes_bytes_max)
      throw_too_long(values.size(), bytes);
    content_.reserve(bytes);
    for (const std::string& value : values) {
      std::byte length[text_length_bytes];
      format::store(length, static_cast<std::uint32_t>(value.size()));
      content_.append(reinterpret_cast<const char*>(length), sizeof length);
      content_ += value;
    }
  });
}

attribute_value attribute_value::json(std::string_view text) {
  return detail::allocating([&] {
    require_utf8(text, "JSON");
    return attribute_value(attribute_kind::json, std::string(text));
  });
}

attribute_value attribute_value::bytes(std::string_view values) {
  return detail::allocating(
      [&] { return attribute_value(attribute_kind::bytes, std::string(values)); });
}

attribute_value attribute_value::of_stored(std::string_view stored) {
  return detail::allocating([&] {
    if (!stored.starts_with(attribute_mark))
      return attribute_value(
          detail::first_wrong_byte(stored) ? attribute_kind::bytes : attribute_kind::text,
          std::string(stored));
    if (stored.size() < attribute_head_bytes)
      throw error(errc::corrupt, "an attribute is damaged",
                  {fmt::format("it ends inside its head: {} bytes of {}", stored.size(),
                               attribute_head_bytes)});
    const auto version = static_cast<unsigned char>(stored[attribute_mark.size()]);
    const auto code = static_cast<unsigned char>(stored[attribute_mark.size() + 1]);
    const auto kind = static_cast<attribute_kind>(code);
    if (version != attribute_version || name(kind) == "unknown")
      throw error(errc::unsupported, "an attribute is from a later version",
                  {fmt::format("version {}, kind {}", version, code)});
    const std::string_view content = stored.substr(attribute_head_bytes);
    if (const auto problem = problem_of_content(kind, content))
      throw error(errc::corrupt, "an attribute is damaged",
                  {fmt::format("{}: {}", name(kind), *problem)});
    return attribute_value(kind, std::string(content));
  });
}

std::string attribute_value::stored() const {
  return detail::allocating([&] {
    if (kind_ == attribute_kind::text && !may_be_json(content_)) return content_;
    if (kind_ == attribute_kind::bytes && detail::first_wrong_byte(content_) &&
        !content_.starts_with(attribute_mark))
      return content_;
    std::string bytes;
    bytes.reserve(attribute_head_bytes + content_.size());
    bytes += attribute_mark;
    bytes += attribute_version;
    bytes += static_cast<char>(kind_);
    bytes += content_;
    return bytes;
  });
}

template <attribute_type T>
T attribute_value::as() const {
  return detail::allocating([&]() -> T {
    if (auto value = attribute_reader<T>::read(kind_, content_)) return *std::move(value);
    throw error(errc::invalid_argument, "an attribute is of another kind",
                {fmt::format("wanted {}, got {}", name(wanted_kind<T>()), shown(kind_, content_))});
  });
}

template bool attribute_value::as<bool>() const;
template std::int64_t attribute_value::as<std::int64_t>() const;
template std::uint64_t attribute_value::as<std::uint64_t>() const;
template double attribute_value::as<double>() const;
template std::string attribute_value::as<std::string>() const;
template std::vector<bool> attribute_value::as<std::vector<bool>>() const;
template std::vector<std::int64_t> attribute_value::as<std::vector<std::int64_t>>() const;
template std::vector<std::uint64_t> attribute_value::as<std::vector<std::uint64_t>>() const;
template std::vector<double> attribute_value::as<std::vector<double>>() const;
template std::vector<std::string> attribute_value::as<std::vector<std::string>>() const;

std::string_view attribute_value::content() const {
  const bool has_one = kind_ == attribute_kind::text || kind_ == attribute_kind::json ||
                       kind_ == attribute_kind::bytes;
  if (!has_one)
    throw error(errc::invalid_argument, "an attribute is of another kind",
                {fmt::format("wanted text, JSON or bytes, got {}", name(kind_))});
  return content_;
}

}  // namespace shale
