// Prints a tensor in four steps: it chooses the elements to show, reads them once, finds one format
// for all of them, and arranges them in brackets.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <ostream>
#include <string>
#include <vector>

#include "core/allocating.hpp"
#include "core/load_element.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"
#include "shale/logical_dtype.hpp"
#include "shale/print.hpp"
#include "shale/scalar.hpp"
#include "shale/tensor.hpp"
#include "storage/blocks/backing.hpp"

namespace shale {

namespace {

using complex = std::complex<double>;

// Calls the user's checkpoint between elements.
class checkpoint_caller {
 public:
  explicit checkpoint_caller(void (*checkpoint)()) : checkpoint_(checkpoint) {}

  void operator()() {
    constexpr int elements_between = 4096;
    if (checkpoint_ == nullptr || ++elements_ < elements_between) return;
    elements_ = 0;
    checkpoint_();
  }

 private:
  void (*checkpoint_)();
  int elements_ = 0;
};

// ---- selection of elements ----------------------------------------------------------------------

// The positions of one axis that are shown: `head` from the start and `tail` from the end.
struct shown_axis {
  index_t extent;
  index_t head;
  index_t tail;

  index_t count() const { return head + tail; }
  bool cut() const { return count() < extent; }
  index_t position(index_t number) const {
    return number < head ? number : extent - count() + number;
  }
};

std::vector<shown_axis> choose(const layout& elements, const print_options& options) {
  std::vector<shown_axis> axes;
  const bool summarize = elements.size() > options.threshold;
  const index_t edge = options.edge_items;
  double shown = 1;
  for (const index_t extent : elements.shape()) {
    // This form overflows neither for a huge edge nor for a huge extent.
    const bool cut = summarize && extent / 2 + extent % 2 > edge;
    axes.push_back(cut ? shown_axis{extent, edge, edge} : shown_axis{extent, extent, 0});
    shown *= static_cast<double>(axes.back().count());
  }
  // Many short axes, none of which is long enough to be cut, may still have too many elements
  // together. Then only the first position of the outer axes is shown.
  const double most = std::pow(2 * static_cast<double>(edge), 6);
  for (auto axis = axes.begin(); summarize && shown > most && axis != axes.end(); ++axis) {
    shown /= static_cast<double>(axis->count());
    *axis = {axis->extent, 1, 0};
  }
  return axes;
}

// Calls `function` with the position of each shown element, in printing order.
template <class Function>
void for_each_shown(const std::vector<shown_axis>& axes, const layout& arrangement,
                    Function&& function) {
  if (arrangement.empty()) return;
  const auto walk = [&](auto& self, std::size_t axis, index_t position) -> void {
    if (axis == axes.size()) return function(position);
    for (index_t number = 0; number < axes[axis].count(); ++number)
      self(self, axis + 1,
           position +
               axes[axis].position(number) * arrangement.strides()[static_cast<index_t>(axis)]);
  };
  walk(walk, 0, arrangement.offset());
}

// ---- one format for all -------------------------------------------------------------------------

// The format of all floats of a tensor: "%.*f" of value / 10^scale, or "%.*e".
struct float_format {
  int digits = 0;
  int scale = 0;
  bool exponent = false;

  std::string operator()(double value) const {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    if (exponent) return fmt::format("{:.{}e}", value, digits);
    return fmt::format("{:.{}f}{}", scale == 0 ? value : scaled(value), digits,
                       digits == 0 ? "." : "");
  }

