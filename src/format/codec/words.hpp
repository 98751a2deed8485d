// Chooses an unsigned type of the elements' width, for the stages of the codec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace shale::format {

/// Calls `function` with a zero of the unsigned type that has `bytes` bytes: 1, 2, 4 or 8.
template <class Function>
void with_word(std::size_t bytes, Function&& function) {
  switch (bytes) {
    case 1:
      return function(std::uint8_t{0});
    case 2:
      return function(std::uint16_t{0});
    case 4:
      return function(std::uint32_t{0});
    default:
      return function(std::uint64_t{0});
  }
}

}  // namespace shale::format
