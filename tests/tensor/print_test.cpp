// Compares printed tensors with texts that were written by hand.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "shale/error.hpp"
#include "shale/print.hpp"
#include "shale/tensor.hpp"
#include "support/comma_locale.hpp"

namespace shale {
namespace {

const double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

tensor counting(const dims& shape, double step = 1) {
  tensor result = tensor::empty(shape, dtype::float64);
  double next = 0;
  for (auto& element : result.elements<double>()) {
    element = next;
    next += step;
  }
  return result;
}

template <class T>
tensor astype(const tensor& source) {
  std::vector<T> values;
  for (const double value : source.elements<const double>()) values.push_back(convert<T>(value));
  return tensor::of<T>(values, source.shape());
}

TEST(Print, IntegersArePlainAndAligned) {
  EXPECT_EQ(to_string(tensor::of<std::int64_t>({1, -20, 300})),
            "[  1 -20 300]\n"
            "int64 (3,)");
  EXPECT_EQ(to_string(tensor::of<std::uint8_t>({7, 255}).view({2, 1})),
            "[[  7]\n"
            " [255]]\n"
            "uint8 (2, 1)");
  EXPECT_EQ(to_string(tensor::of<std::uint64_t>({18446744073709551615u})),
            "[18446744073709551615]\n"
            "uint64 (1,)");
}

TEST(Print, TimesAreThoseOfTheirUnit) {
  const tensor counts = tensor::of<std::int64_t>({0, -1, not_a_time});
  const logical_dtype hours{.kind = logical_kind::datetime, .unit = time_unit::hour};
  EXPECT_EQ(to_string(counts, {.logical = hours}),
            "[1970-01-01T00 1969-12-31T23           NaT]\n"
            "datetime64[h] (3,)");
  const logical_dtype spans{.kind = logical_kind::timedelta, .unit = time_unit::day, .step = 7};
  EXPECT_EQ(to_string(counts.narrow(0, 1, 1), {.logical = spans}),
            "[-1]\n"
            "timedelta64[7D] (1,)");
}

TEST(Print, TextsAreElementsOfTheirCharacters) {
  const logical_dtype bytes{.kind = logical_kind::bytes};
  const logical_dtype text{.kind = logical_kind::text};
  const std::uint8_t letters[] = {'a', 'b', 0, 'c', 0, 0, 0, 0, 0, 0x1b, 0xff, 'd'};
  const tensor words = tensor::of<std::uint8_t>(letters, {2, 2, 3});
  EXPECT_EQ(to_string(words, {.logical = bytes}),
            "[[       'ab'         'c']\n"
            " [         '' '\\x1b\\xffd']]\n"
            "S3 (2, 2)");
  // The characters may lie apart.
  EXPECT_EQ(to_string(words.select(2, 0).swapaxes(0, 1), {.logical = bytes}),
            "[    'a' 'c\\x1b']\n"
            "S2 (2,)");
  EXPECT_EQ(to_string(tensor::of<std::uint32_t>({0xe9, 0x20ac, 0}), {.logical = text}),
            "'\xc3\xa9\xe2\x82\xac'\n"
            "U3 ()");
  EXPECT_EQ(to_string(words.narrow(2, 0, 0), {.logical = bytes}),
            "[['' '']\n"
            " ['' '']]\n"
            "S0 (2, 2)");
  // Long axes are cut, but no text.
  EXPECT_EQ(to_string(words, {.threshold = 1, .edge_items = 1, .logical = bytes}),
            to_string(words, {.logical = bytes}));
  const tensor many = tensor::of<std::uint8_t>({'a', 'b'}).view({1, 2}).broadcast_to({9, 2});
  EXPECT_EQ(to_string(many, {.threshold = 8, .edge_items = 1, .logical = bytes}),
            "['ab' ... 'ab']\n"
            "S2 (9,)");
}

TEST(Print, LogicalDtypesNeedTheirStorage) {
  for (const auto kind : {logical_kind::datetime, logical_kind::bytes, logical_kind::text}) {
    try {
      to_string(counting({3}), {.logical = logical_dtype{.kind = kind}});
      FAIL();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument);
    }
  }
}

TEST(Print, BooleansAreTrueAndFalse) {
  const bool values[] = {true, false, false, true};
  EXPECT_EQ(to_string(tensor::of<bool>(values, {2, 2})),
            "[[ True False]\n"
            " [False  True]]\n"
            "bool (2, 2)");
}

TEST(Print, WholeFloatsHaveABarePoint) {
  EXPECT_EQ(to_string(tensor::of<float>({1, -2, 123456792})),
            "[        1.        -2. 123456792.]\n"
            "float32 (3,)");
  EXPECT_EQ(to_string(tensor::of<float>({0, -0.0f})),
            "[ 0. -0.]\n"
            "float32 (2,)");
  EXPECT_EQ(to_string(tensor::of<double>({1e9, 2})),
            "[1e+09 2e+00]\n"
            "float64 (2,)");
}

TEST(Print, OtherFloatsShareDigits) {
  EXPECT_EQ(to_string(tensor::of<double>({1.5, -22.25, 0.0051})),
            "[  1.5000 -22.2500   0.0051]\n"
            "float64 (3,)");
}

TEST(Print, MagnitudesFarFromOneShareAPowerOfTen) {
  EXPECT_EQ(to_string(tensor::of<double>({123456.5, 1000.25, -99999.0})),
            "[123456.50   1000.25 -99999.00]\n"
            "float64 (3,)");
  EXPECT_EQ(to_string(tensor::of<double>({0.05, 0.0125})),
            "1e-02 *\n"
            "[5.00 1.25]\n"
            "float64 (2,)");
  EXPECT_EQ(to_string(tensor::of<double>({5e-324, 0})),
            "1e-324 *\n"
            "[5. 0.]\n"
            "float64 (2,)");
  EXPECT_EQ(to_string(tensor::of<double>({1.5e-300, 2e-300})),
            "1e-300 *\n"
            "[1.5 2.0]\n"
            "float64 (2,)");
  // Numbers from 0.1 to below 100,000 are printed without a factor.
  EXPECT_EQ(to_string(tensor::of<double>({0.1, 0.05})), "[0.10 0.05]\nfloat64 (2,)");
  EXPECT_EQ(to_string(tensor::of<double>({99999.5, 10})), "[99999.5    10.0]\nfloat64 (2,)");
}

TEST(Print, ElementsThatDifferLookDifferent) {
  EXPECT_EQ(to_string(tensor::of<double>({10000000, 10000000.5, 10000001, 10000001.5})),
            "[10000000.0 10000000.5 10000001.0 10000001.5]\n"
            "float64 (4,)");
  EXPECT_EQ(to_string(tensor::of<double>({0.1234567, 0.1234568, 7})),
            "[0.1234567 0.1234568 7.0000000]\n"
            "float64 (3,)");
  EXPECT_EQ(to_string(tensor::of<double>({1e10, 1e10 + 1})),
            "[1.0000000000e+10 1.0000000001e+10]\n"
            "float64 (2,)");
  const double next = std::nextafter(1.0, 2.0);
  EXPECT_EQ(to_string(tensor::of<double>({1, next})),
            "[1.0000000000000000 1.0000000000000002]\n"
            "float64 (2,)");
  // There are as many digits as the dtype has.
  EXPECT_EQ(to_string(tensor::of<float>({1, std::nextafter(1.0F, 2.0F), 1.5})),
            "[1.0000000 1.0000001 1.5000000]\n"
            "float32 (3,)");
  EXPECT_EQ(to_string(tensor::of<double>({5e-324, 1e-323, 1.5e300})),
            "[4.9e-324 9.9e-324 1.5e+300]\n"
            "float64 (3,)");
}

// Distinct numbers must have distinct texts, whatever the elements are.
TEST(Print, NoTwoNumbersShareAText) {
  std::uint64_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::vector<double> values;
    for (int k = 0; k < 20; ++k) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const double base = std::ldexp(1.0, static_cast<int>(state >> 40) % (round % 3 ? 8 : 600));
      values.push_back(base + static_cast<double>((state >> 33) % 4) *
                                  std::ldexp(base, -static_cast<int>(state >> 20) % 52));
    }
    const std::string text = to_string(tensor::of<double>(values, {20}), {.line_width = 1 << 20});
    std::set<std::string> words;
    std::istringstream in(text.substr(text.find('[') + 1, text.find(']') - text.find('[') - 1));
    for (std::string word; in >> word;) words.insert(word);
    EXPECT_EQ(words.size(), std::set<double>(values.begin(), values.end()).size()) << text;
  }
}

