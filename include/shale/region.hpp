// A box of indices: where to read or write.
#pragma once

#include <string>

#include "shale/dims.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The indices i with start[a] <= i[a] < start[a] + shape[a] on every axis a.
struct region {
  dims start;
  dims shape;

  /// All of an index space.
  static region all(const dims& shape) { return {dims::filled(shape.size(), 0), shape}; }

  friend bool operator==(const region&, const region&) noexcept = default;
};

/// "[2:5, 0:10]"; where no slices can say it, as the ranks differ or an end is beyond 64 bits,
/// "start (2,), shape (3, 10)".
std::string to_string(const region& where);

/// Throws   invalid_argument naming the axis unless `where` has the rank of `shape` and lies inside
void require_inside(const region& where, const dims& shape);

}  // namespace shale
