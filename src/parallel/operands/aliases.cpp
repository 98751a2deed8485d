#include "parallel/operands/aliases.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "parallel/mapped/mapped_bytes.hpp"
#include "storage/blocks/backing.hpp"

namespace shale::parallel {

namespace {

// Tensors of different dtypes are compared byte by byte, so elements become one more axis of
// `item_bytes` steps of one byte. Two tensors are compared in one coordinate system: addresses, or
// positions in a file. `origin` is where the tensor's storage begins in that system.

// Converts a tensor's layout to bytes. Axes of length 1 or stride 0 are left out. Returns nothing
// if the additional axis does not fit the largest rank.
std::optional<layout> byte_layout(const tensor& values, index_t origin) {
  const auto item = static_cast<index_t>(values.item_bytes());
  dims shape;
  dims strides;
  for (index_t axis = 0; axis < values.rank(); ++axis) {
    if (values.shape()[axis] == 1 || values.strides()[axis] == 0) continue;
    shape.push_back(values.shape()[axis]);
    strides.push_back(values.strides()[axis] * item);
  }
  if (shape.size() == rank_max) return std::nullopt;
  shape.push_back(item);
  strides.push_back(1);
  return layout(shape, strides, origin + values.offset() * item);
}

bool meet(const tensor& a, index_t a_origin, const tensor& b, index_t b_origin) {
  const auto left = byte_layout(a, a_origin);
  const auto right = byte_layout(b, b_origin);
  return !left || !right || overlaps(*left, 1, *right, 1);
}

index_t address_of(const tensor& values) {
  return reinterpret_cast<std::intptr_t>(values.storage().data());
}

// A part of a tensor's span that is contiguous in the file: a storage may consist of several
// extents.
struct run {
  std::uint64_t first;  // offset in the file
  std::uint64_t end;
  index_t origin;  // file offset of the storage's byte 0 if the whole storage were this one extent
};

// Whether `visit(run)` returns true for at least one run under the tensor's span.
template <class Visit>
bool any_run(const tensor& values, Visit visit) {
  const byte_range span = span_of(values);
  const std::size_t end = span.offset + span.bytes;
  for (std::size_t at = span.offset; at < end;) {
    const auto extent = detail::extent_at(values.storage(), at);
    const std::size_t bytes = std::min(extent.bytes, end - at);
    if (visit(run{extent.offset, extent.offset + bytes,
                  static_cast<index_t>(extent.offset) - static_cast<index_t>(at)}))
      return true;
    at += bytes;
  }
  return false;
}

// Compares every pair of runs that overlap in the file. For a pair, both tensors are placed in the
// file as if each were one extent that continues its run. Elements outside the two runs are then
// placed wrongly, so the result may be a false overlap, but never a missed one.
bool meet_in_file(const tensor& a, const tensor& b) {
  return any_run(a, [&](const run& left) {
    return any_run(b, [&](const run& right) {
      return left.first < right.end && right.first < left.end &&
             meet(a, left.origin, b, right.origin);
    });
  });
}

// Whether two tensors with equal shapes and strides lie on the same bytes of the file from the
// first to the last.
bool same_file_bytes(const tensor& a, const tensor& b) {
  const byte_range left = span_of(a);
  const byte_range right = span_of(b);
  for (std::size_t done = 0; done < left.bytes;) {
    const auto x = detail::extent_at(a.storage(), left.offset + done);
    const auto y = detail::extent_at(b.storage(), right.offset + done);
    if (x.offset != y.offset) return false;
    done += std::min(x.bytes, y.bytes);
  }
  return true;
}

}  // namespace

bool same_elements(const tensor& written, const tensor& other) {
  const bool same_address = written.data() == other.data();
  if (!same_address && !detail::stores_show(written.storage(), other.storage())) return false;
  if (written.item_bytes() != other.item_bytes() || !(written.shape() == other.shape()))
    return false;
  for (index_t axis = 0; axis < written.rank(); ++axis)
    if (written.shape()[axis] > 1 && written.strides()[axis] != other.strides()[axis]) return false;
  return same_address || (written.size() > 0 && same_file_bytes(written, other));
}

bool may_overlap(const tensor& written, const tensor& other) {
  if (written.size() == 0 || other.size() == 0) return false;
  return meet(written, address_of(written), other, address_of(other)) ||
         (detail::stores_show(written.storage(), other.storage()) && meet_in_file(written, other));
}

}  // namespace shale::parallel
