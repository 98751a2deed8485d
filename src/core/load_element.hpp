// Reads one element from its bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace shale::detail {

/// The element in these bytes; a bool is true for any byte except 0.
template <class T>
T load_element(const std::byte* address) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return *address != std::byte{0};
  } else {
    T element;
    std::memcpy(&element, address, sizeof(T));
    return element;
  }
}

}  // namespace shale::detail
