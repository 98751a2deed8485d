// Tests the choice of an instruction set, and the symbols that the object files of each set define.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ops/kernels/dispatch/dispatch.hpp"
#include "shale/error.hpp"
#include "support/command_lines.hpp"

namespace shale::test {
namespace {

errc code_of(const char* wanted) {
  try {
    ops::choose_isa(wanted);
  } catch (const error& failure) {
    return failure.code();
  }
  ADD_FAILURE() << "no error for " << wanted;
  return errc::io;
}

TEST(Isa, IsTheBestOfTheCpuUnlessAsked) {
  EXPECT_TRUE(ops::supports(ops::isa::baseline));
  EXPECT_EQ(ops::choose_isa("baseline"), ops::isa::baseline);
  const ops::isa best = ops::choose_isa(nullptr);
  EXPECT_EQ(ops::choose_isa(""), best);
  for (const ops::isa candidate : {ops::isa::avx2, ops::isa::avx512}) {
    const std::string text(ops::name(candidate));
    if (ops::supports(candidate)) {
      EXPECT_EQ(ops::choose_isa(text.c_str()), candidate);
      EXPECT_GE(best, candidate);
    } else {
      EXPECT_EQ(code_of(text.c_str()), errc::unsupported);
      EXPECT_LT(best, candidate);
    }
  }
}

TEST(Isa, RefusesUnknownNamesAndListsTheKnown) {
  EXPECT_EQ(code_of("sse9"), errc::invalid_argument);
  EXPECT_EQ(code_of("AVX2"), errc::invalid_argument);
  try {
    ops::choose_isa("sse9");
  } catch (const error& failure) {
    const std::string text = failure.what();
    EXPECT_NE(text.find("\"sse9\""), std::string::npos) << text;
    EXPECT_NE(text.find("baseline, avx2, avx512"), std::string::npos) << text;
    EXPECT_NE(text.find("SHALE_ISA"), std::string::npos) << text;
  }
}

TEST(Isa, FollowsTheEnvironment) {
  const auto report = [](const std::string& setting) {
    const auto lines = lines_of("SHALE_ISA=" + setting + " '" SHALE_REPORT_KERNELS "'");
    return lines.empty() ? std::string("no report") : lines[0];
  };
  const std::string best(ops::name(ops::choose_isa(nullptr)));
  EXPECT_EQ(report("baseline"), "baseline accepted");
  EXPECT_EQ(report(""), best + " accepted");
  EXPECT_EQ(report("nonsense"), best + " invalid_argument");
  if (ops::supports(ops::isa::avx2)) {
    EXPECT_EQ(report("avx2"), "avx2 accepted");
  }
}

/// The symbols of an object file that other units can be linked to.
struct offered {
  int entries = 0;                 ///< functions `fill_…`, of which every unit has one
  std::vector<std::string> leaks;  ///< all other symbols
};

offered offered_by(const std::string& object) {
  offered result;
  for (const std::string& line : lines_of(SHALE_NM " -C --defined-only '" + object + "'")) {
    // The format is "address kind name". Capital kinds are external; V, W and u are weak or unique.
    std::istringstream words(line);
    std::string address, kind, symbol;
    words >> address >> kind;
    std::getline(words, symbol);
    if (kind.size() != 1) continue;
    const bool external = (kind >= "A" && kind <= "Z") || kind == "u" || kind == "v" || kind == "w";
    if (!external) continue;
    // clang's sanitizer adds symbols for functions that are called through pointers.
    if (symbol.starts_with(" typeinfo ")) continue;
    if (kind == "T" && symbol.find("::fill_") != std::string::npos) ++result.entries;
    else result.leaks.push_back(kind + symbol);
  }
  return result;
}

/// Instructions that name a register beyond the x86-64 baseline.
std::size_t wide_instructions_of(const std::string& object) {
  const auto count = lines_of(SHALE_OBJDUMP " -d --no-show-raw-insn '" + object +
                              "' | grep -cE '%[yz]mm|%k[0-7]'");
  EXPECT_EQ(count.size(), 1u) << object;
  return count.empty() ? 0 : std::stoul(count[0]);
}

/// The object files of the kernels and of their dispatch, by file name.
std::map<std::string, std::string> objects_of_ops() {
  std::map<std::string, std::string> result;
  std::istringstream objects(SHALE_OPS_OBJECTS);
  for (std::string object; std::getline(objects, object, ':');)
    result[object.substr(object.rfind('/') + 1)] = object;
  return result;
}

bool is_beyond_baseline(const std::string& file) { return file.find("_avx") != std::string::npos; }

// isa.1, and isa.2 if the compiler did not inline the function that was used.
TEST(Isa, UnitsBeyondTheBaselineDefineTheirEntryAlone) {
  int units = 0;
  for (const auto& [file, object] : objects_of_ops()) {
    if (!is_beyond_baseline(file)) continue;
    ++units;
    const offered found = offered_by(object);
    EXPECT_EQ(found.entries, 1) << file;
    EXPECT_EQ(found.leaks, std::vector<std::string>()) << file;
  }
#ifdef __x86_64__
  EXPECT_EQ(units, 26);
#endif
}

#ifdef __x86_64__
TEST(Isa, UnitsOfTheBaselineKeepToIt) {
  int units = 0;
  for (const auto& [file, object] : objects_of_ops()) {
    ++units;
    if (is_beyond_baseline(file)) continue;
    EXPECT_EQ(wide_instructions_of(object), 0u) << file;
  }
  EXPECT_GT(units, 14 + 7);
}

// The two tests above detect a unit that breaks the rule.
TEST(Isa, PlantedLeaksAreSeen) {
  const offered found = offered_by(SHALE_LEAKY_OBJECT);
  EXPECT_EQ(found.entries, 1);
  ASSERT_EQ(found.leaks.size(), 1u);
  EXPECT_EQ(found.leaks[0], "W shale::ops::leaked_sum(float const*, int)");
  EXPECT_GT(wide_instructions_of(SHALE_LEAKY_OBJECT), 0u);
}
#endif

}  // namespace
}  // namespace shale::test