 private:
  double scaled(double value) const {
    // Powers of ten up to 10^22 are exact, so for all common scales this rounds once.
    if (scale >= 0) return value / std::pow(10.0, scale);
    return -scale <= 300 ? value * std::pow(10.0, -scale)
                         : value * 1e300 * std::pow(10.0, -scale - 300);
  }
};

// Returns the shortest text that reads back as the same number in the number's dtype.
using shortest_text = std::string (*)(double);

template <class T>
std::string shortest(double value) {
  return scalar(convert<T>(value)).to_string();
}

struct shortest_decimal {
  int exponent = 0;  // the power of ten of the leading digit
  int digits = 1;    // number of significant digits
};

// Reads the exponent and the number of significant digits from a text such as "0.00125" or
// "1.25e-03". Zeros before the first and after the last significant digit do not count.
shortest_decimal parse_shortest(const std::string& text) {
  const std::size_t exponent_at = std::min(text.find('e'), text.size());
  const std::string mantissa = text.substr(0, exponent_at);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = mantissa.find_first_of("123456789");
  if (first == std::string::npos) return {};
  const std::size_t last = mantissa.find_last_of("123456789");
  shortest_decimal result;
  if (exponent_at < text.size()) result.exponent = std::stoi(text.substr(exponent_at + 1));
  const auto places = [](std::size_t from, std::size_t to) {
    return static_cast<int>(static_cast<std::ptrdiff_t>(to) - static_cast<std::ptrdiff_t>(from));
  };
  result.exponent += first < point ? places(first, point) - 1 : -places(point, first);
  result.digits = places(first, last) + 1 - (first < point && point < last ? 1 : 0);
  return result;
}

// The properties of the shown floats that determine their format.
struct float_range {
  std::vector<double> distinct;  // finite, ascending
  bool integral = true;
  int high = 0;             // the largest exponent, ignoring zeros
  int low = 0;              // the smallest exponent
  int digits = 1;           // the largest number of significant digits
  int fraction_digits = 0;  // the largest number of digits after the decimal point
};

float_range range_of(const std::vector<double>& values, shortest_text shortest,
                     checkpoint_caller& checkpoint) {
  float_range range;
  for (const double value : values)
    if (std::isfinite(value)) range.distinct.push_back(value);
  std::sort(range.distinct.begin(), range.distinct.end(), [&](double one, double other) {
    checkpoint();
    return one < other;
  });
  range.distinct.erase(std::unique(range.distinct.begin(), range.distinct.end()),
                       range.distinct.end());
  bool first = true;
  for (const double value : range.distinct) {
    checkpoint();
    range.integral = range.integral && std::trunc(value) == value;
    if (value == 0) continue;
    const shortest_decimal decimal = parse_shortest(shortest(value));
    range.high = first ? decimal.exponent : std::max(range.high, decimal.exponent);
    range.low = first ? decimal.exponent : std::min(range.low, decimal.exponent);
    range.digits = std::max(range.digits, decimal.digits);
    range.fraction_digits = std::max(range.fraction_digits, decimal.digits - 1 - decimal.exponent);
    first = false;
  }
  return range;
}

// The values ascend, and so do their texts, so only neighbours can have the same text.
bool tells_apart(const float_format& format, const std::vector<double>& distinct,
                 checkpoint_caller& checkpoint) {
  for (std::size_t i = 1; i < distinct.size(); ++i) {
    checkpoint();
    if (format(distinct[i - 1]) == format(distinct[i])) return false;
  }
  return true;
}

// Chooses the format for a set of floats. Whole numbers of up to nine digits have no decimals.
// Larger whole numbers and a wide span of magnitudes need exponents. Large or small values of one
// magnitude get a common power of ten in front if that loses no digit. More digits are added until
// different values look different.
float_format choose_format(const std::vector<double>& values, shortest_text shortest, int precision,
                           checkpoint_caller& checkpoint) {
  constexpr int widest_whole = 9, widest_span = 4, highest_plain = 4, lowest_plain = -1;
  constexpr int highest_without_exponent = 15, lowest_without_exponent = -4;
  const float_range range = range_of(values, shortest, checkpoint);
  float_format format;
  if (range.integral && range.high < widest_whole) return format;
  if (range.integral || range.high - range.low > widest_span) {
    format.exponent = true;
  } else if (range.high > highest_plain || range.high < lowest_plain) {
    if (range.high + range.fraction_digits <= precision) format.scale = range.high;
    else
      format.exponent =
          range.high > highest_without_exponent || range.high < lowest_without_exponent;
  }
  const int needed = format.exponent ? range.digits - 1 : range.fraction_digits + format.scale;
  format.digits = std::min(precision, needed);
  while (format.digits < needed && !tells_apart(format, range.distinct, checkpoint))
    ++format.digits;
  return format;
}

// ---- elements as texts --------------------------------------------------------------------------

// The code points of UTF-8, which are about the columns that it takes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u;
  }));
}

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

