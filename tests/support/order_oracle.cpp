#include "support/order_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace shale::test {

static_assert(std::numeric_limits<long double>::digits >= 64);

index_list order_of_numbers(const std::vector<long double>& numbers, bool descends) {
  // NaN is the largest.
  const auto before = [](long double a, long double b) {
    return std::isnan(a) ? false : std::isnan(b) ? true : a < b;
  };
  index_list indices(numbers.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(), [&](index_t a, index_t b) {
    const long double x = numbers[static_cast<std::size_t>(a)];
    const long double y = numbers[static_cast<std::size_t>(b)];
    return descends ? before(y, x) : before(x, y);
  });
  return indices;
}

std::vector<std::vector<std::size_t>> places_of_lanes(const dims& shape, index_t axis) {
  index_t before = 1, along = 1, after = 1;
  for (index_t k = 0; k < shape.size(); ++k)
    (k == axis ? along : k < axis ? before : after) *= shape[k];
  std::vector<std::vector<std::size_t>> lanes;
  for (index_t i = 0; i < before; ++i)
    for (index_t j = 0; j < after; ++j) {
      std::vector<std::size_t> places;
      places.reserve(static_cast<std::size_t>(along));
      for (index_t k = 0; k < along; ++k)
        places.push_back(static_cast<std::size_t>((i * along + k) * after + j));
      lanes.push_back(std::move(places));
    }
  return lanes;
}

void make_hard_to_order(random_choices& choose, const storage& elements, std::size_t bytes_each) {
  const index_t kind = choose(0, 3);
  auto* const bytes = const_cast<std::byte*>(elements.data());
  const auto count = static_cast<index_t>(elements.size_bytes() / bytes_each);
  for (index_t i = 0; i < count; ++i) {
    std::byte* const at = bytes + i * static_cast<index_t>(bytes_each);
    const index_t drawn = choose(0, 9);
    if (kind == 0 || (kind == 1 && drawn < 2)) {
      for (std::size_t k = 0; k < bytes_each; ++k) at[k] = static_cast<std::byte>(choose(0, 255));
    } else if (kind == 2 && drawn < 6) {
      std::memset(at, 0, bytes_each);
      if (drawn < 3) at[bytes_each - 1] = std::byte{0x80};
    }
  }
}

}  // namespace shale::test