TEST(Print, WideSpansOfMagnitudesHaveExponents) {
  EXPECT_EQ(to_string(tensor::of<double>({1.5, 0.00001})),
            "[1.5e+00 1.0e-05]\n"
            "float64 (2,)");
  EXPECT_EQ(to_string(tensor::of<double>({1.5e300, -1e-300, 0})),
            "[ 1.5e+300 -1.0e-300   0.0e+00]\n"
            "float64 (3,)");
}

TEST(Print, NaNAndInfinityDoNotDisturbTheFormat) {
  EXPECT_EQ(to_string(tensor::of<double>({1, nan, -inf})),
            "[  1.  nan -inf]\n"
            "float64 (3,)");
  EXPECT_EQ(to_string(tensor::of<double>({0.5, inf, -nan, 100.25})),
            "[  0.50    inf    nan 100.25]\n"
            "float64 (4,)");
  EXPECT_EQ(to_string(tensor::of<double>({nan})), "[nan]\nfloat64 (1,)");
}

TEST(Print, SmallFloatsPrintTheirValues) {
  EXPECT_EQ(to_string(astype<float16>(tensor::of<double>({0.1, 65504}))),
            "[1.00e-01 6.55e+04]\n"
            "float16 (2,)");
  EXPECT_EQ(to_string(astype<bfloat16>(tensor::of<double>({1.5, 3}))),
            "[1.5 3.0]\n"
            "bfloat16 (2,)");
  EXPECT_EQ(to_string(astype<float8_e4m3fn>(tensor::of<double>({448, inf}))),
            "[448.  nan]\n"
            "float8_e4m3fn (2,)");
}

