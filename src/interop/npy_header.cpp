// Parses and writes the .npy header: magic, version, length, and a Python dictionary as text.
//
// Invariants
//   npy.1  the reader reads no byte beyond the given span
//   npy.2  a size that the text declares does not make it allocate memory
//   npy.3  it accepts the dictionaries that NumPy writes (any spacing, key order and kind of quote,
//          the "L" of Python 2 in versions 1 and 2), but not Python's grammar in general
//
// Source   numpy.lib.format's documentation of the format (NEP 1); spacing and padding as NumPy
//          1.24 writes them
#include "interop/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "core/allocating.hpp"
#include "core/printable.hpp"
#include "interop/elements.hpp"

namespace shale {

namespace {

constexpr std::string_view magic = interop::npy_magic;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

[[noreturn]] void throw_unsupported_dtype(std::string_view elements, std::string_view descr,
                                          std::string_view fix) {
  throw error(errc::unsupported, fmt::format("{} have no dtype here", elements),
              {fmt::format("descr {}", detail::in_quotes(descr)), std::string(fix)});
}

// Refuses kinds of dtypes that NumPy has and Shale does not have, with a message for each kind.
void refuse_foreign_kind(char kind, std::string_view descr) {
  switch (kind) {
    case 'O':
      throw_unsupported_dtype(
          "Python objects", descr,
          "they are stored as a pickle, which only Python may run: save a numeric copy, "
          "np.save(path, a.astype(np.float64))");
    case 'V':
      throw_unsupported_dtype(
          "raw bytes and structured elements", descr,
          "save each field by itself; bfloat16 and float8 of ml_dtypes look like this too: save "
          "a.astype(np.float32), or a.view(np.uint16)");
  }
}

struct stored_dtype {
  dtype type;
  std::endian order;
  std::optional<logical_dtype> logical = std::nullopt;
  index_t characters = 0;  // of a text
};

struct dtype_code {
  char kind;
  int bytes;
  dtype type;
};

constexpr std::array dtype_codes{
    dtype_code{'b', 1, dtype::boolean},   dtype_code{'i', 1, dtype::int8},
    dtype_code{'i', 2, dtype::int16},     dtype_code{'i', 4, dtype::int32},
    dtype_code{'i', 8, dtype::int64},     dtype_code{'u', 1, dtype::uint8},
    dtype_code{'u', 2, dtype::uint16},    dtype_code{'u', 4, dtype::uint32},
    dtype_code{'u', 8, dtype::uint64},    dtype_code{'f', 2, dtype::float16},
    dtype_code{'f', 4, dtype::float32},   dtype_code{'f', 8, dtype::float64},
    dtype_code{'c', 8, dtype::complex64}, dtype_code{'c', 16, dtype::complex128},
};

[[noreturn]] void throw_bad_dtype(std::string_view descr) {
  throw error(errc::corrupt, "npy header: not a dtype",
              {fmt::format("descr {}, wanted one like '<f4'", detail::in_quotes(descr))});
}

// The longest text in bytes: NumPy counts them with 31 bits.
constexpr index_t text_bytes_max = std::numeric_limits<std::int32_t>::max();

// The part of '<M8[ns]' after its kind.
stored_dtype parse_time(std::string_view rest, logical_kind kind, std::endian order,
                        std::string_view descr) {
  if (!rest.starts_with('8')) throw_bad_dtype(descr);
  // The unit has the same form in the names of logical dtypes.
  std::string named = name(logical_dtype{.kind = kind});
  named += rest.substr(1);
  const auto logical = parse_logical_dtype(named);
  if (!logical) throw_bad_dtype(descr);
  return {dtype::int64, order, logical};
}

// The part of '|S10' or '<U5' after its kind.
stored_dtype parse_text(std::string_view rest, logical_kind kind, std::endian order,
                        std::string_view descr) {
  const dtype storage = storage_dtype({.kind = kind});
  const auto width = static_cast<index_t>(item_bytes(storage));
  index_t characters = 0;
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), characters);
  if (failure != std::errc() || end != rest.data() + rest.size() || characters < 0 ||
      characters > text_bytes_max / width)
    throw_bad_dtype(descr);
  return {storage, width == 1 ? std::endian::little : order, logical_dtype{.kind = kind},
          characters};
}

