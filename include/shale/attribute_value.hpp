// Attributes: small values that stand beside the elements of an array, each under a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace [[gnu::visibility("default")]] shale {

/// The kind of the value that an attribute holds. The numbers are those in the file.
enum class attribute_kind : std::uint8_t {
  boolean = 1,
  int64 = 2,
  uint64 = 3,
  float64 = 4,
  text = 5,   ///< UTF-8
  json = 6,   ///< UTF-8; Shale does not parse it
  bytes = 7,  ///< any bytes
  boolean_list = 17,
  int64_list = 18,
  uint64_list = 19,
  float64_list = 20,
  text_list = 21,
};

/// The name in messages: "int64", "text", "list of int64".
std::string_view name(attribute_kind kind) noexcept;

namespace detail {

// Character types do not count as numbers, because a character would be stored as its code.
template <class T>
inline constexpr bool is_attribute_number = std::is_arithmetic_v<T> && sizeof(T) <= 8 &&
                                            !std::is_same_v<T, char> &&
                                            !std::is_same_v<T, wchar_t> &&
                                            !std::is_same_v<T, char8_t> &&
                                            !std::is_same_v<T, char16_t> &&
                                            !std::is_same_v<T, char32_t>;

template <class T>
inline constexpr bool is_attribute_item =
    std::is_same_v<T, bool> || std::is_same_v<T, std::int64_t> ||
    std::is_same_v<T, std::uint64_t> || std::is_same_v<T, double> || std::is_same_v<T, std::string>;

template <class T>
inline constexpr bool is_attribute_list = false;
template <class T>
inline constexpr bool is_attribute_list<std::vector<T>> = is_attribute_item<T>;

}  // namespace detail

/// The types as which attributes are read: bool, std::int64_t, std::uint64_t, double, std::string,
/// and std::vector of one of these.
template <class T>
concept attribute_type = detail::is_attribute_item<T> || detail::is_attribute_list<T>;

/// A value of an attribute with its kind. Two values are equal if their kinds are and their bytes
/// are, so NaN equals itself, and 0.0 is not -0.0.
/// Throws   out_of_memory from every member that makes a value or a text
class attribute_value {
 public:
  /// A bool, a signed or unsigned integer, or a floating number, which becomes a double.
  template <class T>
  requires(detail::is_attribute_number<T>) explicit attribute_value(T value) {
    if constexpr (std::is_same_v<T, bool>) set_boolean(value);
    else if constexpr (std::is_floating_point_v<T>) set_float64(value);
    else if constexpr (std::is_signed_v<T>) set_int64(value);
    else set_uint64(value);
  }

  /// A text.
  /// Throws   invalid_argument (it is not UTF-8: use `bytes`)
  explicit attribute_value(std::string_view text);

  /// A list, which may be empty.
  explicit attribute_value(const std::vector<bool>& values);
  explicit attribute_value(const std::vector<std::int64_t>& values);
  explicit attribute_value(const std::vector<std::uint64_t>& values);
  explicit attribute_value(const std::vector<double>& values);

  /// A list of texts.
  /// Throws   invalid_argument (one of them is not UTF-8; more than 2^19 of them; more than 64 MiB
  ///          in all)
  explicit attribute_value(const std::vector<std::string>& values);

  /// JSON as text, for values that no other kind can hold.
  /// Throws   invalid_argument (it is not UTF-8)
  static attribute_value json(std::string_view text);

  /// Any bytes.
  static attribute_value bytes(std::string_view values);

  /// The value that bytes of a file stand for, as `array::attributes` returns them. Bytes that
  /// `transaction::set_attribute` stored without a kind are a text if they are UTF-8.
  /// Throws   corrupt (damaged), unsupported (a kind of a later version)
  static attribute_value of_stored(std::string_view stored);

  /// The bytes that stand for the value in a file: docs/container-format.md, "Attributes". A text
  /// is stored as it is, unless it could be taken for JSON.
  std::string stored() const;

  // Values are copied, never moved, so no value is in a moved-from state.
  attribute_value(const attribute_value&) = default;
  attribute_value& operator=(const attribute_value&) = default;

  attribute_kind kind() const noexcept { return kind_; }

  /// The value as a T. An integer can be read as any number type that holds it exactly; a double
  /// holds integers up to 2^53. A double can only be read as a double.
  /// Throws   invalid_argument (another kind, or a number that does not fit)
  template <attribute_type T>
  T as() const;

  /// A text, JSON or raw bytes.
  /// Throws   invalid_argument (another kind)
  /// Lifetime valid until the value is changed or destroyed
  std::string_view content() const;

  bool operator==(const attribute_value&) const = default;

 private:
  attribute_value(attribute_kind kind, std::string&& content) noexcept;
  void set_boolean(bool value);
  void set_int64(std::int64_t value);
  void set_uint64(std::uint64_t value);
  void set_float64(double value);

  attribute_kind kind_ = attribute_kind::bytes;
  std::string content_;  // the stored form without its head
};

}  // namespace shale
