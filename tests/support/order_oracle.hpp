// The order of elements, one comparison of values at a time, and elements that are hard to order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "shale/sorting.hpp"
#include "support/random_tensors.hpp"

namespace shale::test {

template <class T>
double number_of(const T& element) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(element);
  else return static_cast<double>(static_cast<float>(element));
}

/// Whether `a` comes before `b`: NaN is the largest.
template <class T>
bool precedes(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    const double x = number_of(a), y = number_of(b);
    return std::isnan(x) ? false : std::isnan(y) ? true : x < y;
  }
}

/// The stable order of `elements`.
template <class T>
index_list order_of(const std::vector<T>& elements, bool descends) {
  index_list indices(elements.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(), [&](index_t a, index_t b) {
    const T &x = elements[static_cast<std::size_t>(a)], &y = elements[static_cast<std::size_t>(b)];
    return descends ? precedes(y, x) : precedes(x, y);
  });
  return indices;
}

/// Calls `lane(elements, places)` for all lanes along an axis: their elements, and where they are
/// among the row-major elements of the tensor.
template <class T, class Lane>
void for_each_lane_of(const tensor& values, index_t axis, Lane lane) {
  const auto elements = elements_of<T>(values);
  index_t before = 1, along = 1, after = 1;
  for (index_t k = 0; k < values.rank(); ++k)
    (k == axis ? along : k < axis ? before : after) *= values.shape(k);
  for (index_t i = 0; i < before; ++i)
    for (index_t j = 0; j < after; ++j) {
      std::vector<T> own;
      std::vector<std::size_t> places;
      for (index_t k = 0; k < along; ++k) {
        places.push_back(static_cast<std::size_t>((i * along + k) * after + j));
        own.push_back(elements[places.back()]);
      }
      lane(own, places);
    }
}

/// What argsort and sort give.
template <class T>
struct wanted_order {
  index_list indices;
  std::vector<T> elements;

  wanted_order(const tensor& values, index_t axis, descending order = descending::no)
      : indices(static_cast<std::size_t>(values.size())), elements(indices.size()) {
    for_each_lane_of<T>(values, axis, [&](const auto& own, const auto& places) {
      const index_list sorted = order_of(own, order == descending::yes);
      for (std::size_t k = 0; k < places.size(); ++k) {
        indices[places[k]] = sorted[k];
        elements[places[k]] = own[static_cast<std::size_t>(sorted[k])];
      }
    });
  }
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if constexpr (std::is_same_v<T, bool>) return a == b;
  else
    return a.size() == b.size() && (a.empty() || std::memcmp(static_cast<const void*>(a.data()),
                                                             static_cast<const void*>(b.data()),
                                                             a.size() * sizeof(T)) == 0);
}

/// Elements of every kind: any bits, few values with many ties, zeros of both signs, infinities,
/// and NaNs with payloads.
template <class T>
tensor any_elements(random_choices& choose, const dims& shape) {
  const tensor values = random_tensor<T>(choose, shape);
  if constexpr (!std::is_same_v<T, bool>) {
    const index_t kind = choose(0, 3);
    auto* const bytes = const_cast<std::byte*>(values.storage().data());
    const auto count = static_cast<index_t>(values.storage().size_bytes() / sizeof(T));
    for (index_t i = 0; i < count; ++i) {
      std::byte* const at = bytes + i * static_cast<index_t>(sizeof(T));
      const index_t drawn = choose(0, 9);
      if (kind == 0 || (kind == 1 && drawn < 2)) {
        for (std::size_t k = 0; k < sizeof(T); ++k) at[k] = static_cast<std::byte>(choose(0, 255));
      } else if (kind == 2 && drawn < 6) {
        std::memset(at, 0, sizeof(T));
        if (drawn < 3) at[sizeof(T) - 1] = std::byte{0x80};
      }
    }
  }
  return values;
}

}  // namespace shale::test
