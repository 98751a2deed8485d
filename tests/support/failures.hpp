// What a piece of code throws, as a value to compare.
#pragma once

#include <string>

#include "shale/error.hpp"

namespace shale::test {

/// The code of the error that `body` throws; errc{}, which is none, if it throws nothing.
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

}  // namespace shale::test
