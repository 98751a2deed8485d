// The order of elements, one comparison of values at a time, and elements that are hard to order.
#pragma once

#include <cmath>
#include <cstring>
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

/// The stable order of numbers.
index_list order_of_numbers(const std::vector<long double>& numbers, bool descends);

/// The stable order of `elements`.
template <class T>
index_list order_of(const std::vector<T>& elements, bool descends) {
  // It holds all integers of 64 bits and all doubles exactly.
  std::vector<long double> numbers;
  numbers.reserve(elements.size());
  for (const T element : elements) {
    if constexpr (std::is_integral_v<T>) numbers.push_back(element);
    else numbers.push_back(number_of(element));
  }
  return order_of_numbers(numbers, descends);
}

/// For each lane of `shape` along `axis`, where its elements are among the row-major elements.
std::vector<std::vector<std::size_t>> places_of_lanes(const dims& shape, index_t axis);

/// Calls `lane(elements, places)` for all lanes along an axis: their elements, and where they are
/// among the row-major elements of the tensor.
template <class T, class Lane>
void for_each_lane_of(const tensor& values, index_t axis, Lane lane) {
  const auto elements = elements_of<T>(values);
  for (const auto& places : places_of_lanes(values.shape(), axis)) {
    std::vector<T> own;
    own.reserve(places.size());
    for (const std::size_t place : places) own.push_back(elements[place]);
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

/// Changes the bytes of elements other than bool at random, so that there are elements of every
/// kind: any bits, few values with many ties, zeros of both signs, infinities, and NaNs with
/// payloads.
void make_hard_to_order(random_choices& choose, const storage& elements, std::size_t bytes_each);

/// Elements of every kind.
template <class T>
tensor any_elements(random_choices& choose, const dims& shape) {
  const tensor values = random_tensor<T>(choose, shape);
  if constexpr (!std::is_same_v<T, bool>) make_hard_to_order(choose, values.storage(), sizeof(T));
  return values;
}

}  // namespace shale::test
