#include "notation/address.hpp"
#include "notation/shape_text.hpp"

#include <gtest/gtest.h>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

std::string message_of(std::string_view text) {
  try {
    parse_address(text);
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    return failure.what();
  }
  ADD_FAILURE() << text << " was accepted";
  return {};
}

// The column, from 0, that the caret of the message stands in.
std::ptrdiff_t caret_of(const std::string& message) {
  const std::size_t caret = message.find('^');
  if (caret == std::string::npos) return -1;
  const std::size_t line = message.rfind('\n', caret) + 1;
  return static_cast<std::ptrdiff_t>(caret - line) - 2;  // details are indented by two
}

TEST(Address, NamesAFile) {
  const address found = parse_address("data/survey.shale");
  EXPECT_EQ(found.file, "data/survey.shale");
  EXPECT_EQ(found.format, file_format::shale);
  EXPECT_TRUE(found.array.empty());
  EXPECT_FALSE(found.index);
}

TEST(Address, NamesAnArray) {
  const address found = parse_address("survey.shale:raw/dem");
  EXPECT_EQ(found.file, "survey.shale");
  EXPECT_EQ(found.array, "raw/dem");
  EXPECT_EQ(found.label(), "survey.shale:raw/dem");
}

TEST(Address, TakesNumPysSlices) {
  const address found = parse_address("a.shale:x[2:5, ::-1, ..., None, -3, 1:, :7:2]");
  ASSERT_TRUE(found.index);
  const std::vector<index_entry>& entries = *found.index;
  ASSERT_EQ(entries.size(), 7u);
  using kind = index_entry_kind;
  const kind kinds[] = {kind::range,    kind::range, kind::rest, kind::new_axis,
                        kind::position, kind::range, kind::range};
  for (std::size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].kind(), kinds[i]) << i;
  EXPECT_EQ(entries[0].slice().start, 2);
  EXPECT_EQ(entries[0].slice().stop, 5);
  EXPECT_EQ(entries[0].slice().step, 1);
  EXPECT_EQ(entries[1].slice().start, std::nullopt);
  EXPECT_EQ(entries[1].slice().stop, std::nullopt);
  EXPECT_EQ(entries[1].slice().step, -1);
  EXPECT_EQ(entries[4].position(), -3);
  EXPECT_EQ(entries[5].slice().start, 1);
  EXPECT_EQ(entries[5].slice().stop, std::nullopt);
  EXPECT_EQ(entries[6].slice().start, std::nullopt);
  EXPECT_EQ(entries[6].slice().stop, 7);
  EXPECT_EQ(entries[6].slice().step, 2);
}

TEST(Address, DoubledBracketsBelongToTheName) {
  const address found = parse_address("a.shale:rate[[Hz][1:3]");
  EXPECT_EQ(found.array, "rate[Hz]");
  ASSERT_TRUE(found.index);
  EXPECT_EQ(found.index->size(), 1u);
  EXPECT_EQ(found.label(), "a.shale:rate[[Hz]");
  EXPECT_EQ(parse_whole_address("a.npz:[[[[").array, "[[");
  EXPECT_FALSE(parse_address("a.shale:x]").index);
  const address both = parse_address("a.shale:x[[[0]");
  EXPECT_EQ(both.array, "x[");
  EXPECT_EQ(both.index->front().position(), 0);
}

TEST(Address, LabelsAreAddressesOfTheSame) {
  for (const std::string name : {"dem", "x[0]", "[", "[[a]]", "a:b", "a[", "/a", "höhe [m]"}) {
    const address again = parse_address(label("data/a.shale", name));
    EXPECT_EQ(again.file, "data/a.shale");
    EXPECT_EQ(again.array, name);
    EXPECT_FALSE(again.index) << name;
  }
}

TEST(Address, SlicesThatAreNoneExplainHowNamesAreWritten) {
  for (const char* text : {"a.shale:rate[Hz]", "a.shale:rate[None2]"})
    EXPECT_NE(message_of(text).find("is written '[['"), std::string::npos) << text;
  EXPECT_EQ(message_of("a.npy[Hz]").find("[['"), std::string::npos);
}

TEST(Address, TakesATrailingCommaAndNegativeSteps) {
  const address found = parse_address("a.npy[ -1 : : -2 , ]");
  ASSERT_EQ(found.index->size(), 1u);
  EXPECT_EQ(found.index->front().slice().start, -1);
  EXPECT_EQ(found.index->front().slice().step, -2);
}

