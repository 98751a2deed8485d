#include "support/random_tensors.hpp"

namespace shale::test {

index_list as_list(const dims& values) { return {values.begin(), values.end()}; }

index_list positions_of(const tensor& values) {
  return index_oracle::strided(as_list(values.shape()), as_list(values.strides()), values.offset())
      .positions;
}

std::vector<std::byte> element_bytes_of(const tensor& values, std::size_t bytes_each) {
  const index_list positions = positions_of(values);
  std::vector<std::byte> result(positions.size() * bytes_each);
  const std::byte* const stored = values.storage().data();
  std::byte* into = result.data();
  for (const index_t position : positions) {
    std::memcpy(into, stored + position * static_cast<index_t>(bytes_each), bytes_each);
    into += bytes_each;
  }
  return result;
}

index_list broadcast_positions(const dims& source_shape, const dims& shape) {
  return index_oracle::row_major(as_list(source_shape)).broadcast_to(as_list(shape)).positions;
}

std::vector<std::byte> bytes_of(const storage& bytes) {
  return {bytes.data(), bytes.data() + bytes.size_bytes()};
}

}  // namespace shale::test
