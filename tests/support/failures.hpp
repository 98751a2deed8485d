// Turns exceptions of a piece of code into values that can be compared.
#pragma once

#include <new>
#include <optional>
#include <string>

#include "shale/error.hpp"

namespace shale::test {

/// The code of the error that `body` throws; errc{}, an invalid code, if it throws nothing.
template <class Body>
errc code_of(Body&& body) {
  try {
    body();
  } catch (const error& failure) {
    return failure.code();
  }
  return errc{};
}

/// The text of the error that `body` throws, or "".
template <class Body>
std::string text_of(Body&& body) {
  try {
    body();
  } catch (const error& failure) {
    return failure.what();
  }
  return {};
}

/// The outcome of a call.
struct outcome {
  std::optional<errc> code;  ///< empty on success
  std::string text;
};

/// Runs `body`; errors and exhausted memory become its outcome.
template <class Body>
outcome outcome_of(Body&& body) {
  try {
    body();
    return {};
  } catch (const error& failure) {
    return {failure.code(), failure.what()};
  } catch (const std::bad_alloc& failure) {
    return {errc::out_of_memory, failure.what()};
  }
}

}  // namespace shale::test
