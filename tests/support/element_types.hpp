// The dtypes of typed tests.
#pragma once

#include <gtest/gtest.h>

#include <tuple>
#include <type_traits>

namespace shale::test {

/// The types of a typed test: all of them, or one of them under ThreadSanitizer. That looks for
/// races, and threads share the same objects whatever the dtype is. The one is double, or the last
/// type of a list without it.
#if defined(__SANITIZE_THREAD__)
template <class... All>
using element_types = testing::Types<
    std::conditional_t<(std::is_same_v<All, double> || ...), double,
                       std::tuple_element_t<sizeof...(All) - 1, std::tuple<All...>>>>;
#else
template <class... All>
using element_types = testing::Types<All...>;
#endif

}  // namespace shale::test
