// Runs a test's body on a thread with a stack of a given size.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <functional>

#include "support/instrumented.hpp"

namespace shale::test {

/// The stack that a thread which calls the library needs, as docs/caveats.md says. Sanitizers make
/// frames larger, most of all those of many small objects.
inline constexpr std::size_t stated_stack_bytes =
    (std::size_t{128} << 10) * (instrumented ? 16U : 1U);

inline void run_on_a_stack_of(std::size_t bytes, std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread;
  const auto start = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, &attributes, start, &body), 0);
  ::pthread_attr_destroy(&attributes);
  ASSERT_EQ(::pthread_join(thread, nullptr), 0);
}

}  // namespace shale::test
