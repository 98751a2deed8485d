// Provides a locale with a decimal comma on every machine. It writes the locale's file in the
// format of glibc, since few installations have such a locale.
#pragma once

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <string>
#include <vector>

#include "support/scratch_directory.hpp"

namespace shale::test {

/// While it lives, numbers of the process have decimal commas and points between thousands, in C
/// and in streams.
class comma_locale {
 public:
  comma_locale() : before_(std::setlocale(LC_NUMERIC, nullptr)) {
    std::filesystem::create_directory(scratch_ / name);
    write_file(scratch_ / name + "/LC_NUMERIC", compiled());
    ::setenv("LOCPATH", scratch_.path().c_str(), 1);
    if (std::setlocale(LC_NUMERIC, name) == nullptr)
      throw std::runtime_error("the locale with a decimal comma cannot be loaded");
    streams_before_ = std::locale::global(std::locale(std::locale::classic(), new comma_numbers));
  }
  ~comma_locale() {
    std::locale::global(streams_before_);
    std::setlocale(LC_NUMERIC, before_.c_str());
    ::unsetenv("LOCPATH");
  }
  comma_locale(const comma_locale&) = delete;
  comma_locale& operator=(const comma_locale&) = delete;

 private:
  static constexpr const char* name = "comma";

  struct comma_numbers : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  // The format: a magic number, the number of fields, the offset of each field, and the fields.
  // These are the decimal point, the separator of thousands, the digit grouping, point and
  // separator again as wide characters, and the encoding.
  static std::string compiled() {
    constexpr std::uint32_t magic = 0x20031115 ^ LC_NUMERIC;
    const std::vector<std::string> fields{std::string(",\0\0\0", 4),  std::string(".\0\0\0", 4),
                                          std::string("\3\3\0\0", 4), std::string(",\0\0\0", 4),
                                          std::string(".\0\0\0", 4),  "UTF-8"};
    std::string bytes, values;
    const auto put = [&bytes](std::uint32_t word) {
      bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
    };
    const auto count = static_cast<std::uint32_t>(fields.size());
    put(magic);
    put(count);
    for (const auto& field : fields) {
      put(static_cast<std::uint32_t>(sizeof(std::uint32_t) * (2 + count) + values.size()));
      values += field;
    }
    return bytes + values + '\0';
  }

  scratch_directory scratch_;
  std::string before_;
  std::locale streams_before_;
};

}  // namespace shale::test
