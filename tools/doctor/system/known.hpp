// A fact that the system may not tell: a value, or the reason why the value is unknown.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace shale::tools {

/// A value, or the reason why it is unknown.
template <class T>
struct known {
  std::optional<T> value = std::nullopt;
  std::string why = "nobody asked";  ///< the reason, if there is no value

  known() = default;
  known(T found) : value(std::move(found)), why() {}

  static known unknown(const std::string& reason) {
    known result;
    result.why = reason;
    return result;
  }

  explicit operator bool() const noexcept { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }

  /// The result of `make` for the value, or the same reason.
  template <class Make>
  auto then(Make make) const -> known<std::invoke_result_t<Make, const T&>> {
    if (!value) return known<std::invoke_result_t<Make, const T&>>::unknown(why);
    return make(*value);
  }
};

/// The value of a limit that is not set.
template <class T>
inline constexpr T no_limit = std::numeric_limits<T>::has_infinity
                                  ? std::numeric_limits<T>::infinity()
                                  : std::numeric_limits<T>::max();

}  // namespace shale::tools
