// shale plot: a two-dimensional slice as a picture.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "colormap.hpp"
#include "command_line.hpp"
#include "engine.hpp"
#include "png_image.hpp"
#include "shale/foreign_file.hpp"
#include "source.hpp"

namespace shale::tools {

namespace {

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

// The two axes of a picture; axes of length 1 in front do not count.
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

// What is black and what is white: as told, else the sample's extrema or percentiles.
value_range find_range(std::span<const double> sample, const plot_options& options) {
  std::vector<double> finite;
  for (const double each : sample)
    if (std::isfinite(each)) finite.push_back(each);
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
    throw error(errc::invalid_argument, "nothing lies between black and white",
                {fmt::format("got {:g} to {:g}: --min must be less than --max, or than the largest "
                             "element; --max greater than the smallest",
                             result.low, result.high)});
  return result;
}

// `zoom` pixels a side for each element; NaN is transparent.
image paint(const tensor& sample, const value_range& range, const colormap& colours, index_t zoom) {
  const std::span<const double> elements = sample.elements<const double>();
  const index_t rows = sample.shape(0);
  const index_t columns = sample.shape(1);
  const bool holes =
      std::any_of(elements.begin(), elements.end(), [](double each) { return std::isnan(each); });
  image picture{.width = static_cast<std::uint32_t>(columns * zoom),
                .height = static_cast<std::uint32_t>(rows * zoom),
                .kind = holes ? pixel_kind::rgba : pixel_kind::rgb,
                .pixels = {}};
  picture.pixels.reserve(static_cast<std::size_t>(picture.width) * picture.height * 4);
  const double span = range.high - range.low;
  for (index_t y = 0; y < rows * zoom; ++y) {
    for (index_t x = 0; x < columns * zoom; ++x) {
      const double value = elements[static_cast<std::size_t>(y / zoom * columns + x / zoom)];
      const rgb colour = colours.at(span > 0 ? (value - range.low) / span : 0.5);
      picture.pixels.insert(picture.pixels.end(), {colour.red, colour.green, colour.blue});
      if (holes) picture.pixels.push_back(std::isnan(value) ? 0 : 255);
    }
  }
  return picture;
}

int run(const plot_options& options) {
  const colormap& colours = find_colormap(options.colormap);
  if (!options.output.ends_with(".png"))
    throw error(errc::invalid_argument, "plot writes .png files", {"got " + options.output});
  unfinished_file file(options.output,
                       options.force ? existing_file::replace : existing_file::refuse);
  engine work(options.engine, "plot");
  library files;
  const operand source = files.open(with_raw_options(parse_address(options.source), options.raw));
  const expr values = plane(source.values);
  const index_t columns = values.shape()[1];
  // The same step on both axes, so that squares stay squares.
  const index_t step = std::max({ceil_div(columns, options.width),
                                 ceil_div(values.shape()[0], 4 * options.width), index_t{1}});
  const index_t zoom = options.width_given ? std::max<index_t>(options.width / columns, 1) : 1;
  const expr sampled = values.sliced(0, slice{.step = step}).sliced(1, slice{.step = step});
  const tensor sample = eval(cast(sampled, dtype::float64), &work.on());
  const value_range range = find_range(sample.elements<const double>(), options);
  const image picture = paint(sample, range, colours, zoom);
  file.create([&] { write_png(file.path(), picture); });
  file.publish();
  work.finish();
  if (!options.engine.quiet)
    note(fmt::format("{}: {} x {} pixels, {}, {}", options.output, picture.width, picture.height,
                     step > 1 ? fmt::format("1 of {} elements along each axis", step)
                              : std::string("every element"),
                     range.found ? fmt::format("{:g} to {:g}", range.low, range.high)
                                 : std::string("none of them finite")));
  return exit_yes;
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
  for (const colormap& each : colormaps())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
  command->add_option("--colormap", options->colormap, names + " [gray]")->type_name("NAME");
  command->add_option("--min", options->min, "Value of the first colour [the smallest drawn]");
  command->add_option("--max", options->max, "Value of the last colour [the largest drawn]");
  command
      ->add_option("--percentile", options->percentile,
                   "Leave out this part of the values at either end, in percent [0]")
      ->check(CLI::Range(0.0, 49.0).description(""));
  command
      ->add_option_function<index_t>(
          "--width",
          [options](index_t width) {
            options->width = width;
            options->width_given = true;
          },
          "Most pixels in a row; small arrays are enlarged by whole factors [1024]")
      ->check(CLI::Range(1, 16384).description(""));
  command->add_flag("-f,--force", options->force, "Replace an existing picture");
  options->raw.add_to(*command);
  options->engine.add_to(*command);
  command->footer(
      "Large arrays are sampled at regular steps, the same along both axes: what lies between is\n"
      "neither read nor averaged. NaN is transparent.\n"
      "\n"
      "Examples:\n"
      "  shale plot survey.shale:dem -o dem.png --colormap terrain\n"
      "  shale plot 'stack.npy[17]' -o slice.png --percentile 1 --width 800");
  command->callback([&line, options] { line.chosen = [options] { return run(*options); }; });
}

}  // namespace shale::tools
