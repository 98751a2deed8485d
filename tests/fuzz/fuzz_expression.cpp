// Text that people type at the tools: expressions, addresses, attributes, shapes, sizes, codecs. The first byte
// chooses which; the rest is the text. What must hold: it is understood, or refused as the caller's
// mistake with a message; and what is understood reads the same when written again.
#include <string>
#include <string_view>

#include "address.hpp"
#include "attribute.hpp"
#include "codec_text.hpp"
#include "expression.hpp"
#include "fuzz/require.hpp"
#include "shale/error.hpp"
#include "shale/tensor.hpp"
#include "text_error.hpp"
#include "tokens.hpp"
#include "units.hpp"

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
  for (const tools::token& each : tokens) {
    require(each.at >= end && each.at <= text.size(), "tokens follow each other");
    end = each.at;
  }
  require(!tokens.empty() && tokens.back().kind == tools::token_kind::end, "the last token is end");
}

void read_address(std::string_view text) {
  const tools::address where = tools::parse_address(text);
  require(!where.file.empty() && where.text == text, "an address names a file");
  const tools::address again = tools::parse_address(where.label());
  require(again.file == where.file && again.array == where.array, "a label survives being typed");
  if (where.index) return;
  const tools::address whole = tools::parse_whole_address(text);
  require(whole.file == where.file && whole.array == where.array, "one text, one meaning");
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
  const tools::attribute again = tools::parse_attribute(key + '=' + value);
  require(again.key == key && again.value == value, "an attribute survives being set again");
}

void read(std::uint8_t which, std::string_view text) {
  switch (which) {
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
  // A copy of exactly this size, so that AddressSanitizer sees a look beyond it.
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
