// Prints tensors as text.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "shale/index.hpp"
#include "shale/logical_dtype.hpp"

namespace [[gnu::visibility("default")]] shale {

class tensor;

/// Options of `to_string(tensor)`.
struct print_options {
  index_t line_width = 80;  ///< columns; longer rows wrap

  /// A tensor with more elements is shortened, so that printing never reads all of a large tensor:
  /// of long axes only the first and the last `edge_items` positions are shown. If that leaves more
  /// than (2 * edge_items)^6 elements, only the first position of leading axes is shown.
  index_t threshold = 1000;
  index_t edge_items = 3;  ///< > 0

  /// Digits after the point, 0 to 17. There are fewer if no element needs them, and more if
  /// different elements would look the same.
  int precision = 4;

  /// What the integers stand for: times are shown in ISO 8601, texts in quotes.
  std::optional<logical_dtype> logical = std::nullopt;

  /// Called at least once for every few thousand elements that are shown, or null. An exception
  /// that it throws ends the call.
  void (*checkpoint)() = nullptr;
};

/// The elements in nested brackets, arranged as in NumPy, and a last line with dtype and shape. All
/// elements have the same format, which follows from their shortest exact texts. Floats have as
/// many digits after the point as one of them needs, up to `precision`. If magnitudes differ by
/// more than four decades, or reach 1e16 or 1e-5, each number has its own exponent. If the largest
/// magnitude is below 0.1, or 100,000 or more, the first line is a common power of ten, provided
/// that `precision` digits then show every element exactly. Texts are elements without their last
/// axis. What could control a terminal is shown as \xNN.
/// Cost     reads and formats only the elements that are shown
/// Throws   invalid_argument (options; a logical dtype with another storage), out_of_memory, io (a
///          mapped file lost bytes), exceptions of the checkpoint
/// Threads  safe together with other reads of the elements
std::string to_string(const tensor& values, const print_options& options = {});

/// A line about the tensor without its elements: "float32 (4, 3), strides (1, 4), from element 5,
/// of the file x.bin, read-only". It leaves out the usual properties: row-major, offset 0, in
/// memory, writable.
/// Cost     O(rank), reads no element
/// Throws   out_of_memory
std::string describe(const tensor& values);

/// Writes `to_string(values)` to the stream.
/// Throws   as to_string, and the exceptions of the stream
std::ostream& operator<<(std::ostream& out, const tensor& values);

}  // namespace shale
