// Guards calls against operands that change while they are used. An operand in memory is not
// copied, so another thread or process can write it during a call: between the pass that counts or
// checks its elements, and the pass that stores by these counts. The second pass bounds each store
// by what the first one found.
#pragma once

#include <string>

#include "shale/error.hpp"

namespace shale::parallel {

/// Reports an operand whose elements have changed since they were counted or checked.
/// Throws   io
[[noreturn]] inline void throw_changed(const std::string& operand) {
  throw error(
      errc::io, "the elements of " + operand + " changed while they were used",
      {"was the memory or the file that they lie in, or are computed from, written meanwhile?"});
}

/// An element that is read from memory once: the value that a caller checks is the value that it
/// uses.
template <class Integer>
Integer read_once(const Integer& element) noexcept {
  Integer value = element;
  asm("" : "+r"(value));  // so that the compiler does not load it again
  return value;
}

}  // namespace shale::parallel
