#include "format/catalog/array_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/bytes/file_layout.hpp"
#include "format/catalog/array_name.hpp"
#include "format/catalog/attributes.hpp"
#include "shale/error.hpp"
#include "shale/index.hpp"

namespace shale::format {
namespace {

// The product of `start` and all values; nothing if it is greater than `most`.
std::optional<std::uint64_t> product(const dims& values, std::uint64_t start,
                                     std::uint64_t most) noexcept {
  for (const index_t value : values)
    if (value == 0) return 0;
  for (const index_t value : values) {
    const auto next = checked_mul(start, static_cast<std::uint64_t>(value));
    if (!next || *next > most) return std::nullopt;
    start = *next;
  }
  return start;
}

std::optional<std::string> problem_of(const array_record& record, const dense_layout& dense) {
  const std::uint64_t bytes = array_bytes(record);
  std::uint64_t capacity = 0;
  for (std::size_t i = 0; i < dense.extents.size(); ++i) {
    const extent& piece = dense.extents[i];
    if (piece.bytes == 0) return fmt::format("extent {} is empty", i);
    if (piece.offset % dense_alignment(piece.bytes) != 0)
      return fmt::format("extent {} of {} bytes starts at byte {}, not at a multiple of {}", i,
                         piece.bytes, piece.offset, dense_alignment(piece.bytes));
    if (capacity >= bytes) return fmt::format("extent {} holds no element", i);
    if (i + 1 < dense.extents.size() && piece.bytes % dense_alignment(piece.bytes) != 0)
      return fmt::format("extent {} has {} bytes, not a multiple of its alignment {}", i,
                         piece.bytes, dense_alignment(piece.bytes));
    const auto sum = checked_add(capacity, piece.bytes);
    if (!sum) return "its extents are too long";
    capacity = *sum;
  }
  if (capacity < bytes)
    return fmt::format("its extents hold {} bytes, its shape needs {}", capacity, bytes);
  const std::uint64_t wanted = ceil_div(bytes, dense_segment_bytes) * 8;
  if (dense.checksums.bytes != 0 && dense.checksums.bytes != wanted)
    return fmt::format("its checksums have {} bytes, its shape needs {}", dense.checksums.bytes,
                       wanted);
  return std::nullopt;
}

std::optional<std::string> problem_of(const array_record& record, const chunked_layout& chunked) {
  const index_t rank = record.shape.size();
  if (chunked.chunk_shape.size() != rank || chunked.grid_capacity.size() != rank)
    return fmt::format("shape {}, chunk shape {} and grid capacity {} differ in rank",
                       to_string(record.shape), to_string(chunked.chunk_shape),
                       to_string(chunked.grid_capacity));
  for (index_t axis = 0; axis < rank; ++axis) {
    if (chunked.chunk_shape[axis] < 1)
      return fmt::format("chunk length {} along axis {}", chunked.chunk_shape[axis], axis);
    const index_t needed = ceil_div(record.shape[axis], chunked.chunk_shape[axis]);
    if (chunked.grid_capacity[axis] < std::max<index_t>(needed, 1))
      return fmt::format("grid capacity {} along axis {}, its shape needs {}",
                         chunked.grid_capacity[axis], axis, std::max<index_t>(needed, 1));
  }
  if (!product(chunked.chunk_shape, item_bytes(record.dtype), chunk_bytes_max))
    return fmt::format("chunks of shape {} have more than {} bytes", to_string(chunked.chunk_shape),
                       chunk_bytes_max);
  if (!product(chunked.grid_capacity, 1, chunk_numbers_max))
    return fmt::format("grid capacity {} is too large", to_string(chunked.grid_capacity));
  try {
    const codec checked(chunked.stages, record.dtype);
  } catch (const error& failure) {
    return failure.what();
  }
  return std::nullopt;
}

}  // namespace

void require_chunked(const array_record& record) {
  if (record.is_dense())
    throw error(errc::invalid_argument, "a dense array has no chunks",
                {"array '" + record.name + "'"});
}

std::uint64_t array_bytes(const array_record& record) {
  return product(record.shape, item_bytes(record.dtype), file_bytes_max).value_or(file_bytes_max);
}

std::uint64_t chunk_bytes(const array_record& record) {
  return product(record.chunked().chunk_shape, item_bytes(record.dtype), chunk_bytes_max)
      .value_or(chunk_bytes_max);
}

std::optional<std::string> problem_of(const array_record& record) {
  if (auto problem = problem_of_name(record.name)) return problem;
  for (index_t axis = 0; axis < record.shape.size(); ++axis)
    if (record.shape[axis] < 0)
      return fmt::format("length {} along axis {}", record.shape[axis], axis);
  // Strides step over axes of length 0 as if it were 1.
  dims stepped = record.shape;
  for (index_t& length : stepped) length = std::max<index_t>(length, 1);
  if (!product(stepped, item_bytes(record.dtype), file_bytes_max))
    return fmt::format("shape {} of {} is too large", to_string(record.shape), name(record.dtype));
  if (record.fill_value.size() != item_bytes(record.dtype))
    return fmt::format("its fill value has {} bytes, an element of {} has {}",
                       record.fill_value.size(), name(record.dtype), item_bytes(record.dtype));
  if (record.dtype == dtype::boolean && record.fill_value[0] > std::byte{1})
    return fmt::format("its fill value is {}, a bool is 0 or 1",
                       std::to_integer<int>(record.fill_value[0]));
  if (record.live) return "live arrays are of a later version";
  for (std::size_t i = 1; i < record.attributes.size(); ++i)
    if (record.attributes[i].first <= record.attributes[i - 1].first)
      return fmt::format("attribute {} is out of order", i);
  return std::visit([&](const auto& layout) { return problem_of(record, layout); }, record.layout);
}

void require_valid(const array_record& record) {
  auto problem = problem_of(record);
  if (!problem) problem = problem_of_attributes(record);
  if (problem)
    throw error(errc::invalid_argument, "not an array that can be stored",
                {"array '" + record.name + "'", *problem});
}

}  // namespace shale::format
