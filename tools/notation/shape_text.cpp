#include "notation/shape_text.hpp"

#include <fmt/format.h>

#include <optional>

#include "shale/error.hpp"

namespace shale::tools {

dims take_shape(text_cursor& text, std::string_view close) {
  dims shape;
  const auto closed = [&] { return close.empty() ? text.done() : text.sees(close); };
  while (!closed()) {
    text.skip_spaces();
    const std::size_t first = text.at();
    if (!text.sees_number()) text.fail("expected a whole number");
    const index_t extent = text.take_number();
    if (extent < 0) text.fail("an extent cannot be negative", first);
    if (shape.size() == rank_max) text.fail(fmt::format("more than {} axes", rank_max), first);
    shape.push_back(extent);
    if (closed()) break;
    if (!text.take(",") && !text.take("x"))
      text.fail(close.empty() ? "expected ','" : fmt::format("expected ',' or '{}'", close));
  }
  if (!close.empty()) text.take(close);
  return shape;
}

dims parse_shape(std::string_view text) {
  text_cursor cursor("shape", text);
  if (cursor.done()) cursor.fail("expected extents, as in 344,403, or () for a single number");
  const std::string_view close = cursor.take("(") ? ")" : cursor.take("[") ? "]" : "";
  const dims shape = take_shape(cursor, close);
  if (!cursor.done()) cursor.fail("expected nothing more here");
  return shape;
}

dtype parse_dtype_option(std::string_view text) {
  if (const std::optional<dtype> type = parse_dtype(text)) return *type;
  throw error(
      errc::invalid_argument, fmt::format("no dtype '{}'", text),
      {"there are bool, int8 … int64, uint8 … uint64, float16, bfloat16, float32, float64, "
       "complex64, complex128, float8_e4m3fn and float8_e5m2, and NumPy's codes such as f4"});
}

}  // namespace shale::tools