TEST(Print, ComplexPartsShareOneFormat) {
  using complex = std::complex<float>;
  EXPECT_EQ(to_string(tensor::of({complex(1, -2.5), complex(-10.25, 3)})),
            "[  1.00-2.50j -10.25+3.00j]\n"
            "complex64 (2,)");
  EXPECT_EQ(to_string(tensor::of({complex(1, 2), complex(0, 12), complex(NAN, -INFINITY)})),
            "[ 1. +2.j  0.+12.j nan-infj]\n"
            "complex64 (3,)");
  EXPECT_EQ(to_string(tensor::of({complex(0.01f, 0.05f)})),
            "1e-02 *\n"
            "[1.+5.j]\n"
            "complex64 (1,)");
}

TEST(Print, RankZeroHasNoBrackets) {
  EXPECT_EQ(to_string(tensor::of<float>({2.5f}).view({})), "2.5\nfloat32 ()");
  EXPECT_EQ(to_string(tensor::of<bool>({true}).view({})), "True\nbool ()");
}

TEST(Print, EmptyTensorsShowTheirShape) {
  EXPECT_EQ(to_string(tensor()), "[]\nfloat32 (0,)");
  EXPECT_EQ(to_string(tensor::empty({3, 0}, dtype::int8)), "[]\nint8 (3, 0)");
  EXPECT_EQ(to_string(tensor::empty({0, 5000}, dtype::boolean)), "[]\nbool (0, 5000)");
}

TEST(Print, EachAxisMoreSeparatesByOneMoreLine) {
  EXPECT_EQ(to_string(counting({1, 2, 2, 2})),
            "[[[[0. 1.]\n"
            "   [2. 3.]]\n"
            "\n"
            "  [[4. 5.]\n"
            "   [6. 7.]]]]\n"
            "float64 (1, 2, 2, 2)");
  EXPECT_EQ(to_string(counting({2, 1, 1, 1})),
            "[[[[0.]]]\n"
            "\n"
            "\n"
            " [[[1.]]]]\n"
            "float64 (2, 1, 1, 1)");
}

