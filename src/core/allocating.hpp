// Turns exhausted memory in public functions into an `error`.
#pragma once

#include <new>
#include <utility>

#include "shale/error.hpp"

namespace shale::detail {

/// Runs `body` and turns `std::bad_alloc` into an `error`. Public functions run their own
/// allocations inside, but call functions of the caller outside, so that a caller's exceptions pass
/// unchanged.
template <class Body>
decltype(auto) allocating(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw_out_of_memory();
  }
}

/// Combines both: `with_context` around `allocating`.
template <class Frame, class Body>
decltype(auto) reporting(Frame&& frame, Body&& body) {
  return with_context(std::forward<Frame>(frame),
                      [&]() -> decltype(auto) { return allocating(body); });
}

}  // namespace shale::detail