void pad(std::vector<std::string>& texts, checkpoint_caller& checkpoint) {
  std::size_t width = 0;
  for (const auto& text : texts) width = std::max(width, width_of(text));
  for (auto& text : texts) {
    checkpoint();
    text = padded(text, width);
  }
}

template <class T>
std::vector<T> gather(const tensor& source, const std::vector<shown_axis>& axes,
                      checkpoint_caller& checkpoint) {
  std::vector<T> values;
  const std::byte* base = source.storage().data();
  for_each_shown(axes, source.layout(), [&](index_t position) {
    checkpoint();
    values.push_back(detail::load_element<T>(base + position * static_cast<index_t>(sizeof(T))));
  });
  source.storage().check();
  return values;
}

struct texts {
  std::vector<std::string> elements;
  int scale = 0;
};

texts format_reals(const std::vector<double>& values, shortest_text shortest, int precision,
                   checkpoint_caller& checkpoint) {
  const auto format = choose_format(values, shortest, precision, checkpoint);
  texts result{{}, format.scale};
  for (const double value : values) {
    checkpoint();
    result.elements.push_back(format(value));
  }
  pad(result.elements, checkpoint);
  return result;
}

texts format_complex(const std::vector<complex>& values, shortest_text shortest, int precision,
                     checkpoint_caller& checkpoint) {
  std::vector<double> parts;
  for (const auto& value : values) parts.insert(parts.end(), {value.real(), value.imag()});
  const auto format = choose_format(parts, shortest, precision, checkpoint);
  std::vector<std::string> reals, imaginaries;
  for (const auto& value : values) {
    checkpoint();
    reals.push_back(format(value.real()));
    const std::string text = format(value.imag());
    imaginaries.push_back(text[0] == '-' ? text : "+" + text);
  }
  pad(reals, checkpoint);
  pad(imaginaries, checkpoint);
  texts result{{}, format.scale};
  for (std::size_t i = 0; i < values.size(); ++i) {
    checkpoint();
    result.elements.push_back(reals[i] + imaginaries[i] + "j");
  }
  return result;
}

// The elements that the logical dtype has: without the axis of the characters of texts.
layout logical_layout(const tensor& source, const std::optional<logical_dtype>& logical) {
  if (!logical || !has_character_axis(*logical)) return source.layout();
  dims strides = source.strides();
  strides.pop_back();
  return layout(logical_shape(*logical, source.shape()), strides, source.offset());
}

std::string text_at(const tensor& source, index_t position) {
  const index_t characters = source.shape().back();
  const index_t stride = source.strides().back();
  const auto gathered = [&]<class Character>(std::type_identity<Character>) {
    std::vector<Character> values;
    for (index_t number = 0; number < characters; ++number)
      values.push_back(detail::load_element<Character>(
          source.storage().data() +
          (position + number * stride) * static_cast<index_t>(sizeof(Character))));
    return decoded_text(values);
  };
  const std::string text = source.dtype() == dtype::uint8
                               ? gathered(std::type_identity<std::uint8_t>{})
                               : gathered(std::type_identity<std::uint32_t>{});
  return "'" + detail::printable(text) + "'";
}

texts format_logical(const tensor& source, const logical_dtype& logical, const layout& elements,
                     const std::vector<shown_axis>& axes, checkpoint_caller& checkpoint) {
  texts result;
  const bool is_text = has_character_axis(logical);
  const auto* const base = source.storage().data();
  for_each_shown(axes, elements, [&](index_t position) {
    checkpoint();
    if (is_text) {
      result.elements.push_back(text_at(source, position));
      return;
    }
    constexpr auto width = static_cast<index_t>(sizeof(std::int64_t));
    result.elements.push_back(
        time_text(logical, detail::load_element<std::int64_t>(base + position * width)));
  });
  source.storage().check();
  pad(result.elements, checkpoint);
  return result;
}

texts format_elements(const tensor& source, const std::vector<shown_axis>& axes, int precision,
                      checkpoint_caller& checkpoint) {
  return visit(source.dtype(), all_types{}, [&]<class T>(std::type_identity<T>) {
    const std::vector<T> values = gather<T>(source, axes, checkpoint);
    if constexpr (detail::is_complex<T>) {
      return format_complex({values.begin(), values.end()}, shortest<typename T::value_type>,
                            precision, checkpoint);
    } else if constexpr (std::is_integral_v<T>) {
      texts result;
      for (const T value : values) {
        checkpoint();
        if constexpr (std::is_same_v<T, bool>)
          result.elements.emplace_back(value ? "True" : "False");
        else result.elements.push_back(std::to_string(value));
      }
      pad(result.elements, checkpoint);
      return result;
    } else {
      return format_reals({values.begin(), values.end()}, shortest<T>, precision, checkpoint);
    }
  });
}

