#include <gtest/gtest.h>

#include <span>

#include "interop/test_support.hpp"
#include "shale/npy.hpp"
#include "support/little_memory.hpp"

namespace shale {
namespace {

using test::code_of;

npy_header parse(const std::string& bytes) {
  // A copy of the exact size, so that a sanitizer detects a read beyond its end.
  std::vector<std::byte> exact(bytes.size());
  if (!bytes.empty()) std::memcpy(exact.data(), bytes.data(), bytes.size());
  return parse_npy_header(exact);
}

std::string framed(const std::string& text, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return bytes + text;
}

std::string dictionary(const std::string& shape, const std::string& descr = "'<f4'",
                       const std::string& order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

TEST(NpyHeader, IsTheSameAfterWritingAndReading) {
  for (const dtype type : test::numpy_dtypes()) {
    for (const auto order : {std::endian::little, std::endian::big}) {
      for (const dims& shape : {dims{}, dims{0}, dims{7}, dims{1, 2, 3}, dims::filled(32, 1),
                                dims{1'000'000'000'000}}) {
        for (int version = 1; version <= 3; ++version) {
          const std::endian kept =
              item_bytes(type) == 1 ? std::endian::little : order;  // one byte has no order
          npy_header header{.dtype = type,
                            .byte_order = kept,
                            .fortran_order = version == 2,
                            .shape = shape,
                            .version = version};
          const std::string bytes = format_npy_header(header);
          EXPECT_EQ(bytes.size() % 64, 0u);
          EXPECT_EQ(bytes.back(), '\n');
          header.data_offset = bytes.size();
          EXPECT_EQ(parse(bytes), header) << bytes;
        }
      }
    }
  }
}

TEST(NpyHeader, HasNoCodeForTheShortFloats) {
  for (const dtype type : {dtype::bfloat16, dtype::float8_e4m3fn, dtype::float8_e5m2}) {
    try {
      format_npy_header({.dtype = type});
      FAIL();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::unsupported);
      EXPECT_NE(std::string(failure.what()).find("convert to float32"), std::string::npos);
    }
  }
}

TEST(NpyHeader, IsNotWrittenForShapesThatNoTensorHas) {
  EXPECT_EQ(code_of([] { format_npy_header({.shape = {3, -1}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { format_npy_header({.shape = {3}, .version = 4}); }),
            errc::invalid_argument);
}

// npy.3
TEST(NpyHeader, OfAnyOtherTextIsCorrupt) {
  const std::string nul(1, '\0');
  for (const std::string& text : {
           std::string(),
           std::string("{"),
           std::string("{}"),
           std::string("{,}"),
           std::string("[]"),
           std::string("None"),
           dictionary("(3,)") + "x",
           dictionary("(3,)") + "}",
           dictionary("(3,)") + " # comment",
           dictionary("(3,)") + nul,
           dictionary("(3)"),
           dictionary("3"),
           dictionary("[3]"),
           dictionary("(,)"),
           dictionary("(3,,)"),
           dictionary("(3, 4"),
           dictionary("(3 4)"),
           dictionary("(-3,)"),
           dictionary("(+3,)"),
           dictionary("(03,)"),
           dictionary("(0x3,)"),
           dictionary("(3.0,)"),
           dictionary("(1e3,)"),
           dictionary("(1_000,)"),
           dictionary("(True,)"),
           dictionary("('3',)"),
           dictionary("(3,)*9"),
           dictionary("(9223372036854775808,)"),
           dictionary("(99999999999999999999999999999999999999999999,)"),
           dictionary("(9223372036854775807,)"),
           dictionary("(4294967296, 4294967296)"),
           dictionary("(0, 4294967296, 4294967296)"),
           dictionary("(2305843009213693952,)"),
           dictionary("(3,)", "'<f4"),
           dictionary("(3,)", "\"<f4'"),
           dictionary("(3,)", "'<f4\\x00'"),
           dictionary("(3,)", "''"),
           dictionary("(3,)", "'<'"),
           dictionary("(3,)", "'<f'"),
           dictionary("(3,)", "'<f3'"),
           dictionary("(3,)", "'<f4 '"),
           dictionary("(3,)", "'<<f4'"),
           dictionary("(3,)", "'<f-4'"),
           dictionary("(3,)", "'<f99999999999999999999'"),
           dictionary("(3,)", "'<q8'"),
           dictionary("(3,)", "'<b2'"),
           dictionary("(3,)", "b'<f4'"),
           dictionary("(3,)", "4"),
           dictionary("(3,)", "None"),
           dictionary("(3,)", "'<f4'", "false"),
           dictionary("(3,)", "'<f4'", "0"),
           dictionary("(3,)", "'<f4'", "'False'"),
           dictionary("(3,)", "'<f4'", "Falsey"),
           std::string("{'descr': '<f4', 'shape': (3,), }"),
           std::string("{'descr': '<f4', 'fortran_order': False, }"),
           std::string("{'fortran_order': False, 'shape': (3,), }"),
           std::string("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"),
           std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}"),
           std::string("{descr: '<f4', 'fortran_order': False, 'shape': (3,)}"),
           std::string("{'descr' '<f4', 'fortran_order': False, 'shape': (3,)}"),
           std::string("{'descr': '<f4' 'fortran_order': False 'shape': (3,)}"),
           std::string(60'000, '('),
           std::string(60'000, '{'),
           std::string(60'000, ' '),
           "{'descr': '" + std::string(60'000, 'f') + "'}",
       }) {
    SCOPED_TRACE(text.substr(0, 120));
    EXPECT_EQ(code_of([&] { parse(framed(text)); }), errc::corrupt);
  }
}

// Byte positions in tensors are signed, and two of them may be added.
TEST(NpyHeader, ReachesToTwoToThe62BytesAndNoFurther) {
  const auto code = [](const std::string& shape, const std::string& descr) {
    return code_of([&] { parse(framed(dictionary(shape, descr))); });
  };
  const npy_header most = parse(framed(dictionary("(1152921504606846976,)")));  // 2^60 * 4
  EXPECT_EQ(most.data_bytes(), std::uint64_t{1} << 62);
  EXPECT_EQ(code("(1152921504606846977,)", "'<f4'"), errc::corrupt);
  EXPECT_EQ(parse(framed(dictionary("(4611686018427387904,)", "'|i1'"))).data_bytes(),
            std::uint64_t{1} << 62);
  EXPECT_EQ(code("(4611686018427387905,)", "'|i1'"), errc::corrupt);
  EXPECT_EQ(code("(2147483648, 2147483648)", "'|u1'"), errc{});         // 2^62
  EXPECT_EQ(code("(2147483648, 2147483648)", "'<u2'"), errc::corrupt);  // 2^63
  EXPECT_EQ(code("(4294967296, 4294967296)", "'|u1'"), errc::corrupt);  // 2^64: would wrap to 0
  EXPECT_EQ(code("(4294967297, 4294967296)", "'|u1'"), errc::corrupt);  // 2^64 + 2^32
  EXPECT_EQ(code("(9223372036854775807, 2)", "'|u1'"), errc::corrupt);
  EXPECT_EQ(code("(9223372036854775807, 3)", "'|u1'"), errc::corrupt);
}

// npy.3
TEST(NpyHeader, LongIntegersEndWithVersionTwo) {
  EXPECT_EQ(parse(framed(dictionary("(3L, 4L)"), 2)).shape, (dims{3, 4}));
  EXPECT_EQ(code_of([] { parse(framed(dictionary("(3L, 4L)"), 3)); }), errc::corrupt);
}

TEST(NpyHeader, OfValuesBeyondThisBuildIsUnsupported) {
  std::string many = "(";
  for (int axis = 0; axis < 33; ++axis) many += "1, ";
  // The characters of a text are an axis.
  std::string texts = "(";
  for (int axis = 0; axis < 32; ++axis) texts += "1, ";
  for (const std::string& text : {
           dictionary(many + ")"),
           dictionary("(3,)", "'|O'"),
           dictionary("(3,)", "'O'"),
           dictionary(texts + ")", "'|S3'"),
           dictionary("(3,)", "'|V2'"),
           dictionary("(3,)", "'<f16'"),
           dictionary("(3,)", "'<c32'"),
           dictionary("(3,)", "[('a', '<i4'), ('b', '|O')]"),
           dictionary("(3,)", "('<f4', (2,))"),
           dictionary("(3,)", "[" + std::string(50'000, '(')),
       }) {
    SCOPED_TRACE(text.substr(0, 120));
    EXPECT_EQ(code_of([&] { parse(framed(text)); }), errc::unsupported);
  }
}

TEST(NpyHeader, OfTimesDescribesIntegers) {
  for (const auto& [descr, type] :
       {std::pair("'<M8[ns]'", "datetime64[ns]"), std::pair("'>M8[25s]'", "datetime64[25s]"),
        std::pair("'<m8[Y]'", "timedelta64[Y]"), std::pair("'=M8'", "datetime64")}) {
    SCOPED_TRACE(descr);
    const npy_header header = parse(framed(dictionary("(3, 4)", descr)));
    EXPECT_EQ(header.dtype, dtype::int64);
    EXPECT_EQ(header.shape, (dims{3, 4}));
    EXPECT_EQ(header.byte_order, descr[1] == '>' ? std::endian::big : std::endian::little);
    EXPECT_EQ(header.logical, parse_logical_dtype(type));
    EXPECT_EQ(header.data_bytes(), 96u);
  }
}

TEST(NpyHeader, OfTextsHasAnAxisOfCharacters) {
  const npy_header letters = parse(framed(dictionary("(3, 4)", "'|S10'", "True")));
  EXPECT_EQ(letters.dtype, dtype::uint8);
  EXPECT_EQ(letters.shape, (dims{3, 4, 10}));
  EXPECT_EQ(letters.logical, parse_logical_dtype("S"));
  EXPECT_EQ(letters.data_bytes(), 120u);
  EXPECT_EQ(letters.layout().strides(), (dims{10, 30, 1}));
  const npy_header characters = parse(framed(dictionary("()", "'>U5'")));
  EXPECT_EQ(characters.dtype, dtype::uint32);
  EXPECT_EQ(characters.shape, dims{5});
  EXPECT_EQ(characters.byte_order, std::endian::big);
  EXPECT_EQ(characters.logical, parse_logical_dtype("U"));
  EXPECT_EQ(parse(framed(dictionary("(3,)", "'>S2'"))).byte_order, std::endian::little);
  EXPECT_EQ(parse(framed(dictionary("(3,)", "'a2'"))).logical, parse_logical_dtype("S"));
  EXPECT_EQ(parse(framed(dictionary("(3,)", "'|S0'"))).shape, (dims{3, 0}));
}

TEST(NpyHeader, OfTimesAndTextsThatNumPyDoesNotHaveIsCorrupt) {
  for (const char* descr : {"M",
                            "M4[s]",
                            "M8[",
                            "M8[]",
                            "M8[0s]",
                            "M8[-1s]",
                            "M8[2147483648s]",
                            "M8[s",
                            "M8[s]]",
                            "M8[ns]x",
                            "M8[x]",
                            "M8[2]",
                            "M8s",
                            "M16[s]",
                            "m8[generic]",
                            "S",
                            "U",
                            "S-1",
                            "S1x",
                            "S 1",
                            "S2147483648",
                            "U536870912",
                            "U99999999999999999999",
                            "s5",
                            "u5"})
    EXPECT_EQ(code_of([&] { parse(framed(dictionary("(3,)", "'<" + std::string(descr) + "'"))); }),
              errc::corrupt)
        << descr;
  EXPECT_EQ(code_of([] { parse(framed(dictionary("(1073741824,)", "'|S2147483647'"))); }), errc{});
  EXPECT_EQ(code_of([] { parse(framed(dictionary("(4294967296,)", "'|S2147483647'"))); }),
            errc::corrupt);
}

TEST(NpyHeader, IsTheSameAfterWritingTimesAndTexts) {
  for (const auto order : {std::endian::little, std::endian::big}) {
    for (const char* type : {"datetime64[ns]", "timedelta64[25s]", "datetime64", "S", "U"}) {
      const auto logical = parse_logical_dtype(type);
      const dtype storage = storage_dtype(*logical);
      const bool is_bytes = storage == dtype::uint8;
      for (const dims& shape : {dims{7}, dims{2, 3}, dims{2, 0, 5}, dims::filled(32, 1)}) {
        npy_header header{.dtype = storage,
                          .byte_order = is_bytes ? std::endian::little : order,
                          .fortran_order = order == std::endian::big,
                          .shape = shape,
                          .logical = logical};
        const std::string bytes = format_npy_header(header);
        header.data_offset = bytes.size();
        EXPECT_EQ(parse(bytes), header) << bytes;
      }
    }
  }
}

TEST(NpyHeader, OfALogicalDtypeNeedsItsStorage) {
  const auto dates = parse_logical_dtype("datetime64[s]");
  const auto texts = parse_logical_dtype("U");
  for (const npy_header& wrong :
       {npy_header{.dtype = dtype::float64, .shape = {3}, .logical = dates},
        npy_header{.dtype = dtype::uint8, .shape = {3}, .logical = texts},
        npy_header{.dtype = dtype::uint32, .shape = {}, .logical = texts}})
    EXPECT_EQ(code_of([&] { format_npy_header(wrong); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              format_npy_header({.dtype = dtype::uint32, .shape = {536'870'912}, .logical = texts});
            }),
            errc::unsupported);
}

TEST(NpyHeader, OfStructuredElementsIsRefusedByTheDtypeAlone) {
  for (const std::string descr :
       {"[('a', '<i4'), ('b', '<f8')]", "[('x', '<f4', (2, 3)), ('y', [('z', '|u1')])]",
        "[(']', '<i4'), (\"('\", '<i2')]", "('<f4', (2,))"}) {
    try {
      parse(framed(dictionary("(3,)", descr)));
      FAIL() << descr;
    } catch (const error& failure) {
      const std::string text = failure.what();
      EXPECT_NE(text.find("descr '" + descr + "'\n"), std::string::npos) << text;
      EXPECT_EQ(text.find("fortran_order"), std::string::npos) << text;
      EXPECT_NE(text.find("save each field by itself"), std::string::npos) << text;
    }
  }
}

// npy.2
TEST(NpyHeader, AllocatesNothingThatItDeclares) {
  const test::little_memory limit;
  std::string huge = "\x93NUMPY\x02";
  huge += '\0';
  huge += "\xff\xff\xff\xff{'descr': ";
  EXPECT_EQ(code_of([&] { parse(huge); }), errc::unsupported);
  std::string missing = framed(dictionary("(3,)"));
  missing[9] = '\x7f';
  EXPECT_EQ(code_of([&] { parse(missing); }), errc::corrupt);
}

TEST(NpyHeader, OfUnknownVersionsIsUnsupported) {
  for (const auto& [major, minor] : {std::pair(0, 0), {4, 0}, {1, 1}, {255, 255}}) {
    std::string bytes = framed(dictionary("(3,)"));
    bytes[6] = static_cast<char>(major);
    bytes[7] = static_cast<char>(minor);
    EXPECT_EQ(code_of([&] { parse(bytes); }), errc::unsupported);
  }
}

// npy.1: a sanitizer detects a read beyond the end.
TEST(NpyHeader, CutAnywhereIsCorrupt) {
  for (int version = 1; version <= 3; ++version) {
    const std::string whole = format_npy_header({.shape = {3, 4}, .version = version});
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
      EXPECT_EQ(code_of([&] { parse(whole.substr(0, bytes)); }), errc::corrupt) << bytes;
    EXPECT_EQ(parse(whole + "elements").data_offset, whole.size());
  }
}

// Sets every byte to every value: the header is refused, or parsed with sizes that the text can
// express.
TEST(NpyHeader, SurvivesAnyChangedByte) {
  const std::string whole = format_npy_header({.dtype = dtype::int32, .shape = {12, 34}});
  for (std::size_t offset = 0; offset < whole.size(); ++offset) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole;
      changed[offset] = static_cast<char>(value);
      try {
        const npy_header header = parse(changed);
        EXPECT_LE(header.data_offset, changed.size());
        // A text has a further axis of its characters.
        EXPECT_LE(header.shape.size(), header.logical ? 3 : 2);
        EXPECT_LT(header.data_bytes(), 8u * 99 * 99 * 10);
      } catch (const error& failure) {
        EXPECT_TRUE(failure.code() == errc::corrupt || failure.code() == errc::unsupported)
            << failure.what();
      }
    }
  }
}

}  // namespace
}  // namespace shale
