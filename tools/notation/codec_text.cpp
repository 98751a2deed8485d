#include "notation/codec_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "notation/text_error.hpp"

namespace shale::tools {

namespace {

// A compressor, and the highest of its levels that the command offers.
struct named_compressor {
  std::string_view name;
  compressor packs;
  int level_max;
};
constexpr std::array<named_compressor, 2> compressors{
    {{"zstd", compressor::zstd, 19}, {"lz4", compressor::lz4, 12}}};

// The command offers the regular levels. Files may have other ones, which a program can ask for:
// levels below 1 compress little, and levels of zstd above 19 need much memory.
constexpr int level_min = 1;
constexpr int level_default = 1;

// The mantissa bits of the widest dtype. The library checks the number against the array's dtype.
constexpr int mantissa_bits_max = 52;

[[noreturn]] void fail(std::string_view message, std::string_view text, std::size_t at) {
  throw_at("codec", message, text, at,
           "stages are bitround:N, delta, shuffle, bitshuffle, "
           "zstd:N, lz4:N");
}

// One stage: "zstd:1" is {"zstd", "1"}.
struct stage {
  std::string_view name;
  std::string_view argument;
  bool has_argument = false;
  std::size_t at = 0;
};

// The stage's argument, a number from `least` to `most`.
int number(const stage& item, std::string_view text, int least, int most) {
  int value = 0;
  const char* end = item.argument.data() + item.argument.size();
  const auto [rest, failure] = std::from_chars(item.argument.data(), end, value);
  if (failure != std::errc() || rest != end || value < least || value > most)
    fail(fmt::format("{} takes a number from {} to {}", item.name, least, most), text,
         item.at + item.name.size() + (item.has_argument ? 1 : 0));
  return value;
}

}  // namespace

codec_spec parse_codec(std::string_view text) {
  codec_spec result{.shuffle = shuffle_mode::none, .compression = std::nullopt};
  bool shuffled = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    stage next{.name = text.substr(at, comma - at), .argument = {}, .at = at};
    if (const std::size_t colon = next.name.find(':'); colon != std::string_view::npos) {
      next.argument = next.name.substr(colon + 1);
      next.name = next.name.substr(0, colon);
      next.has_argument = true;
    }
    const auto refuse_repetition = [&](bool already) {
      if (already) fail(fmt::format("'{}' is named twice", next.name), text, at);
    };
    const auto refuse_number = [&] {
      if (next.has_argument) fail(fmt::format("'{}' takes no number", next.name), text, at);
    };
    if (next.name == "raw" && text == "raw") return result;
    const auto* const packs = std::ranges::find(compressors, next.name, &named_compressor::name);
    if (packs != compressors.end()) {
      if (result.compression) fail("a chunk is compressed once", text, at);
      const int level =
          next.has_argument ? number(next, text, level_min, packs->level_max) : level_default;
      result.compression = {packs->packs, level};
    } else if (next.name == "bitround") {
      refuse_repetition(result.bitround.has_value());
      result.bitround = number(next, text, 0, mantissa_bits_max);
    } else if (next.name == "delta") {
      refuse_repetition(result.delta);
      refuse_number();
      result.delta = true;
    } else if (next.name == "shuffle" || next.name == "bitshuffle") {
      refuse_repetition(shuffled);
      refuse_number();
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
  const shuffle_mode shuffle = codec.shuffle.value_or(
      item_bytes(type) > 1 && codec.compression ? shuffle_mode::byte : shuffle_mode::none);
  if (shuffle == shuffle_mode::byte) add("shuffle");
  if (shuffle == shuffle_mode::bit) add("bitshuffle");
  if (codec.compression)
    for (const named_compressor& known : compressors)
      if (known.packs == codec.compression->compressor)
        add(fmt::format("{}:{}", known.name, codec.compression->level));
  return text.empty() ? "raw" : text;
}

}  // namespace shale::tools
