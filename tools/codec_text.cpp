#include "codec_text.hpp"

#include <fmt/format.h>

#include <charconv>

#include "text_error.hpp"

namespace shale::tools {

namespace {

constexpr int zstd_level_min = 1;
constexpr int zstd_level_max = 19;
constexpr int zstd_level_default = 1;
constexpr int mantissa_bits_max = 52;

[[noreturn]] void fail(std::string_view message, std::string_view text, std::size_t at) {
  throw_at("codec", message, text, at, "stages are bitround:N, delta, shuffle, bitshuffle, zstd:N");
}

// One stage: "zstd:1" is {"zstd", "1"}.
struct stage {
  std::string_view name;
  std::string_view argument;
  bool has_argument = false;
  std::size_t at = 0;
};

int number(const stage& of, std::string_view text, int least, int most) {
  int value = 0;
  const char* end = of.argument.data() + of.argument.size();
  const auto [rest, failure] = std::from_chars(of.argument.data(), end, value);
  if (failure != std::errc() || rest != end || value < least || value > most)
    fail(fmt::format("{} takes a number from {} to {}", of.name, least, most), text,
         of.at + of.name.size() + (of.has_argument ? 1 : 0));
  return value;
}

}  // namespace

codec_spec parse_codec(std::string_view text) {
  codec_spec result{.shuffle = shuffle_mode::none, .zstd_level = std::nullopt};
  bool shuffled = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    stage next{.name = text.substr(at, comma - at), .argument = {}, .at = at};
    if (const std::size_t colon = next.name.find(':'); colon != std::string_view::npos) {
      next.argument = next.name.substr(colon + 1);
      next.name = next.name.substr(0, colon);
      next.has_argument = true;
    }
    const auto once = [&](bool already) {
      if (already) fail(fmt::format("'{}' is named twice", next.name), text, at);
    };
    const auto bare = [&] {
      if (next.has_argument) fail(fmt::format("'{}' takes no number", next.name), text, at);
    };
    if (next.name == "raw" && text == "raw") return result;
    if (next.name == "zstd") {
      once(result.zstd_level.has_value());
      result.zstd_level = next.has_argument ? number(next, text, zstd_level_min, zstd_level_max)
                                            : zstd_level_default;
    } else if (next.name == "bitround") {
      once(result.bitround.has_value());
      result.bitround = number(next, text, 0, mantissa_bits_max);
    } else if (next.name == "delta") {
      once(result.delta);
      bare();
      result.delta = true;
    } else if (next.name == "shuffle" || next.name == "bitshuffle") {
      once(shuffled);
      bare();
      shuffled = true;
      result.shuffle = next.name == "shuffle" ? shuffle_mode::byte : shuffle_mode::bit;
    } else {
      fail(next.name.empty() ? std::string("a stage is missing")
                             : fmt::format("no stage '{}'", next.name),
           text, at);
    }
    at = comma + 1;
  }
  return result;
}

std::string format_codec(const codec_spec& codec, dtype type) {
  std::string text;
  const auto add = [&](std::string_view stage) {
    if (!text.empty()) text += ',';
    text += stage;
  };
  if (codec.bitround) add(fmt::format("bitround:{}", *codec.bitround));
  if (codec.delta) add("delta");
  const shuffle_mode shuffle =
      codec.shuffle.value_or(item_bytes(type) > 1 ? shuffle_mode::byte : shuffle_mode::none);
  if (shuffle == shuffle_mode::byte) add("shuffle");
  if (shuffle == shuffle_mode::bit) add("bitshuffle");
  if (codec.zstd_level) add(fmt::format("zstd:{}", *codec.zstd_level));
  return text.empty() ? "raw" : text;
}

}  // namespace shale::tools
