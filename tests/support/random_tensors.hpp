// Tensors with random layouts and random elements. Their elements are read back one by one through
// positions that the tested code did not compute.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "shale/memory_pool.hpp"
#include "shale/tensor.hpp"
#include "support/index_oracle.hpp"
#include "support/random_layouts.hpp"

namespace shale::test {

index_list as_list(const dims& values);

/// The storage positions of a tensor's elements, in row-major order of its indices.
index_list positions_of(const tensor& values);

/// The bytes of the elements in row-major order, for elements of `bytes_each` bytes.
std::vector<std::byte> element_bytes_of(const tensor& values, std::size_t bytes_each);

/// The elements in row-major order.
template <class T>
std::vector<T> elements_of(const tensor& values) {
  const std::vector<std::byte> bytes = element_bytes_of(values, sizeof(T));
  std::vector<T> result(bytes.size() / sizeof(T));
  if constexpr (std::is_same_v<T, bool>) {  // whose vector has no bytes of elements
    for (std::size_t i = 0; i < result.size(); ++i) {
      bool element;
      std::memcpy(&element, &bytes[i], 1);
      result[i] = element;
    }
  } else if (!result.empty()) {
    std::memcpy(static_cast<void*>(result.data()), bytes.data(), bytes.size());
  }
  return result;
}

/// A tensor with the layout `placed`, whose whole storage, including gaps, holds small whole
/// numbers.
template <class T, class Choose>
tensor random_tensor(Choose&& choose, const placed_layout& placed) {
  storage bytes = storage::allocate(static_cast<std::size_t>(placed.positions) * sizeof(T));
  auto* values = reinterpret_cast<T*>(bytes.data());
  for (index_t i = 0; i < placed.positions; ++i)
    values[i] = static_cast<T>(static_cast<float>(choose(0, 100)));
  return tensor(bytes, dtype_of<T>(), placed.geometry);
}

template <class T, class Choose>
tensor random_tensor(Choose&& choose, const dims& shape, sharing may_share = sharing::allowed) {
  return random_tensor<T>(choose, random_layout(choose, shape, may_share));
}

/// For each element of `shape` in row-major order, the row-major number of the element of shape
/// `source_shape` that is broadcast there.
index_list broadcast_positions(const dims& source_shape, const dims& shape);

/// Every byte of a storage.
std::vector<std::byte> bytes_of(const storage& bytes);

}  // namespace shale::test
