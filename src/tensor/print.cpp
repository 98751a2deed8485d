// Printing a tensor: choose the elements to show, read them once, find one format for all of them,
// then lay out brackets.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "core/load_element.hpp"
#include "shale/error.hpp"
#include "shale/print.hpp"
#include "shale/tensor.hpp"

namespace shale {

namespace {

using complex = std::complex<double>;

// ---- which elements
// ------------------------------------------------------------------------------

// The positions of one axis that are shown: `head` from the start and `tail` from the end.
struct shown_axis {
  index_t extent;
  index_t head;
  index_t tail;

  index_t count() const { return head + tail; }
  bool cut() const { return count() < extent; }
  index_t position(index_t at) const { return at < head ? at : extent - count() + at; }
};

std::vector<shown_axis> choose(const tensor& which, const print_options& options) {
  std::vector<shown_axis> axes;
  const bool summarize = which.size() > options.threshold;
  const index_t edge = options.edge_items;
  double shown = 1;
  for (const index_t extent : which.shape()) {
    // Written so that neither a huge edge nor a huge extent overflows.
    const bool cut = summarize && extent / 2 + extent % 2 > edge;
    axes.push_back(cut ? shown_axis{extent, edge, edge} : shown_axis{extent, extent, 0});
    shown *= static_cast<double>(axes.back().count());
  }
  // Many short axes have no edges to cut, but can have as many elements as one long axis.
  const double most = std::pow(2 * static_cast<double>(edge), 6);
  for (auto axis = axes.begin(); summarize && shown > most && axis != axes.end(); ++axis) {
    shown /= static_cast<double>(axis->count());
    *axis = {axis->extent, 1, 0};
  }
  return axes;
}

// Calls `function` with the position of each shown element, in printing order.
template <class Function>
void for_each_shown(const std::vector<shown_axis>& axes, const layout& which, Function&& function) {
  if (which.empty()) return;
  const auto walk = [&](auto& self, std::size_t axis, index_t position) -> void {
    if (axis == axes.size()) return function(position);
    for (index_t at = 0; at < axes[axis].count(); ++at)
      self(self, axis + 1,
           position + axes[axis].position(at) * which.strides()[static_cast<index_t>(axis)]);
  };
  walk(walk, 0, which.offset());
}

// ---- one format for all
// --------------------------------------------------------------------------

// How the floats of a tensor are written: "%.*f" of value / 10^scale, or "%.*e".
struct float_format {
  int digits = 0;
  int scale = 0;
  bool exponent = false;
  bool whole = false;  // no digits, a bare point

  std::string operator()(double value) const {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    if (exponent) return fmt::format("{:.{}e}", value, digits);
    if (whole) return fmt::format("{:.0f}.", value);
    return fmt::format("{:.{}f}", scaled(value), digits);
  }

