#include "interop/t7/cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

#include "core/printable.hpp"

namespace shale::interop::t7 {

namespace {

constexpr std::uint64_t window_bytes = std::uint64_t{1} << 16;

// No number that Torch writes is longer: %.17g takes 24 characters.
constexpr std::size_t word_bytes_max = 64;

bool is_space(int byte) noexcept { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

}  // namespace

cursor::cursor(const input_file& file) : file_(file) {
  const int first = peek();
  if (first < 0) fail(errc::corrupt, "the file is empty: it holds no object of Torch", 0);
  if (first >= '0' && first <= '9') encoding_ = t7_encoding::ascii;
  else if (first == 0 && window_.size() >= 4 && window_[1] == 0 && window_[2] == 0 &&
           window_[3] != 0)
    fail(errc::unsupported, "a big-endian file of Torch", 0,
         "load it in Torch7 and save it again with littleEndianEncoding");
}

void cursor::fail(errc code, std::string_view message, std::uint64_t at,
                  const std::string& more) const {
  error failure(code, message, {fmt::format("file {}, byte {}", file_.path(), at)});
  if (!more.empty()) failure.add_detail(more);
  throw failure;
}

void cursor::require(std::uint64_t count) const {
  if (count > bytes_left())
    fail(errc::corrupt, "the file ends inside a value", position_,
         fmt::format("wanted {} bytes, the file has {}", count, bytes_left()));
}

int cursor::peek() {
  if (position_ - window_begin_ >= window_.size()) {
    if (bytes_left() == 0) return -1;
    window_.resize(static_cast<std::size_t>(std::min(window_bytes, bytes_left())));
    file_.read(std::as_writable_bytes(std::span(window_)), position_);
    window_begin_ = position_;
  }
  return static_cast<unsigned char>(window_[static_cast<std::size_t>(position_ - window_begin_)]);
}

std::string cursor::take_bytes(std::uint64_t count) {
  require(count);
  std::string bytes(static_cast<std::size_t>(count), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    peek();
    const auto at = static_cast<std::size_t>(position_ - window_begin_);
    const std::size_t part = std::min(bytes.size() - done, window_.size() - at);
    std::memcpy(bytes.data() + done, window_.data() + at, part);
    done += part;
    position_ += part;
  }
  if (encoding_ == t7_encoding::ascii && count > 0) skip_line_end();
  return bytes;
}

void cursor::skip_bytes(std::uint64_t count) {
  require(count);
  position_ += count;
  if (encoding_ == t7_encoding::ascii && count > 0) skip_line_end();
}

void cursor::skip_numbers(std::uint64_t count, std::size_t item_bytes) {
  // Every number takes a byte at least, in both encodings. So the product below does not wrap.
  if (count > bytes_left() ||
      (encoding_ == t7_encoding::binary && count > bytes_left() / item_bytes))
    fail(errc::corrupt, "the file ends inside the elements of a storage", position_,
         fmt::format("the storage has {} elements, the file has {} bytes more", count,
                     bytes_left()));
  if (encoding_ == t7_encoding::binary) return skip_bytes(count * item_bytes);
  for (std::uint64_t i = 0; i < count; ++i) take_word();
}

bool cursor::at_end() {
  if (encoding_ == t7_encoding::ascii) skip_space();
  return bytes_left() == 0;
}

void cursor::skip_space() {
  while (is_space(peek())) ++position_;
}

// Torch ends each group of numbers or bytes by a line feed. Bytes that follow begin after it.
void cursor::skip_line_end() {
  if (peek() == '\n') ++position_;
}

std::string cursor::take_word() {
  skip_space();
  const std::uint64_t begin = position_;
  std::string word;
  for (int byte = peek(); byte >= 0 && !is_space(byte); byte = peek()) {
    if (word.size() == word_bytes_max)
      fail(errc::corrupt, "no number: the word is too long", begin, detail::in_quotes(word));
    word += static_cast<char>(byte);
    ++position_;
  }
  if (word.empty()) fail(errc::corrupt, "the file ends where a number is expected", begin);
  skip_line_end();
  return word;
}

template <class Number>
Number cursor::number_of(std::string_view text, std::uint64_t begin) const {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stopped != end)
    fail(errc::corrupt, "no number of its type", begin, "got " + detail::in_quotes(text));
  return value;
}

template <class Number>
Number cursor::take() {
  if (encoding_ == t7_encoding::ascii) {
    skip_space();
    const std::uint64_t begin = position_;
    return number_of<Number>(take_word(), begin);
  }
  require(sizeof(Number));
  char bytes[sizeof(Number)];
  for (char& byte : bytes) {
    byte = static_cast<char>(peek());
    ++position_;
  }
  Number value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template std::int16_t cursor::take<std::int16_t>();
template std::int32_t cursor::take<std::int32_t>();
template std::int64_t cursor::take<std::int64_t>();
template float cursor::take<float>();
template double cursor::take<double>();

}  // namespace shale::interop::t7
