// Tables and lists with aligned columns, and text that is safe to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shale::tools {

enum class alignment { left, right };

/// The columns that UTF-8 text takes on a terminal, counted as one for each code point.
std::size_t display_width(std::string_view text) noexcept;

/// The text without bytes that could control a terminal, which untrusted files may hold: control
/// characters and bytes that are not UTF-8 become \xNN, and line feeds become \n.
std::string printable(std::string_view text);

/// The text, in which bytes that are not UTF-8 become \xNN. Attributes may have such bytes, and
/// JSON cannot hold them.
std::string as_utf8(std::string_view text);

/// `head` and `text` in lines of at most `width` columns, broken at blanks. Lines after the first
/// begin with `indent`. A word that is too long for a line has a line of its own.
std::string wrapped(std::string_view head, std::string_view text, std::string_view indent,
                    std::size_t width);

/// Rows under headers. A column is as wide as its widest cell.
class table {
 public:
  struct column {
    std::string header;
    alignment align = alignment::left;
  };

  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}

  /// Adds a row with one cell for each column. Cells become printable; missing cells are empty.
  void add(std::vector<std::string> cells);

  bool empty() const noexcept { return rows_.empty(); }

  /// Two spaces separate columns. Each line ends in a newline, without spaces before it.
  std::string to_string() const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A list of keys with aligned values. An empty key continues the value above.
class facts {
 public:
  void add(std::string_view key, std::string_view value) {
    rows_.emplace_back(printable(key), printable(value));
  }
  std::string to_string() const;

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

}  // namespace shale::tools
