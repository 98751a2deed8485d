// shale cat: prints elements as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "data/input_files.hpp"
#include "data/preview.hpp"
#include "data/raw_options.hpp"
#include "notation/address.hpp"
#include "shale/logical_dtype.hpp"
#include "terminal/interrupt.hpp"
#include "terminal/output.hpp"
#include "terminal/table.hpp"

namespace shale::tools {

namespace {

struct cat_options {
  std::string source;
  raw_options raw;
  bool csv = false;
  bool all = false;
  int precision = 4;
  int edge_items = 3;
  index_t line_width = 80;
  engine_options engine;
};

// The largest number of bytes in one evaluation of CSV rows. For ordinary arrays these are whole
// rows of chunks. A small budget makes the blocks smaller.
constexpr std::size_t csv_block_bytes_max = 32u << 20;

std::size_t csv_block_bytes() {
  return std::min(csv_block_bytes_max, executor::current().memory_bytes() / 8);
}

template <class T>
void append_element(std::string& line, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    line += value ? "True" : "False";
  } else if constexpr (detail::is_complex<T>) {
    line += scalar(value).to_string();
  } else if constexpr (detail::is_small_float<T>) {
    append_element(line, static_cast<float>(value));
  } else {
    bool is_number = true;
    if constexpr (std::is_floating_point_v<T>) is_number = !std::isnan(value);
    if (is_number) fmt::format_to(std::back_inserter(line), "{}", value);
    else line += "nan";  // also if its sign is set
  }
}

// Adds a text to a row. A text with commas or quotes, or with blanks at its ends, gets quotes around
// it. So does an empty one, because readers skip empty lines.
void append_quoted(std::string& line, std::string_view text) {
  const std::string shown = printable(text);
  const bool has_blank = shown.starts_with(' ') || shown.ends_with(' ');
  if (!shown.empty() && !has_blank && shown.find_first_of(",\"") == std::string::npos) {
    line += shown;
    return;
  }
  line += '"';
  for (const char character : shown) line.append(character == '"' ? 2 : 1, character);
  line += '"';
}

// Prints rows of cells; `append` adds the cell with a given number to the text of a row. With
// `ends_rows`, the last column is the last one of the array.
template <class Append>
void print_cells(index_t rows, index_t columns, bool ends_rows, Append&& append) {
  std::string text;
  for (index_t row = 0; row < rows; ++row) {
    for (index_t column = 0; column < columns; ++column) {
      append(text, static_cast<std::size_t>(row * columns + column));
      text += column + 1 == columns && ends_rows ? '\n' : ',';
    }
    print_data(text);
    text.clear();
  }
}

// Prints a block with two axes; a block of texts also has the axis of characters.
void print_block(const tensor& block, const std::optional<logical_dtype>& logical, bool ends_rows) {
  const index_t rows = block.shape(0);
  const index_t columns = block.shape(1);
  visit(block.dtype(), all_types{}, [&]<class T>(std::type_identity<T>) {
    const std::span<const T> elements = block.elements<const T>();
    print_cells(rows, columns, ends_rows, [&](std::string& text, std::size_t number) {
      if (!logical) return append_element(text, elements[number]);
      if constexpr (std::is_same_v<T, std::int64_t>) {
        text += time_text(*logical, elements[number]);
      } else if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::uint32_t>) {
        const auto length = static_cast<std::size_t>(block.shape(2));
        append_quoted(text, decoded_text(elements.subspan(number * length, length)));
      }
    });
  });
}

// Each block is read once, so that the file's pages need not stay resident when it is printed.
void let_go(const tensor& printed) {
  const auto positions = printed.layout().extent();
  if (!positions) return;
  const std::size_t item = item_bytes(printed.dtype());
  const auto elements = static_cast<std::size_t>(positions->last - positions->first + 1);
  printed.storage().evict({static_cast<std::size_t>(positions->first) * item, elements * item});
}

