// Reads the numbers and bytes of a .t7 file from front to back, in both encodings. It knows nothing
// about objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "interop/input_file.hpp"
#include "shale/t7.hpp"

namespace shale::interop::t7 {

/// Throws   corrupt if the file ends, or if text is not the wanted number; io
class cursor {
 public:
  /// Begins at the first byte, which tells the encoding.
  /// Throws   corrupt (an empty file), unsupported (big-endian)
  explicit cursor(const input_file& file);

  /// Begins at `position` of a file whose encoding is known.
  cursor(const input_file& file, t7_encoding encoding, std::uint64_t position)
      : file_(file), encoding_(encoding), position_(position) {}

  t7_encoding encoding() const noexcept { return encoding_; }

  /// The offset in the file of the next byte.
  std::uint64_t position() const noexcept { return position_; }
  std::uint64_t bytes_left() const noexcept { return file_.size_bytes() - position_; }

  std::int16_t take_short() { return take<std::int16_t>(); }
  std::int32_t take_int() { return take<std::int32_t>(); }
  std::int64_t take_long() { return take<std::int64_t>(); }
  float take_float() { return take<float>(); }
  double take_double() { return take<double>(); }

  /// The next bytes of a string, or of 8-bit elements.
  std::string take_bytes(std::uint64_t count);
  void skip_bytes(std::uint64_t count);

  /// Skips numbers of `item_bytes` each.
  void skip_numbers(std::uint64_t count, std::size_t item_bytes);

  /// Whether nothing follows but the space at the end of an ASCII file.
  bool at_end();

  /// Throws an error that names the file and the byte `at`, with `more` as a last line.
  [[noreturn]] void fail(errc code, std::string_view message, std::uint64_t at,
                         const std::string& more = {}) const;

 private:
  template <class Number>
  Number take();
  template <class Number>
  Number number_of(std::string_view text, std::uint64_t begin) const;

  void require(std::uint64_t count) const;
  int peek();
  void skip_space();
  void skip_line_end();
  std::string take_word();

  const input_file& file_;
  t7_encoding encoding_ = t7_encoding::binary;
  std::uint64_t position_ = 0;
  std::uint64_t window_begin_ = 0;  // the offset of window_ in the file
  std::vector<char> window_;
};

}  // namespace shale::interop::t7