 private:
  double scaled(double value) const {
    // Powers of ten up to 22 are exact, so this rounds once for all common scales.
    if (scale >= 0) return value / std::pow(10.0, scale);
    return -scale <= 300 ? value * std::pow(10.0, -scale)
                         : value * 1e300 * std::pow(10.0, -scale - 300);
  }
};

// The power of ten of the leading digit.
int decade(double value) {
  const std::string text = fmt::format("{:.17e}", value);
  return std::stoi(text.substr(text.find('e') + 1));
}

float_format choose_format(const std::vector<double>& values, int precision) {
  double smallest = 0, largest = 0;
  bool whole = true;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    whole = whole && std::trunc(value) == value;
    const double size = std::abs(value);
    if (size == 0) continue;
    smallest = smallest == 0 ? size : std::min(smallest, size);
    largest = std::max(largest, size);
  }
  float_format format{.digits = precision};
  const int high = largest > 0 ? decade(largest) : 0;
  const int low = smallest > 0 ? decade(smallest) : 0;
  constexpr int widest_whole = 9, widest_span = 4, highest_plain = 4, lowest_plain = -1;
  if (whole) {
    format.whole = high < widest_whole;
    format.exponent = !format.whole;
  } else if (high - low > widest_span) {
    format.exponent = true;
  } else if (high > highest_plain || high < lowest_plain) {
    format.scale = high;
  }
  return format;
}

// ---- elements as texts
// ---------------------------------------------------------------------------

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

void pad(std::vector<std::string>& texts) {
  std::size_t width = 0;
  for (const auto& text : texts) width = std::max(width, text.size());
  for (auto& text : texts) text = padded(text, width);
}

template <class T>
std::vector<T> gather(const tensor& which, const std::vector<shown_axis>& axes) {
  std::vector<T> values;
  const std::byte* base = which.storage().data();
  for_each_shown(axes, which.geometry(), [&](index_t position) {
    values.push_back(detail::load_element<T>(base + position * static_cast<index_t>(sizeof(T))));
  });
  which.storage().check();
  return values;
}

struct texts {
  std::vector<std::string> elements;
  int scale = 0;
};

texts format_reals(const std::vector<double>& values, int precision) {
  const auto format = choose_format(values, precision);
  texts result{{}, format.scale};
  for (const double value : values) result.elements.push_back(format(value));
  pad(result.elements);
  return result;
}

texts format_complex(const std::vector<complex>& values, int precision) {
  std::vector<double> parts;
  for (const auto& value : values) parts.insert(parts.end(), {value.real(), value.imag()});
  const auto format = choose_format(parts, precision);
  std::vector<std::string> reals, imaginaries;
  for (const auto& value : values) {
    reals.push_back(format(value.real()));
    const std::string text = format(value.imag());
    imaginaries.push_back(text[0] == '-' ? text : "+" + text);
  }
  pad(reals);
  pad(imaginaries);
  texts result{{}, format.scale};
  for (std::size_t i = 0; i < values.size(); ++i)
    result.elements.push_back(reals[i] + imaginaries[i] + "j");
  return result;
}

texts format_elements(const tensor& which, const std::vector<shown_axis>& axes, int precision) {
  return visit(which.dtype(), all_types{}, [&]<class T>(std::type_identity<T>) {
    const std::vector<T> values = gather<T>(which, axes);
    if constexpr (detail::is_complex<T>) {
      return format_complex({values.begin(), values.end()}, precision);
    } else if constexpr (std::is_integral_v<T>) {
      texts result;
      for (const T value : values) {
        if constexpr (std::is_same_v<T, bool>)
          result.elements.emplace_back(value ? "True" : "False");
        else result.elements.push_back(std::to_string(value));
      }
      pad(result.elements);
      return result;
    } else {
      return format_reals({values.begin(), values.end()}, precision);
    }
  });
}

// ---- brackets
// ------------------------------------------------------------------------------------

class bracket_writer {
 public:
  bracket_writer(const std::vector<shown_axis>& axes, const std::vector<std::string>& elements,
                 index_t line_width)
      : axes_(axes), elements_(elements), line_width_(line_width) {}

  std::string write() {
    if (axes_.empty()) return elements_.front();
    if (std::any_of(axes_.begin(), axes_.end(), [](auto& axis) { return axis.extent == 0; }))
      return "[]";
    block(0);
    return std::move(text_);
  }

 private:
  // The axes from `axis` on at the elements that come next.
  void block(std::size_t axis) {
    text_ += '[';
    if (axis + 1 == axes_.size()) row(axis);
    else {
      // One line break between rows, one more for every axis above.
      const std::string gap =
          std::string(axes_.size() - axis - 1, '\n') + std::string(axis + 1, ' ');
      for (index_t at = 0; at < axes_[axis].count(); ++at) {
        if (at > 0) text_ += gap;
        if (axes_[axis].cut() && at == axes_[axis].head) text_ += "..." + gap;
        block(axis + 1);
      }
      if (axes_[axis].cut() && axes_[axis].tail == 0) text_ += gap + "...";
    }
    text_ += ']';
  }

  void row(std::size_t axis) {
    const std::size_t indent = axes_.size();
    const auto width = static_cast<std::size_t>(std::max<index_t>(line_width_, 0));
    std::size_t column = indent;
    const auto put = [&](const std::string& word) {
      // The closing brackets take as many columns as the opening ones.
      if (column > indent && column + 1 + word.size() + indent > width) {
        text_ += '\n' + std::string(indent, ' ');
        column = indent;
      } else if (column > indent) {
        text_ += ' ';
        ++column;
      }
      text_ += word;
      column += word.size();
    };
    for (index_t at = 0; at < axes_[axis].count(); ++at) {
      if (axes_[axis].cut() && at == axes_[axis].head) put("...");
      put(elements_[next_++]);
    }
    if (axes_[axis].cut() && axes_[axis].tail == 0) put("...");
  }

  const std::vector<shown_axis>& axes_;
  const std::vector<std::string>& elements_;
  const index_t line_width_;
  std::size_t next_ = 0;
  std::string text_;
};

}  // namespace

std::string to_string(const tensor& which, const print_options& options) {
  if (options.edge_items < 1 || options.precision < 0 || options.precision > 17)
    throw error(errc::invalid_argument, "print options are out of range",
                {fmt::format("got edge_items {} and precision {}, wanted at least 1 and 0 to 17",
                             options.edge_items, options.precision)});
  const auto axes = choose(which, options);
  const texts shown = format_elements(which, axes, options.precision);
  const std::string scale = shown.scale == 0 ? "" : fmt::format("1e{:+03} *\n", shown.scale);
  return scale + bracket_writer(axes, shown.elements, options.line_width).write() + "\n" +
         std::string(name(which.dtype())) + " " + to_string(which.shape());
}

}  // namespace shale
