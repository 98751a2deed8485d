#include "terminal/table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shale::tools {

namespace {

void append_padded(std::string& line, std::string_view cell, std::size_t width, alignment align) {
  const std::size_t padding = width - std::min(width, display_width(cell));
  if (align == alignment::right) line.append(padding, ' ');
  line += cell;
  if (align == alignment::left) line.append(padding, ' ');
}

void end_line(std::string& text, std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  text += line;
  text += '\n';
}

// The bytes of the UTF-8 character at the beginning of `text`; 0 if there is no valid one.
// Source: the Unicode Standard, table 3-7 (well-formed byte sequences).
std::size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const auto second = static_cast<unsigned char>(text.size() > 1 ? text[1] : '\0');
  // These are refused: forms that are longer than needed, surrogates, and values beyond U+10FFFF.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
    return 0;
  const std::size_t bytes = first < 0x80                    ? 1
                            : first >= 0xc2 && first < 0xe0 ? 2
                            : first >> 4 == 0xe             ? 3
                            : first >= 0xf0 && first < 0xf5 ? 4
                                                            : 0;
  if (bytes > text.size()) return 0;
  for (const char byte : text.substr(1, bytes - (bytes > 0 ? 1 : 0)))
    if (bytes > 0 && (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u) return 0;
  return bytes;
}

void append_escaped(std::string& to, std::string_view bytes) {
  for (const char byte : bytes) to += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

}  // namespace

std::size_t display_width(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u;
  }));
}

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text.substr(at));
    const auto first = static_cast<unsigned char>(text[at]);
    const bool is_c1 =
        bytes == 2 && first == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0;
    if (first == '\n') result += "\\n";
    else if (bytes == 0 || is_c1 || first < 0x20 || first == 0x7f)
      append_escaped(result, text.substr(at, std::max<std::size_t>(bytes, 1)));
    else result += text.substr(at, bytes);
    at += std::max<std::size_t>(bytes, 1);
  }
  return result;
}

std::string as_utf8(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text.substr(at));
    if (bytes == 0) append_escaped(result, text.substr(at, 1));
    else result += text.substr(at, bytes);
    at += std::max<std::size_t>(bytes, 1);
  }
  return result;
}

std::string wrapped(std::string_view head, std::string_view text, std::string_view indent,
                    std::size_t width) {
  std::string lines;
  std::string line(head);
  bool is_begun = false;  // whether the line has a word
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    if (is_begun && display_width(line) + 1 + display_width(word) > width) {
      end_line(lines, std::move(line));
      line = indent;
      is_begun = false;
    }
    if (is_begun) line += ' ';
    line += word;
    is_begun = true;
  }
  end_line(lines, std::move(line));
  return lines;
}

void table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string table::to_string() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].header);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line += "  ";
      append_padded(line, cell_at(c), widths[c], columns_[c].align);
    }
    end_line(text, std::move(line));
  };
  add_line([&](std::size_t c) -> const std::string& { return columns_[c].header; });
  for (const auto& row : rows_)
    add_line([&](std::size_t c) -> const std::string& { return row[c]; });
  return text;
}

std::string facts::to_string() const {
  std::size_t width = 0;
  for (const auto& [key, value] : rows_) width = std::max(width, display_width(key));
  std::string text;
  for (const auto& [key, value] : rows_) {
    std::string line;
    append_padded(line, key, width + 2, alignment::left);
    end_line(text, line + value);
  }
  return text;
}

}  // namespace shale::tools