TEST(Address, FileEndsAtAKnownSuffixOnly) {
  EXPECT_EQ(parse_address("scan[1].npy").file, "scan[1].npy");
  EXPECT_EQ(parse_address("scan[1].npy[0]").file, "scan[1].npy");
  EXPECT_EQ(parse_address("old.npz.d/x.npz:y").file, "old.npz.d/x.npz");
  EXPECT_EQ(parse_address("12:30/x.npz:y").file, "12:30/x.npz");
  EXPECT_EQ(parse_address("a.shale.npy").format, file_format::npy);
  EXPECT_EQ(parse_address("v1.2.shale:a").array, "a");
}

TEST(Address, RawFilesSayHowToReadThem) {
  const address bare = parse_address("x.raw");
  EXPECT_FALSE(bare.raw_dtype);
  const address typed = parse_address("x.bin:uint16");
  EXPECT_EQ(typed.raw_dtype, dtype::uint16);
  EXPECT_FALSE(typed.raw_shape);
  const address shaped = parse_address("x.raw:int16(344,403)[0]");
  EXPECT_EQ(shaped.raw_dtype, dtype::int16);
  EXPECT_EQ(shaped.raw_shape, (dims{344, 403}));
  EXPECT_EQ(shaped.index->size(), 1u);
}

TEST(Address, FilesOfTorchHoldNamedTensorsOrOne) {
  const address named = parse_address("net.t7:weights/1[0]");
  EXPECT_EQ(named.format, file_format::t7);
  EXPECT_EQ(named.array, "weights/1");
  EXPECT_EQ(named.index->size(), 1u);
  const address one = parse_address("dem.t7[2:5]");
  EXPECT_TRUE(one.array.empty());
  EXPECT_EQ(one.index->size(), 1u);
  EXPECT_EQ(one.label(), "dem.t7");
}

TEST(Address, ErrorsPointAtThePlace) {
  EXPECT_EQ(caret_of(message_of("a.shale:x[1:2:0]")), 14);
  EXPECT_EQ(caret_of(message_of("a.shale:x[1, b]")), 13);
  EXPECT_EQ(caret_of(message_of("a.shale:x[..., ...]")), 15);
  EXPECT_EQ(caret_of(message_of("a.shale:x[1]z")), 12);
  EXPECT_EQ(caret_of(message_of("a.shale:x[1")), 11);
  EXPECT_EQ(caret_of(message_of("a.shale:x[]")), 10);
  EXPECT_EQ(caret_of(message_of("a.shale:")), 8);
  EXPECT_EQ(caret_of(message_of("a.shale[1]")), 7);
  EXPECT_EQ(caret_of(message_of("a.npy:x")), 5);
  EXPECT_EQ(caret_of(message_of("a.raw:int17")), 6);
  EXPECT_EQ(caret_of(message_of("a.raw:int16(3,-1)")), 14);
  EXPECT_EQ(caret_of(message_of("a.npy[99999999999999999999]")), 6);
}

TEST(Address, CaretCountsCodePoints) {
  const std::string message = message_of("höhe.shale:x[a]");
  const std::size_t line = message.find("höhe");
  ASSERT_NE(line, std::string::npos);
  EXPECT_EQ(caret_of(message), 13);
}

TEST(Address, UnknownSuffixNamesTheKnownOnes) {
  const std::string message = message_of("survey.h5:dem");
  EXPECT_NE(message.find(".npz"), std::string::npos);
  EXPECT_NE(message.find("survey.h5:dem"), std::string::npos);
}

TEST(Address, WholeArraysTakeNoSlice) {
  EXPECT_EQ(parse_whole_address("a.shale:x").array, "x");
  EXPECT_THROW(parse_whole_address("a.shale:x[0]"), error);
}

TEST(Shape, ReadsEveryUsualForm) {
  EXPECT_EQ(parse_shape("344,403"), (dims{344, 403}));
  EXPECT_EQ(parse_shape("(344, 403)"), (dims{344, 403}));
  EXPECT_EQ(parse_shape("[344,403,]"), (dims{344, 403}));
  EXPECT_EQ(parse_shape("344x403x2"), (dims{344, 403, 2}));
  EXPECT_EQ(parse_shape("7"), (dims{7}));
  EXPECT_EQ(parse_shape("()"), dims());
  EXPECT_EQ(parse_shape("0,3"), (dims{0, 3}));
}

TEST(Shape, RefusesWhatIsNone) {
  for (const char* text : {"", "a", "1,,2", "-1", "(1,2", "1)", "1.5", "2 3"})
    EXPECT_THROW(parse_shape(text), error) << text;
  std::string many = "1";
  for (int i = 0; i < 32; ++i) many += ",1";
  EXPECT_THROW(parse_shape(many), error);
}

}  // namespace
}  // namespace shale::tools