stored_dtype parse_descr(std::string_view descr) {
  std::string_view rest = descr;
  auto order = std::endian::little;
  if (!rest.empty() && std::string_view("<>|=").find(rest.front()) != std::string_view::npos) {
    if (rest.front() == '>') order = std::endian::big;
    rest.remove_prefix(1);
  }
  if (rest == "?") return {dtype::boolean, std::endian::little};
  if (rest.empty()) throw_bad_dtype(descr);
  const char kind = rest.front();
  rest.remove_prefix(1);
  refuse_foreign_kind(kind, descr);
  if (kind == 'M') return parse_time(rest, logical_kind::datetime, order, descr);
  if (kind == 'm') return parse_time(rest, logical_kind::timedelta, order, descr);
  // 'a' is an old name of 'S'.
  if (kind == 'S' || kind == 'a') return parse_text(rest, logical_kind::bytes, order, descr);
  if (kind == 'U') return parse_text(rest, logical_kind::text, order, descr);
  int bytes = 0;
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), bytes);
  if (failure != std::errc() || end != rest.data() + rest.size()) throw_bad_dtype(descr);
  for (const dtype_code& known : dtype_codes) {
    if (known.kind != kind || known.bytes != bytes) continue;
    // Elements of one byte have no byte order.
    return {known.type, interop::alignment_bytes(known.type) == 1 ? std::endian::little : order};
  }
  if (kind == 'f' && (bytes == 12 || bytes == 16))
    throw_unsupported_dtype("long doubles", descr, "save a.astype(np.float64)");
  if (kind == 'c' && (bytes == 24 || bytes == 32))
    throw_unsupported_dtype("complex long doubles", descr, "save a.astype(np.complex128)");
  throw_bad_dtype(descr);
}

// Reads the dictionary, token by token.
class literal_reader {
 public:
  literal_reader(std::string_view text, int version) : text_(text), version_(version) {}

  void read(npy_header& into) {
    std::optional<stored_dtype> descr;
    std::optional<bool> fortran_order;
    std::optional<dims> shape;
    take('{');
    while (!next_is('}')) {
      const std::string_view key = string();
      take(':');
      if (key == "descr" && !descr) descr = dtype_value();
      else if (key == "fortran_order" && !fortran_order) fortran_order = boolean();
      else if (key == "shape" && !shape) shape = tuple();
      else fail(fmt::format("unexpected or repeated key {}", detail::in_quotes(key)));
      if (!next_is('}')) take(',');
    }
    take('}');
    skip_space();
    if (at_ != text_.size()) fail("bytes after the dictionary");
    if (!descr) fail("no key 'descr'");
    if (!fortran_order) fail("no key 'fortran_order'");
    if (!shape) fail("no key 'shape'");
    into.dtype = descr->type;
    into.byte_order = descr->order;
    into.fortran_order = *fortran_order;
    into.shape = *shape;
    into.logical = descr->logical;
    if (descr->logical && has_character_axis(*descr->logical)) {
      if (shape->size() == rank_max) throw_too_many_axes(rank_max - 1);
      into.shape.push_back(descr->characters);
    }
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    throw error(errc::corrupt, fmt::format("npy header: {}", problem),
                {fmt::format("character {} of {}", at_, detail::in_quotes(trimmed(text_))),
                 "wanted {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"});
  }

  [[noreturn]] void throw_too_many_axes(index_t most) const {
    throw error(errc::unsupported, fmt::format("more than {} axes", most),
                {detail::in_quotes(trimmed(text_))});
  }

  void skip_space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  bool next_is(char wanted) {
    skip_space();
    return at_ < text_.size() && text_[at_] == wanted;
  }

  void take(char wanted) {
    if (!next_is(wanted)) fail(fmt::format("'{}' is missing", wanted));
    ++at_;
  }

  std::string_view string() {
    if (!next_is('\'') && !next_is('"')) fail("a quoted text is missing");
    const char quote = text_[at_++];
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\' && text_[at_] != '\n')
      ++at_;
    if (at_ == text_.size() || text_[at_] != quote) fail("a quoted text does not end");
    return text_.substr(first, at_++ - first);
  }

