// Reads the subscripts of `einsum`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shale/dims.hpp"

namespace shale::ops {

/// Names of axes are numbers: A to Z are 0 to 25, and a to z are 26 to 51, which is the order of
/// ASCII. The axes of an ellipsis have the numbers from here on, beginning at its last axis.
inline constexpr index_t first_name_of_ellipsis = 52;

/// The letters of one operand, or of the result.
struct subscript_term {
  dims names;                        // the names of the letters, without those of an ellipsis
  std::optional<index_t> dots = {};  // the number of letters in front of the ellipsis
  std::vector<std::size_t> at = {};  // the position of each letter in the text
  std::size_t begin = 0;             // the position where the term begins
};

struct subscripts {
  std::string_view text;
  std::vector<subscript_term> operands;
  std::optional<subscript_term> result;

  /// Reads subscripts such as "ij,jk->ik". Spaces have no meaning, except inside "->" and "...".
  /// Throws   invalid_argument, with the position in the text
  static subscripts read(std::string_view text);

  [[noreturn]] void fail(const std::string& message, std::size_t at) const;

  /// The names of an operand's axes, also of those that an ellipsis stands for.
  /// Throws   invalid_argument (more or fewer letters than axes)
  dims names_of_operand(std::size_t number, const dims& shape) const;

  /// The names of the result's axes, if the longest ellipsis of an operand has `axes` axes. If the
  /// text has no result, these are the axes of the ellipsis, and then the letters that occur once,
  /// in the order of ASCII.
  /// Throws   invalid_argument (the result has no ellipsis for these axes)
  dims names_of_result(index_t axes) const;
};

/// The letter of a name, or "...".
std::string name_text(index_t name);

}  // namespace shale::ops
