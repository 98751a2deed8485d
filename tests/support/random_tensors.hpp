// Tensors with random layouts and random elements. Their elements are read back one by one through
// positions that the tested code did not compute.
#pragma once

#include <cstring>
#include <vector>

#include "shale/memory_pool.hpp"
#include "shale/tensor.hpp"
#include "support/index_oracle.hpp"
#include "support/random_layouts.hpp"

namespace shale::test {

inline index_list as_list(const dims& values) { return {values.begin(), values.end()}; }

/// The storage positions of a tensor's elements, in row-major order of its indices.
inline index_list positions_of(const tensor& values) {
  return index_oracle::strided(as_list(values.shape()), as_list(values.strides()), values.offset())
      .positions;
}

/// The elements in row-major order.
template <class T>
std::vector<T> elements_of(const tensor& values) {
  const index_list positions = positions_of(values);
  std::vector<T> result;
  result.reserve(positions.size());
  for (const auto position : positions) {
    T element;
    std::memcpy(&element, values.storage().data() + position * static_cast<index_t>(sizeof(T)),
                sizeof(T));
    result.push_back(element);
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
inline index_list broadcast_positions(const dims& source_shape, const dims& shape) {
  return index_oracle::row_major(as_list(source_shape)).broadcast_to(as_list(shape)).positions;
}

/// Every byte of a storage.
inline std::vector<std::byte> bytes_of(const storage& bytes) {
  return {bytes.data(), bytes.data() + bytes.size_bytes()};
}

}  // namespace shale::test
