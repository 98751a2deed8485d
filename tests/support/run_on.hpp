// Runs a single call on an executor that the rest of a test does not use.
#pragma once

#include "shale/executor.hpp"

namespace shale::test {

/// Binds the thread to `on`, runs `body` and returns its result.
template <class Body>
decltype(auto) run_on(const executor& on, Body&& body) {
  const executor::scope within(on);
  return body();
}

}  // namespace shale::test
