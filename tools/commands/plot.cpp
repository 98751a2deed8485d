// shale plot: draws a two-dimensional slice as a picture.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "commands/command_line.hpp"
#include "commands/engine.hpp"
#include "data/input_files.hpp"
#include "data/logical.hpp"
#include "data/raw_options.hpp"
#include "notation/address.hpp"
#include "picture/colormap.hpp"
#include "picture/png_image.hpp"
#include "shale/unfinished_file.hpp"
#include "terminal/interrupt.hpp"
#include "terminal/output.hpp"

namespace shale::tools {

namespace {

constexpr double percentile_max = 49;

struct plot_options {
  std::string source;
  raw_options raw;
  std::string output;
  std::string colormap = "gray";
  std::optional<double> min;
  std::optional<double> max;
  double percentile = 0;
  index_t width = 1024;
  bool width_given = false;
  bool force = false;
  engine_options engine;
};

struct value_range {
  double low = 0;
  double high = 0;
  bool found = false;  // whether any element is finite
};

// The two axes of the picture. Leading axes of length 1 are removed.
expr plane(expr values) {
  while (values.rank() > 2 && values.shape()[0] == 1) values = values.squeeze(0);
  if (values.rank() != 2 || values.size() == 0)
    throw error(
        errc::invalid_argument, "plot takes two axes that are not empty",
        {fmt::format("got shape {}: choose a slice, as in array[0]", to_string(values.shape()))});
  if (kind(values.dtype()) == dtype_kind::complex)
    throw error(errc::invalid_argument, "plot takes real numbers, got complex ones");
  return values;
}

// The elements as numbers. NaT (not a time) becomes NaN.
expr numbers_of(const expr& values, const std::optional<logical_dtype>& logical) {
  const expr numbers = astype(values, dtype::float64);
  const std::optional<expr> missing = missing_times(logical, values);
  if (!missing) return numbers;
  return where(*missing, expr(std::numeric_limits<double>::quiet_NaN()), numbers);
}

// The values of the first and the last colour: as the options say, or else the extrema or
// percentiles of the sample.
value_range find_range(std::span<const double> sample, const plot_options& options) {
  std::vector<double> finite;
  for (const double value : sample)
    if (std::isfinite(value)) finite.push_back(value);
  value_range result{.found = !finite.empty()};
  if (result.found) {
    const auto rank = [&](double percent) {
      const auto last = static_cast<double>(finite.size() - 1);
      const auto nth = finite.begin() + std::lround(last * percent / 100);
      std::nth_element(finite.begin(), nth, finite.end());
      return *nth;
    };
    result.low = rank(options.percentile);
    result.high = rank(100 - options.percentile);
  }
  if (options.min) result.low = *options.min;
  if (options.max) result.high = *options.max;
  if ((options.min || options.max) && !(result.low < result.high))
    throw error(errc::invalid_argument, "the range of values that colours stand for is empty",
                {fmt::format("got {:g} to {:g}: --min must be less than --max, or than the largest "
                             "element; --max greater than the smallest",
                             result.low, result.high)});
  return result;
}

// Draws each element as a square of `zoom` by `zoom` pixels. NaN is transparent.
image paint(const tensor& sample, const value_range& range, const colormap& colours, index_t zoom) {
  const std::span<const double> elements = sample.elements<const double>();
  const index_t rows = sample.shape(0);
  const index_t columns = sample.shape(1);
  const bool holes =
      std::any_of(elements.begin(), elements.end(), [](double value) { return std::isnan(value); });
  image picture{.width = static_cast<std::uint32_t>(columns * zoom),
                .height = static_cast<std::uint32_t>(rows * zoom),
                .kind = holes ? pixel_kind::rgba : pixel_kind::rgb,
                .pixels = {}};
  picture.pixels.reserve(static_cast<std::size_t>(picture.width) * picture.height * 4);
  // The difference of large numbers with different signs overflows. That of their halves does not.
  const double scale = std::isinf(range.high - range.low) ? 0.5 : 1;
  const double low = range.low * scale;
  const double span = range.high * scale - low;
  for (index_t y = 0; y < rows * zoom; ++y) {
    for (index_t x = 0; x < columns * zoom; ++x) {
      const double value = elements[static_cast<std::size_t>(y / zoom * columns + x / zoom)];
      const rgb colour = colours.at(span > 0 ? (value * scale - low) / span : 0.5);
      picture.pixels.insert(picture.pixels.end(), {colour.red, colour.green, colour.blue});
      if (holes) picture.pixels.push_back(std::isnan(value) ? 0 : 255);
    }
    throw_if_interrupted();
  }
  return picture;
}

// The range check of the parser accepts NaN. Infinite bounds would give all elements one colour.
void require_numbers(const plot_options& options) {
  if (!(options.percentile >= 0 && options.percentile <= percentile_max))
    throw error(errc::invalid_argument, fmt::format("--percentile: wanted 0 to {:g}, got {:g}",
                                                    percentile_max, options.percentile));
  for (const auto& [name, bound] :
       {std::pair("--min", options.min), std::pair("--max", options.max)})
    if (bound && std::isinf(*bound))
      throw error(errc::invalid_argument,
                  fmt::format("{}: wanted a finite number, got {:g}", name, *bound));
}

int run(const plot_options& options) {
  require_numbers(options);
  const colormap& colours = find_colormap(options.colormap);
  if (!options.output.ends_with(".png"))
    throw error(errc::invalid_argument, "plot writes .png files", {"got " + options.output});
  const existing_file existing = options.force ? existing_file::replace : existing_file::refuse;
  // This refuses an impossible target before anything is computed.
  static_cast<void>(unfinished_file(options.output, existing));
  engine work(options.engine, "plot");
  input_files files(open_mode::read, options.engine.checksums());
  const operand source = files.open(with_raw_options(parse_address(options.source), options.raw));
  const expr values = plane(source.values);
  const index_t columns = values.shape()[1];
  // The same step on both axes, so that squares stay squares.
  const index_t step = std::max({ceil_div(columns, options.width),
                                 ceil_div(values.shape()[0], 4 * options.width), index_t{1}});
  const expr sampled = values.sliced(0, slice{.step = step}).sliced(1, slice{.step = step});
  const tensor sample = eval(numbers_of(sampled, source.logical));
  const index_t room = std::min(options.width / std::max<index_t>(sample.shape(1), 1),
                                4 * options.width / std::max<index_t>(sample.shape(0), 1));
  const index_t zoom = options.width_given ? std::max<index_t>(room, 1) : 1;
  const value_range range = find_range(sample.elements<const double>(), options);
  const image picture = paint(sample, range, colours, zoom);
  replace_target([&] { write_png(options.output, picture, existing); });
  work.finish();
  if (!options.engine.quiet)
    note(fmt::format("{}: {} x {} pixels, {}, {}", options.output, picture.width, picture.height,
                     step > 1 ? fmt::format("1 of {} elements along each axis", step)
                              : std::string("every element"),
                     range.found ? fmt::format("{:g} to {:g}", range.low, range.high)
                                 : std::string("none of them finite")));
  return exit_success;
}

}  // namespace

void add_plot(command_line& line) {
  auto options = std::make_shared<plot_options>();
  CLI::App* command = line.app.add_subcommand("plot", "Draw a two-dimensional slice as PNG");
  command->add_option("source", options->source, address_help)->required();
  command->add_option("-o,--output", options->output, "Picture to write")
      ->required()
      ->type_name("FILE.png");
  std::string names;
  for (const colormap& map : colormaps())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", map.name);
  command->add_option("--colormap", options->colormap, names + " [gray]")->type_name("NAME");
  command->add_option("--min", options->min, "Value of the first colour [the smallest drawn]");
  command->add_option("--max", options->max, "Value of the last colour [the largest drawn]");
  command
      ->add_option("--percentile", options->percentile,
                   "Percent of the values to leave out at either end [0]")
      ->check(CLI::Range(0.0, percentile_max).description(""));
  command
      ->add_option_function<index_t>(
          "--width",
          [options](index_t width) {
            options->width = width;
            options->width_given = true;
          },
          "Most pixels in a row [1024]; if given, small arrays are enlarged by whole factors")
      ->check(CLI::Range(1, 16384).description(""));
  command->add_flag("-f,--force", options->force, "Replace an existing picture");
  options->raw.add_to(*command);
  options->engine.add_to(*command);
  options->engine.add_check_to(*command);
  command->footer(
      "A large array is sampled with the same step along both axes. The elements in between are\n"
      "neither read nor averaged. NaN and dates that are none (NaT) are transparent.\n"
      "\n"
      "Examples:\n"
      "  shale plot survey.shale:dem -o dem.png --colormap terrain\n"
      "  shale plot 'stack.npy[17]' -o slice.png --percentile 1 --width 800");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
