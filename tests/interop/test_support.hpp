// Tensors with a byte pattern that the Python side computes too (numpy_files.py).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "shale/tensor.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale::test {

/// Byte i of the test pattern; numpy_files.py has the same formula.
inline std::uint8_t pattern_byte(std::uint64_t i, std::uint64_t seed) {
  return static_cast<std::uint8_t>((i * 2654435761u + seed * 40503u) >> 13);
}

/// A row-major tensor whose bytes are the pattern (bools: its last bit).
inline tensor pattern(const dims& shape, dtype type, std::uint64_t seed) {
  tensor made = tensor::empty(shape, type);
  auto* bytes = reinterpret_cast<std::uint8_t*>(made.data());
  for (std::size_t i = 0; i < made.size_bytes(); ++i)
    bytes[i] =
        static_cast<std::uint8_t>(pattern_byte(i, seed) & (type == dtype::boolean ? 1 : 255));
  return made;
}

/// The elements' bytes in row-major order, gathered one by one.
inline std::string row_major_bytes(const tensor& values) {
  std::string bytes;
  const std::size_t width = values.item_bytes();
  dims index = dims::filled(values.rank(), 0);
  for (index_t i = 0; i < values.size(); ++i) {
    index_t position = 0;
    for (index_t axis = 0; axis < values.rank(); ++axis)
      position += index[axis] * values.stride(axis);
    bytes.append(
        reinterpret_cast<const char*>(values.data()) + position * static_cast<index_t>(width),
        width);
    for (index_t axis = values.rank() - 1; axis >= 0; --axis) {
      if (++index[axis] < values.shape(axis)) break;
      index[axis] = 0;
    }
  }
  return bytes;
}

inline const std::vector<dtype>& numpy_dtypes() {
  static const std::vector<dtype> types{
      dtype::boolean, dtype::int8,    dtype::int16,     dtype::int32,     dtype::int64,
      dtype::uint8,   dtype::uint16,  dtype::uint32,    dtype::uint64,    dtype::float16,
      dtype::float32, dtype::float64, dtype::complex64, dtype::complex128};
  return types;
}

}  // namespace shale::test