  // The text from the next bracket to the matching closing bracket, or to the end if there is none.
  std::string_view bracketed() const {
    int open = 0;
    char quote = 0;
    for (std::size_t position = at_; position < text_.size(); ++position) {
      const char c = text_[position];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '[' || c == '(') {
        ++open;
      } else if ((c == ']' || c == ')') && --open == 0) {
        return text_.substr(at_, position + 1 - at_);
      }
    }
    return trimmed(text_.substr(at_));
  }

  stored_dtype dtype_value() {
    if (next_is('[') || next_is('('))
      throw_unsupported_dtype("structured elements", bracketed(),
                              "save each field by itself, np.save(path, a['field'])");
    return parse_descr(string());
  }

  bool boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    fail("neither True nor False");
  }

  index_t integer() {
    skip_space();
    index_t value = 0;
    const char* const first = text_.data() + at_;
    const char* const last = text_.data() + text_.size();
    if (first == last || *first < '0' || *first > '9') fail("an extent is missing");
    const auto [end, failure] = std::from_chars(first, last, value);
    if (failure != std::errc()) fail("an extent beyond 2^63 - 1");
    if (*first == '0' && end != first + 1) fail("an extent with leading zeros");
    at_ += static_cast<std::size_t>(end - first);
    if (version_ <= 2 && at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  dims tuple() {
    dims shape;
    take('(');
    while (!next_is(')')) {
      if (shape.size() == rank_max) throw_too_many_axes(rank_max);
      shape.push_back(integer());
      // (3) is a number in parentheses; a tuple of one number is (3,).
      if (shape.size() == 1 || !next_is(')')) take(',');
    }
    take(')');
    return shape;
  }

  std::string_view text_;
  int version_;
  std::size_t at_ = 0;
};

struct header_frame {
  int version;
  std::size_t text_offset;
  std::size_t text_bytes;
};

// Reads magic, version and length; nothing if `bytes` is too short.
std::optional<header_frame> parse_frame(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, magic.size()) != magic.substr(0, text.size()))
    throw error(
        errc::corrupt, "not an npy file",
        {fmt::format("starts with {}, wanted '\\x93NUMPY'", detail::in_quotes(text.substr(0, 6)))});
  if (bytes.size() < 8) return std::nullopt;
  const auto byte = [&](std::size_t position) {
    return std::to_integer<std::size_t>(bytes[position]);
  };
  if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0)
    throw error(errc::unsupported, "unknown version of the npy format",
                {fmt::format("got {}.{}, known are 1.0, 2.0 and 3.0", byte(6), byte(7))});
  const std::size_t length_bytes = byte(6) == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) return std::nullopt;
  std::size_t text_bytes = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) text_bytes |= byte(8 + i) << (8 * i);
  if (text_bytes > interop::npy_longest_header_bytes)
    throw error(errc::unsupported, "npy header too long",
                {fmt::format("{} bytes, at most {}", text_bytes, interop::npy_longest_header_bytes),
                 "only structured dtypes with many fields need that: save each field by itself"});
  return header_frame{static_cast<int>(byte(6)), 8 + length_bytes, text_bytes};
}

[[noreturn]] void throw_cut_short(std::size_t got, std::size_t wanted) {
  throw error(errc::corrupt, "npy header cut short",
              {fmt::format("got {} bytes, wanted {}", got, wanted)});
}

npy_header parse(std::span<const std::byte> bytes) {
  const auto frame = parse_frame(bytes);
  if (!frame) throw_cut_short(bytes.size(), interop::npy_prefix_bytes);
  npy_header header;
  header.version = frame->version;
  header.data_offset = frame->text_offset + frame->text_bytes;
  if (bytes.size() < header.data_offset) throw_cut_short(bytes.size(), header.data_offset);
  const auto text = bytes.subspan(frame->text_offset, frame->text_bytes);
  literal_reader({reinterpret_cast<const char*>(text.data()), text.size()}, header.version)
      .read(header);

  // Extents of zero count as 1, because strides are products of the other extents.
  auto total = std::optional(static_cast<index_t>(item_bytes(header.dtype)));
  for (const index_t extent : header.shape)
    if (total) total = checked_mul(*total, std::max<index_t>(extent, 1));
  if (!total || *total > index_t{1} << 62)  // the largest byte position in a tensor
    throw error(errc::corrupt, "npy header: more elements than any file holds",
                {fmt::format("shape {}, {} bytes each", to_string(header.shape),
                             item_bytes(header.dtype))});
  return header;
}

// "<M8[ns]", "|S10".
std::string logical_descr(const npy_header& header) {
  const logical_dtype& logical = *header.logical;
  require_storage(logical, header.dtype, header.shape);
  const char mark = header.byte_order == std::endian::big ? '>' : '<';
  if (!has_character_axis(logical)) {
    const bool is_date = logical.kind == logical_kind::datetime;
    const std::string named = name(logical);
    const std::size_t unit = std::min(named.find('['), named.size());
    return fmt::format("{}{}8{}", mark, is_date ? 'M' : 'm', std::string_view(named).substr(unit));
  }
  const index_t characters = header.shape.back();
  if (characters > text_bytes_max / static_cast<index_t>(item_bytes(header.dtype)))
    throw error(errc::unsupported, "NumPy has no texts of that length",
                {fmt::format("got {} characters", characters)});
  return logical.kind == logical_kind::bytes ? fmt::format("|S{}", characters)
                                             : fmt::format("{}U{}", mark, characters);
}