TEST(Print, LongAxesShowTheirEnds) {
  EXPECT_EQ(to_string(astype<std::int32_t>(counting({1001}))),
            "[   0    1    2 ...  998  999 1000]\n"
            "int32 (1001,)");
  EXPECT_EQ(to_string(astype<std::int32_t>(counting({1000})).narrow(0, 0, 30), {.line_width = 40}),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12\n"
            " 13 14 15 16 17 18 19 20 21 22 23 24 25\n"
            " 26 27 28 29]\n"
            "int32 (30,)");
  EXPECT_EQ(
      to_string(astype<std::int32_t>(counting({5, 4, 7})), {.threshold = 10, .edge_items = 1}),
      "[[[  0 ...   6]\n"
      "  ...\n"
      "  [ 21 ...  27]]\n"
      "\n"
      " ...\n"
      "\n"
      " [[112 ... 118]\n"
      "  ...\n"
      "  [133 ... 139]]]\n"
      "int32 (5, 4, 7)");
  // Axes with up to twice `edge_items` positions are shown completely.
  EXPECT_EQ(to_string(astype<std::int32_t>(counting({3, 4})), {.threshold = 5, .edge_items = 2}),
            "[[ 0  1  2  3]\n"
            " [ 4  5  6  7]\n"
            " [ 8  9 10 11]]\n"
            "int32 (3, 4)");
}

TEST(Print, TheLongestAxisShowsItsEnds) {
  const tensor one = tensor::of<std::uint8_t>({7});
  for (const index_t extent :
       {std::numeric_limits<index_t>::max(), std::numeric_limits<index_t>::max() - 1})
    EXPECT_EQ(to_string(one.broadcast_to({extent})),
              "[7 7 7 ... 7 7 7]\nuint8 (" + std::to_string(extent) + ",)");
}

TEST(Print, NumbersHavePointsWhereTheLocaleHasCommas) {
  const auto print_all = [] {
    return to_string(counting({3}, 0.25)) + to_string(counting({3}, 1e7)) +
           to_string(counting({3}, 1e-7)) + to_string(astype<float16>(counting({3}, 0.25))) +
           to_string(astype<std::complex<double>>(counting({3}, 0.25))) +
           to_string(astype<std::int64_t>(counting({3}, 1e9)));
  };
  const std::string wanted = print_all();
  const test::comma_locale commas;
  EXPECT_EQ(print_all(), wanted);
}

TEST(Print, ManyShortAxesShowTheirFirstPositionOnly) {
  const tensor one = tensor::of<std::int8_t>({7});
  // There are 2^7 elements, of which (2 * 1)^6 may be shown.
  const std::string text =
      to_string(one.broadcast_to({2, 2, 2, 2, 2, 2, 2}), {.threshold = 100, .edge_items = 1});
  EXPECT_EQ(text.substr(0, text.find("\n\n")), "[[[[[[[7 7]\n      [7 7]]");
  EXPECT_EQ(std::count(text.begin(), text.end(), '7'), 64);
  EXPECT_NE(text.find("\n\n\n\n\n\n ...]\nint8 (2, 2"), std::string::npos);
  const std::string most = to_string(one.broadcast_to(dims::filled(32, 2)));
  EXPECT_EQ(std::count(most.begin(), most.end(), '7'), 1 << 15);
}

TEST(Print, HiddenElementsDoNotShapeTheFormat) {
  tensor x = counting({2000});
  x.set({1000}, 1e300);
  x.set({1001}, 0.123);
  EXPECT_EQ(to_string(x),
            "[   0.    1.    2. ... 1997. 1998. 1999.]\n"
            "float64 (2000,)");
}

TEST(Print, WideRowsWrapUnderTheirBracket) {
  EXPECT_EQ(to_string(counting({2, 12}, 0.5), {.line_width = 30}),
            "[[ 0.0  0.5  1.0  1.5  2.0\n"
            "   2.5  3.0  3.5  4.0  4.5\n"
            "   5.0  5.5]\n"
            " [ 6.0  6.5  7.0  7.5  8.0\n"
            "   8.5  9.0  9.5 10.0 10.5\n"
            "  11.0 11.5]]\n"
            "float64 (2, 12)");
  // An element that is wider than the line is still printed.
  EXPECT_EQ(to_string(tensor::of<std::int32_t>({123456, 654321}), {.line_width = 3}),
            "[123456\n"
            " 654321]\n"
            "int32 (2,)");
}

TEST(Print, NoLineIsWiderThanAsked) {
  for (const index_t width : {20, 41, 80, 133}) {
    const std::string text = to_string(counting({3, 2, 40}, 0.25), {.line_width = width});
    std::size_t line = 0;
    while (line < text.size()) {
      const std::size_t end = std::min(text.find('\n', line), text.size());
      EXPECT_LE(static_cast<index_t>(end - line), width);
      line = end + 1;
    }
  }
}

