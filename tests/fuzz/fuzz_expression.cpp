// Fuzzes the parsers of text that people type at the tools: expressions, addresses, attributes,
// shapes, sizes and codecs. The first byte chooses the parser, and the rest is the text.
//
// Properties: A parser accepts the text, or refuses it as a mistake of the caller with a message.
// Text that was accepted and written again is read as the same value.
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "language/parsing/expression.hpp"
#include "language/tokens/tokens.hpp"
#include "notation/address.hpp"
#include "notation/attribute.hpp"
#include "notation/codec_text.hpp"
#include "notation/shape_text.hpp"
#include "notation/text_error.hpp"
#include "shale/error.hpp"
#include "shale/tensor.hpp"
#include "terminal/units.hpp"

namespace {

using namespace shale;
using fuzz::require;

const tools::bindings& arrays() {
  static const tools::bindings made{
      {"a", tensor::zeros({2, 3}, dtype::float32)},
      {"b", tensor::zeros({3}, dtype::float64)},
      {"i", tensor::zeros({4}, dtype::int32)},
      {"u", tensor::zeros({2, 1, 3}, dtype::uint8)},
      {"c", tensor::zeros({3, 2}, dtype::complex64)},
      {"flags", tensor::zeros({3}, dtype::boolean)},
      {"nothing", tensor::zeros({0, 3}, dtype::int64)},
      {"one", tensor::zeros({}, dtype::float16)},
  };
  return made;
}

void read_expression(std::string_view text) {
  const expr value = tools::parse_expression(text, arrays());
  require(value.rank() <= 32 && value.size() >= 0, "an expression has a shape");
}

void read_tokens(std::string_view text) {
  std::size_t end = 0;
  const auto tokens = tools::split_tokens(text);
  for (const tools::token& lexeme : tokens) {
    require(lexeme.at >= end && lexeme.at <= text.size(), "tokens follow each other");
    end = lexeme.at;
  }
  require(!tokens.empty() && tokens.back().kind == tools::token_kind::end, "the last token is end");
}

void read_address(std::string_view text) {
  const tools::address parsed = tools::parse_address(text);
  require(!parsed.file.empty() && parsed.text == text, "an address names a file");
  const tools::address again = tools::parse_address(parsed.label());
  require(again.file == parsed.file && again.array == parsed.array, "a label survives being typed");
  if (parsed.index) return;
  const tools::address whole = tools::parse_whole_address(text);
  require(whole.file == parsed.file && whole.array == parsed.array, "one text, one meaning");
}

void read_shape(std::string_view text) {
  for (const index_t extent : tools::parse_shape(text))
    require(extent >= 0, "extents are not negative");
}

void read_codec(std::string_view text) {
  const codec_spec codec = tools::parse_codec(text);
  const std::string written = tools::format_codec(codec, dtype::float32);
  const std::string again = tools::format_codec(tools::parse_codec(written), dtype::float32);
  require(written == again, "a codec survives being written");
}

void read_attribute(std::string_view text) {
  const auto [key, value] = tools::parse_attribute(text);
  require(!key.empty(), "an attribute has a key");
  const tools::attribute again = tools::parse_attribute(key + '=' + tools::attribute_text(value));
  require(again.key == key && again.value == value,
          "an attribute survives being typed as it is shown");
}

void read(std::uint8_t reader, std::string_view text) {
  switch (reader) {
    case 'e':
      return read_expression(text);
    case 't':
      return read_tokens(text);
    case 'a':
      return read_address(text);
    case 's':
      return read_shape(text);
    case 'c':
      return read_codec(text);
    case 'b':
      return void(tools::parse_bytes(text));
    case 'k':
      return read_attribute(text);
    case 'd':
      return void(tools::parse_dtype_option(text));
    default:
      return read_expression(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // The copy has exactly this size, so that AddressSanitizer detects a read beyond its end.
  const std::vector<char> exact(data + 1, data + size);
  try {
    read(data[0], std::string_view(exact.data(), exact.size()));
  } catch (const error& failure) {
    require(failure.code() == errc::invalid_argument || failure.code() == errc::unsupported,
            "what was typed is the caller's mistake");
    require(!std::string_view(failure.what()).empty(), "a refusal says why");
  }
  return 0;
}
