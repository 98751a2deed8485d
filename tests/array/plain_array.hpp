// Arrays as plain vectors that are copied element by element: the oracle of arrays that change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/grid.hpp"
#include "shale/array.hpp"
#include "shale/dims.hpp"
#include "shale/tensor.hpp"

namespace shale::test {

/// An array of int32 as a plain vector, row-major.
struct plain {
  dims shape;
  std::vector<int> elements;

  static std::size_t count(const dims& shape) {
    std::size_t product = 1;
    for (const index_t extent : shape) product *= static_cast<std::size_t>(extent);
    return product;
  }

  int& at(const dims& index) {
    std::size_t position = 0;
    for (index_t axis = 0; axis < shape.size(); ++axis)
      position =
          position * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(index[axis]);
    return elements[position];
  }

  template <class Visit>
  static void for_each(const dims& shape, Visit visit) {
    if (count(shape) == 0) return;
    dims index = dims::filled(shape.size(), 0);
    do visit(index);
    while (detail::advance(index, shape));
  }

  void resize(const dims& to, int fill) {
    plain made{to, std::vector<int>(count(to), fill)};
    for_each(to, [&](const dims& index) {
      for (index_t axis = 0; axis < to.size(); ++axis)
        if (index[axis] >= shape[axis]) return;
      made.at(index) = at(index);
    });
    *this = made;
  }

  void write(const dims& start, const plain& values) {
    for_each(values.shape, [&](const dims& index) {
      dims there = index;
      for (index_t axis = 0; axis < there.size(); ++axis) there[axis] += start[axis];
      at(there) = const_cast<plain&>(values).at(index);
    });
  }

  tensor as_tensor() const {
    const tensor made = tensor::empty(shape, dtype::int32);
    std::copy(elements.begin(), elements.end(), made.elements<int>().begin());
    return made;
  }

  bool operator==(const plain&) const = default;
};

inline plain read_plain(const array& stored) {
  const tensor read = stored.read();
  const auto values = read.elements<const int>();
  return {stored.shape(), {values.begin(), values.end()}};
}

}  // namespace shale::test
