// One element, read from its bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace shale::detail {

/// An element as its bytes say; a bool is true for any byte but 0.
template <class T>
T load_element(const std::byte* from) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return *from != std::byte{0};
  } else {
    T element;
    std::memcpy(&element, from, sizeof(T));
    return element;
  }
}

}  // namespace shale::detail
