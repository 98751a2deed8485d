// Text in aligned columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shale::tools {

enum class alignment { left, right };

/// Columns that a terminal needs for UTF-8 text: one a code point.
std::size_t display_width(std::string_view text) noexcept;

/// The text as a terminal may show it: control characters, which files from strangers may hold, and
/// bytes that are not UTF-8 as \xNN, line feeds as \n.
std::string printable(std::string_view text);

/// `head` and `text` in lines of at most `width` columns, broken at blanks; lines after the first
/// begin with `indent`. A longer word has a line of its own.
std::string wrapped(std::string_view head, std::string_view text, std::string_view indent,
                    std::size_t width);

/// Rows under headers, every column as wide as its widest cell.
class table {
 public:
  struct column {
    std::string header;
    alignment align = alignment::left;
  };

  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}

  /// One cell a column, printable; missing ones are empty.
  void add(std::vector<std::string> cells);

  bool empty() const noexcept { return rows_.empty(); }

  /// Two spaces between columns, none at the ends of lines; a newline after every row.
  std::string to_string() const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A list of facts: keys on the left, values aligned behind them; an empty key continues a value.
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