// ---- brackets -----------------------------------------------------------------------------------

class bracket_writer {
 public:
  bracket_writer(const std::vector<shown_axis>& axes, const std::vector<std::string>& elements,
                 index_t line_width, checkpoint_caller& checkpoint)
      : axes_(axes), elements_(elements), line_width_(line_width), checkpoint_(checkpoint) {}

  std::string write() {
    if (axes_.empty()) return elements_.front();
    if (std::any_of(axes_.begin(), axes_.end(), [](auto& axis) { return axis.extent == 0; }))
      return "[]";
    block(0);
    return std::move(text_);
  }

 private:
  // Writes the axes from `axis` on, with the next elements in order.
  void block(std::size_t axis) {
    text_ += '[';
    if (axis + 1 == axes_.size()) row(axis);
    else {
      // There is one line break between rows, and one more for every outer axis.
      const std::string gap =
          std::string(axes_.size() - axis - 1, '\n') + std::string(axis + 1, ' ');
      for (index_t number = 0; number < axes_[axis].count(); ++number) {
        if (number > 0) text_ += gap;
        if (axes_[axis].cut() && number == axes_[axis].head) text_ += "..." + gap;
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
      checkpoint_();
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
    for (index_t number = 0; number < axes_[axis].count(); ++number) {
      if (axes_[axis].cut() && number == axes_[axis].head) put("...");
      put(elements_[next_++]);
    }
    if (axes_[axis].cut() && axes_[axis].tail == 0) put("...");
  }

  const std::vector<shown_axis>& axes_;
  const std::vector<std::string>& elements_;
  const index_t line_width_;
  checkpoint_caller& checkpoint_;
  std::size_t next_ = 0;
  std::string text_;
};

}  // namespace

std::string to_string(const tensor& source, const print_options& options) {
  return detail::allocating([&] {
    if (options.edge_items < 1 || options.precision < 0 || options.precision > 17)
      throw error(errc::invalid_argument, "print options are out of range",
                  {fmt::format("got edge_items {} and precision {}, wanted at least 1 and 0 to 17",
                               options.edge_items, options.precision)});
    const auto& logical = options.logical;
    if (logical) require_storage(*logical, source.dtype(), source.shape());
    const layout elements = logical_layout(source, logical);
    const auto axes = choose(elements, options);
    checkpoint_caller checkpoint(options.checkpoint);
    const texts shown = logical ? format_logical(source, *logical, elements, axes, checkpoint)
                                : format_elements(source, axes, options.precision, checkpoint);
    const std::string dtype_name =
        logical ? name(*logical, source.shape()) : std::string(name(source.dtype()));
    const std::string scale = shown.scale == 0 ? "" : fmt::format("1e{:+03} *\n", shown.scale);
    return scale + bracket_writer(axes, shown.elements, options.line_width, checkpoint).write() +
           "\n" + dtype_name + " " + to_string(elements.shape());
  });
}

std::string describe(const tensor& source) {
  return detail::allocating([&] {
    const storage& bytes = source.storage();
    std::string text = fmt::format("{} {}", name(source.dtype()), to_string(source.shape()));
    if (!source.is_contiguous()) text += fmt::format(", strides {}", to_string(source.strides()));
    if (source.offset() != 0) text += fmt::format(", from element {}", source.offset());
    if (detail::is_mapped(bytes))
      text += fmt::format(", of the file {}", detail::in_quotes(bytes.path()));
    if (bytes.kind() == storage_kind::shared_memory)
      text += fmt::format(", of the shared segment {}", detail::in_quotes(bytes.path()));
    if (bytes.kind() == storage_kind::adopted) text += ", of adopted memory";
    if (!source.writable()) text += ", read-only";
    return text;
  });
}

std::ostream& operator<<(std::ostream& out, const tensor& source) {
  return out << to_string(source);
}

}  // namespace shale