void print_csv(const operand& source) {
  expr values = source.values;
  const auto& logical = source.logical;
  const dims shape = logical ? logical_shape(*logical, values.shape()) : values.shape();
  if (shape.size() > 2)
    throw error(errc::invalid_argument, "cat --csv prints one or two axes",
                {fmt::format("got shape {}: choose a slice, as in array[0]", to_string(shape))});
  std::optional<tensor> stored = source.elements;
  for (index_t rank = shape.size(); rank < 2; ++rank) {
    values = values.expand_dims(rank);
    if (stored) stored = stored->expand_dims(rank);
  }
  const index_t rows = values.shape()[0];
  const index_t columns = values.shape()[1];
  if (rows == 0 || columns == 0) return;
  const std::size_t element_bytes =
      item_bytes(values.dtype()) *
      static_cast<std::size_t>(values.rank() > 2 ? std::max<index_t>(values.shape()[2], 1) : 1);
  const auto fitting =
      std::max<index_t>(static_cast<index_t>(csv_block_bytes() / element_bytes), 1);
  const index_t block_columns = std::min(columns, fitting);
  const index_t block_rows = std::max<index_t>(fitting / columns, 1);
  for (index_t row = 0; row < rows; row += block_rows) {
    const index_t height = std::min(block_rows, rows - row);
    const expr band = values.narrow(0, row, height);
    for (index_t column = 0; column < columns; column += block_columns) {
      const index_t width = std::min(block_columns, columns - column);
      throw_if_interrupted();
      print_block(eval(band.narrow(1, column, width)), logical, column + width == columns);
      if (stored) let_go(stored->narrow(0, row, height).narrow(1, column, width));
    }
  }
}

// Prints a text that may be long to a reader that may be slow.
void print_in_pieces(std::string_view text) {
  constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
    throw_if_interrupted();
    print_data(text.substr(at, piece_bytes));
  }
}

int run(const cat_options& options) {
  // A progress bar would be drawn between the elements.
  engine_options silent = options.engine;
  silent.quiet = !silent.progress;
  engine work(silent, "cat");
  input_files files(open_mode::read, options.engine.checksums());
  const operand source = files.open(with_raw_options(parse_address(options.source), options.raw));
  if (options.csv) {
    print_csv(source);
    return exit_success;
  }
  const print_options style{.line_width = options.line_width,
                            .threshold = options.all ? std::numeric_limits<index_t>::max() : 1000,
                            .edge_items = options.edge_items,
                            .precision = options.precision,
                            .logical = source.logical,
                            .checkpoint = throw_if_interrupted};
  print_in_pieces((source.elements && !silent.check ? to_string(*source.elements, style)
                                                    : preview(source.values, style)) +
                  '\n');
  return exit_success;
}

}  // namespace

void add_cat(command_line& line) {
  auto options = std::make_shared<cat_options>();
  CLI::App* command = line.app.add_subcommand("cat", "Print elements as text");
  command->add_option("source", options->source, address_help)->required();
  CLI::Option* csv = command->add_flag(
      "--csv", options->csv, "One row on a line, with commas between elements, with every digit");
  command->add_flag("-a,--all", options->all, "Print every element, however many there are")
      ->excludes(csv);
  command->add_option("--precision", options->precision, "Digits after the point, 0 to 17 [4]")
      ->check(CLI::Range(0, 17).description(""))
      ->excludes(csv);
  command->add_option("--edge", options->edge_items, "Elements shown at the ends of long axes [3]")
      ->check(CLI::Range(1, 1000).description(""))
      ->excludes(csv);
  command->add_option("--width", options->line_width, "Columns of text [80]")
      ->check(CLI::Range(20, 100000).description(""))
      ->excludes(csv);
  options->raw.add_to(*command);
  options->engine.add_to(*command);
  options->engine.add_check_to(*command);
  command->footer(
      "Without --all, an array of more than 1000 elements shows the ends of its axes only. The\n"
      "other elements are not read.\n"
      "\n"
      "Examples:\n"
      "  shale cat survey.shale:dem\n"
      "  shale cat 'survey.shale:dem[10:20, ::-1]'\n"
      "  shale cat --csv 'survey.shale:dem[0]' > row.csv");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
