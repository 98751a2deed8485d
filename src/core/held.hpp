// Gives access to the state of a handle. A handle that was moved from refers to nothing, and
// using it throws.
#pragma once

#include <string>
#include <string_view>

#include "shale/error.hpp"

namespace shale::detail {

/// Throws   invalid_argument
[[noreturn]] inline void throw_moved_from(std::string_view kind) {
  throw error(errc::invalid_argument, std::string("this ") + std::string(kind) +
                                          " refers to nothing: it was moved from, or never set");
}

/// The object that a handle's pointer refers to. Every public function of a handle gets it here.
/// Throws   invalid_argument naming the handle (`kind`) if the pointer is null
template <class Pointer>
auto& held(const Pointer& pointer, std::string_view kind) {
  if (!pointer) throw_moved_from(kind);
  return *pointer;
}

}  // namespace shale::detail
