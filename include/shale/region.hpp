// A box in an index space: the part of an array that a call reads or writes.
#pragma once

#include <string>

#include "shale/dims.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The indices i with start[a] <= i[a] < start[a] + shape[a] for every axis a.
struct region {
  dims start;
  dims shape;

  /// The whole index space of an array of that shape. Never throws.
  static region all(const dims& shape) { return {dims::filled(shape.size(), 0), shape}; }

  friend bool operator==(const region&, const region&) noexcept = default;
};

/// The region as slices, "[2:5, 0:10]". If start and shape have different ranks, or an end does not
/// fit 64 bits, the text is "start (2,), shape (3, 10)".
/// Throws   std::bad_alloc
std::string to_string(const region& part);

/// Checks that `part` lies inside an array of that shape.
/// Throws   invalid_argument (another rank, or an axis on which it lies outside, which is named)
void require_inside(const region& part, const dims& shape);

}  // namespace shale
