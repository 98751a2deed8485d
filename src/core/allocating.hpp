// Turns exhausted memory in public functions into an `error`.
#pragma once

#include <new>
#include <typeinfo>
#include <utility>

#include "shale/error.hpp"

namespace shale::detail {

/// A bad_alloc that a function of the caller threw. Its class distinguishes it from the library's
/// own.
template <class Thrown>
class callers_exception final : public Thrown {};

/// Calls a function of the caller inside of `allocating`, which lets its exceptions pass. They are
/// unchanged, except that a `std::bad_alloc` or `std::bad_array_new_length` gets a class derived
/// from its own.
template <class Call>
decltype(auto) calling_back(Call&& call) {
  try {
    return call();
  } catch (const std::bad_alloc& thrown) {
    if (typeid(thrown) == typeid(std::bad_alloc)) throw callers_exception<std::bad_alloc>();
    if (typeid(thrown) == typeid(std::bad_array_new_length))
      throw callers_exception<std::bad_array_new_length>();
    throw;
  }
}

/// Runs `body` and turns a `std::bad_alloc` of the library's own allocations into an `error`.
/// Public functions allocate inside. They call functions of the caller outside, or by
/// `calling_back`, so that a caller's exceptions pass.
template <class Body>
decltype(auto) allocating(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc& thrown) {
    // A derived class means that a function of the caller threw it.
    const std::type_info& type = typeid(thrown);
    if (type != typeid(std::bad_alloc) && type != typeid(std::bad_array_new_length)) throw;
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
