// Row-major coordinates, computed one element at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/index_oracle.hpp"

namespace shale::test {

/// The coordinates of element `number` of a row-major array.
index_list coordinates_of(std::int64_t number, const index_list& shape);

/// The number of the element at those coordinates of a row-major array.
std::size_t number_of(const index_list& at, const index_list& shape);

std::int64_t count_of(const index_list& shape);

}  // namespace shale::test
