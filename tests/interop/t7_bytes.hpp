// Makes the bytes of .t7 files value by value, from the description of the format and without code
// of the library. So tests can make files that no writer makes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

namespace shale::test {

class t7_bytes {
 public:
  explicit t7_bytes(bool ascii = false) : ascii_(ascii) {}

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }

  // ---- plain numbers and bytes ------------------------------------------------------------------

  t7_bytes& i(std::int32_t value) { return group<std::int32_t>({value}); }
  t7_bytes& l(std::int64_t value) { return group<std::int64_t>({value}); }
  t7_bytes& raw(const std::string& text) {
    bytes_ += text;
    if (ascii_ && !text.empty()) bytes_ += '\n';
    return *this;
  }
  t7_bytes& text(const std::string& text) {
    return i(static_cast<std::int32_t>(text.size())).raw(text);
  }

  template <class Number>
  t7_bytes& group(const std::vector<Number>& numbers) {
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      if (ascii_) bytes_ += (at > 0 ? " " : "") + words(numbers[at]);
      else little_endian(numbers[at]);
    }
    if (ascii_ && !numbers.empty()) bytes_ += '\n';
    return *this;
  }

  // ---- values -----------------------------------------------------------------------------------

  t7_bytes& nil() { return i(0); }
  t7_bytes& number(double value) { return i(1).group<double>({value}); }
  t7_bytes& string(const std::string& value) { return i(2).text(value); }
  t7_bytes& boolean(bool value) { return i(5).i(value ? 1 : 0); }

  /// A table of which `pairs` keys and values follow.
  t7_bytes& table(std::int32_t index, std::int32_t pairs) { return i(3).i(index).i(pairs); }
  t7_bytes& again(std::int32_t type, std::int32_t index) { return i(type).i(index); }
  t7_bytes& object(std::int32_t index, const std::string& of_class) {
    return i(4).i(index).text("V 1").text(of_class);
  }

  /// A tensor, whose storage follows. The offset counts from 1.
  t7_bytes& tensor(std::int32_t index, const std::string& type,
                   const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
                   std::int64_t offset = 1) {
    object(index, "torch." + type + "Tensor").i(static_cast<std::int32_t>(sizes.size()));
    return group(sizes).group(strides).l(offset);
  }

  template <class Number>
  t7_bytes& storage(std::int32_t index, const std::string& type,
                    const std::vector<Number>& elements) {
    object(index, "torch." + type + "Storage").l(static_cast<std::int64_t>(elements.size()));
    if constexpr (sizeof(Number) > 1) return group(elements);
    else return raw(std::string(elements.begin(), elements.end()));
  }

 private:
  template <class Number>
  static std::string words(Number value) {
    if constexpr (!std::is_floating_point_v<Number>) return std::to_string(value);
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, sizeof(Number) == 4 ? "%.9g" : "%.17g",
                  static_cast<double>(value));
    return buffer;
  }

  template <class Number>
  void little_endian(Number value) {
    using bits_type =
        std::conditional_t<sizeof(Number) == 8, std::uint64_t,
                           std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint16_t>>;
    const auto bits = std::bit_cast<bits_type>(value);
    for (std::size_t byte = 0; byte < sizeof value; ++byte)
      bytes_ += static_cast<char>(bits >> (8 * byte) & 0xff);
  }

  bool ascii_;
  std::string bytes_;
};

}  // namespace shale::test