TEST(Print, PrecisionIsTheDigitsAfterThePoint) {
  EXPECT_EQ(to_string(tensor::of<double>({0.5, 3.14159265358979}), {.precision = 8}),
            "[0.50000000 3.14159265]\n"
            "float64 (2,)");
  EXPECT_EQ(to_string(tensor::of<double>({0.5, 3.75}), {.precision = 0}), "[0. 4.]\nfloat64 (2,)");
}

TEST(Print, ViewsPrintWhatTheyShow) {
  const tensor x = astype<std::int32_t>(counting({2, 3}));
  EXPECT_EQ(to_string(x.swapaxes(0, 1).flip({0})),
            "[[2 5]\n"
            " [1 4]\n"
            " [0 3]]\n"
            "int32 (3, 2)");
  EXPECT_EQ(to_string(x.select(0, 1).broadcast_to({2, 3})),
            "[[3 4 5]\n"
            " [3 4 5]]\n"
            "int32 (2, 3)");
}

TEST(Print, RefusesOptionsOutOfRange) {
  try {
    to_string(tensor(), {.edge_items = 0});
    FAIL();
  } catch (const error& failure) {
    EXPECT_STREQ(failure.what(),
                 "print options are out of range [invalid_argument]\n"
                 "  got edge_items 0 and precision 4, wanted at least 1 and 0 to 17");
  }
  EXPECT_THROW(to_string(tensor(), {.precision = 18}), error);
  EXPECT_THROW(to_string(tensor(), {.precision = -1}), error);
}

struct stopped {};
int looks = 0;
int looks_allowed = 0;

void look() {
  if (looks++ == looks_allowed) throw stopped();
}

TEST(Print, CanBeEndedInEveryStepOfItsWork) {
  constexpr index_t elements = 100'000;
  constexpr int steps = 4;  // every element is read, formatted, padded and put into its row
  const tensor numbers = counting({elements}, 0.25);
  for (const tensor& values :
       {numbers, astype<std::int32_t>(numbers), astype<std::complex<float>>(numbers)}) {
    SCOPED_TRACE(describe(values));
    const print_options plain{.threshold = elements};
    print_options stopping = plain;
    stopping.checkpoint = look;
    looks = 0;
    looks_allowed = std::numeric_limits<int>::max();
    EXPECT_EQ(to_string(values, stopping), to_string(values, plain));
    EXPECT_GE(looks, steps * static_cast<int>(elements) / 4096);
    for (const int at : {0, looks / 4, looks / 2, looks - 1}) {
      looks = 0;
      looks_allowed = at;
      EXPECT_THROW(to_string(values, stopping), stopped) << at;
      EXPECT_EQ(looks, at + 1);
    }
  }
}

// The tensor covers 64 GiB of address space, of which only the pages with shown elements are
// accessible: any other access is a fault that ends the test.
TEST(Print, TouchesOnlyTheElementsItShows) {
  constexpr index_t rows = 2048, columns = 1024, planes = 4096;
  constexpr std::size_t bytes = static_cast<std::size_t>(rows * columns * planes) * 8;
  void* const address =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto ends = [](index_t extent) {
    return std::set<index_t>{0, 1, 2, extent - 3, extent - 2, extent - 1};
  };
  for (const index_t i : ends(planes))
    for (const index_t j : ends(rows))
      for (const index_t k : ends(columns)) {
        const auto offset = static_cast<std::size_t>((i * rows + j) * columns + k) * 8;
        ASSERT_EQ(mprotect(static_cast<std::byte*>(address) + offset / page * page, page,
                           PROT_READ | PROT_WRITE),
                  0);
      }
  const auto unmap = [](void* pointer) { munmap(pointer, bytes); };
  tensor huge(storage::adopt(address, bytes, unmap), dtype::float64,
              layout({planes, rows, columns}));
  huge.set({0, 0, 0}, 1.5);
  huge.set({-1, -1, -1}, -2);
  const std::string text = to_string(huge);
  EXPECT_EQ(text.substr(0, text.find('\n')), "[[[ 1.5  0.0  0.0 ...  0.0  0.0  0.0]");
  EXPECT_NE(text.find("-2.0]]]\nfloat64 (4096, 2048, 1024)"), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '.') - 3 * (36 + 6 + 1), 6 * 6 * 6);
}

}  // namespace
}  // namespace shale