std::string header_text(const npy_header& header) {
  if (header.version < 1 || header.version > 3)
    throw error(errc::invalid_argument, "unknown version of the npy format",
                {fmt::format("got {}, known are 1, 2 and 3", header.version)});
  interop::require_byte_order(header.byte_order);
  static_cast<void>(header.data_bytes());  // refuses shapes that no tensor can have
  const std::string descr =
      header.logical ? logical_descr(header) : interop::npy_descr(header.dtype, header.byte_order);
  const dims axes = header.logical ? logical_shape(*header.logical, header.shape) : header.shape;
  std::string shape = "(";
  for (index_t axis = 0; axis < axes.size(); ++axis)
    shape += fmt::format("{}{}", axis == 0 ? "" : ", ", axes[axis]);
  shape += axes.size() == 1 ? ",)" : ")";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr,
                                 header.fortran_order ? "True" : "False", shape);
  if (!axes.empty()) {
    // As NumPy does, leave room for more digits, so that the array can grow along its slowest axis
    // without moving its elements.
    constexpr std::size_t digits_at_most = 21;
    const index_t grows = header.fortran_order ? axes.back() : axes.front();
    text.append(digits_at_most - fmt::formatted_size("{}", grows), ' ');
  }

  constexpr std::size_t alignment = 64;
  const std::size_t length_bytes = header.version == 1 ? 2 : 4;
  const std::size_t before = magic.size() + 2 + length_bytes;
  text.append(alignment - (before + text.size() + 1) % alignment, ' ');
  text += '\n';
  std::string result(magic);
  result += static_cast<char>(header.version);
  result += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i)
    result += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return result + text;
}

}  // namespace

npy_header parse_npy_header(std::span<const std::byte> bytes) {
  return detail::allocating([&] { return parse(bytes); });
}

std::string format_npy_header(const npy_header& header) {
  return detail::allocating([&] { return header_text(header); });
}

std::uint64_t npy_header::data_bytes() const {
  const auto bytes = checked_mul(static_cast<std::uint64_t>(element_count(shape)),
                                 std::uint64_t{item_bytes(dtype)});
  if (!bytes)
    throw error(errc::invalid_argument, "a shape has more bytes than 64 bits count",
                {fmt::format("shape {} of {}", to_string(shape), name(dtype))});
  return *bytes;
}

layout npy_header::layout() const {
  if (!fortran_order) return shale::layout(shape);
  dims reversed = shape;
  // The characters of a text lie one after the other.
  const auto swapped = logical && has_character_axis(*logical) && !shape.empty() ? 1 : 0;
  std::reverse(reversed.begin(), reversed.end() - swapped);
  dims strides = row_major_strides(reversed);
  std::reverse(strides.begin(), strides.end() - swapped);
  return shale::layout(shape, strides, 0);
}

namespace interop {

npy_header read_npy_header(
    const std::function<std::size_t(std::span<std::byte>, std::size_t)>& read) {
  std::vector<std::byte> bytes(npy_prefix_bytes);
  bytes.resize(read(bytes, 0));
  const auto frame = parse_frame(bytes);
  if (!frame) throw_cut_short(bytes.size(), npy_prefix_bytes);
  const std::size_t wanted = frame->text_offset + frame->text_bytes;
  if (wanted > bytes.size()) {
    const std::size_t had = bytes.size();
    bytes.resize(wanted);
    bytes.resize(had + read(std::span(bytes).subspan(had), had));
  }
  return parse_npy_header(bytes);
}

std::string npy_descr(dtype type, std::endian order) {
  for (const dtype_code& known : dtype_codes) {
    if (known.type != type) continue;
    const char mark = alignment_bytes(type) == 1 ? '|' : order == std::endian::big ? '>' : '<';
    return fmt::format("{}{}{}", mark, known.kind, known.bytes);
  }
  throw error(errc::unsupported, fmt::format("NumPy has no dtype for {}", name(type)),
              {"convert to float32 first, which can hold all its values"});
}

}  // namespace interop

}  // namespace shale
