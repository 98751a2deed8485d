// Tensors as text.
#pragma once

#include <string>

#include "shale/index.hpp"

namespace [[gnu::visibility("default")]] shale {

class tensor;

/// How `to_string(tensor)` prints.
struct print_options {
  index_t line_width = 80;  ///< columns; longer rows wrap

  /// Above this many elements, long axes show their first and last `edge_items` only, and where
  /// that leaves more than (2 * edge_items)^6 elements, as many short axes do, leading axes show
  /// their first position only: printing never touches a whole large tensor.
  index_t threshold = 1000;
  index_t edge_items = 3;  ///< > 0

  /// Digits after the point: 0 to 17.
  int precision = 4;
};

/// The elements as nested brackets, in NumPy's arrangement, then a line with dtype and shape. All
/// elements have one format: integers plain, whole floats with a bare point, other floats with
/// `precision` digits after the point. Where the largest magnitude is below 0.1 or from 100,000 on,
/// a common power of ten stands on a line in front; where magnitudes span more than four decades
/// each number has its own exponent.
/// Cost     reads and formats the elements that are shown only
/// Throws   invalid_argument (options), io if a mapped file lost bytes
std::string to_string(const tensor& which, const print_options& options = {});

}  // namespace shale
