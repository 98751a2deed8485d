#include "shale/logical_arrays.hpp"

#include "array/test_support.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;

constexpr logical_dtype hours{.kind = logical_kind::datetime, .unit = time_unit::hour};
constexpr logical_dtype characters{.kind = logical_kind::text};

class LogicalArrays : public test::fresh_container {
 protected:
  LogicalArrays() {
    transaction change = file_.begin();
    change.create("when", {.dtype = dtype::int64, .shape = {4}});
    change.create("names", {.dtype = dtype::uint32, .shape = {3, 5}, .kind = array_kind::chunked});
    change.create("plain", {.dtype = dtype::float64, .shape = {4}});
    change.create("one", {.dtype = dtype::uint32, .shape = {}});
    set_logical_dtype(change, "when", hours);
    set_logical_dtype(change, "names", characters);
    change.commit();
  }
};

TEST_F(LogicalArrays, SayWhatTheirIntegersStandFor) {
  EXPECT_EQ(logical_dtype_of(at("when")), hours);
  EXPECT_EQ(logical_dtype_of(at("names")), characters);
  EXPECT_EQ(logical_dtype_of(at("plain")), std::nullopt);
  EXPECT_EQ(at("when").dtype(), dtype::int64);
  // Every program shows the attribute as a text.
  EXPECT_EQ(at("when").attribute("_LOGICAL_DTYPE"), "datetime64[h]");
  EXPECT_EQ(at("names").attribute("_LOGICAL_DTYPE"), "U");
}

TEST_F(LogicalArrays, KeepItThroughChanges) {
  transaction change = file_.begin();
  change.rename("when", "then");
  change.append("then", expr(tensor::zeros({2}, dtype::int64)));
  change.resize("names", {9, 7});
  change.update("then").write(expr(3));
  EXPECT_EQ(logical_dtype_of(*change.find("then")), hours);
  change.commit();
  EXPECT_EQ(logical_dtype_of(at("then")), hours);
  EXPECT_EQ(logical_dtype_of(at("names")), characters);
  EXPECT_EQ(name(characters, at("names").shape()), "U7");
}

TEST_F(LogicalArrays, HaveTheDtypeOfTheirIntegers) {
  transaction change = file_.begin();
  const auto set = [&] { set_logical_dtype(change, "plain", hours); };
  EXPECT_EQ(code_of(set), errc::invalid_argument);
  for (const char* part : {"'plain'", "got float64, datetime64[h] is stored as int64"})
    EXPECT_NE(text_of(set).find(part), std::string::npos) << text_of(set);
  EXPECT_EQ(code_of([&] { set_logical_dtype(change, "one", characters); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { set_logical_dtype(change, "when", characters); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { set_logical_dtype(change, "none", hours); }), errc::not_found);
  EXPECT_EQ(
      code_of([&] { set_logical_dtype(change, "when", {.kind = logical_kind::text, .step = 2}); }),
      errc::invalid_argument);
  EXPECT_EQ(logical_dtype_of(*change.find("plain")), std::nullopt);
}

TEST_F(LogicalArrays, OfOtherProgramsAreChecked) {
  transaction change = file_.begin();
  change.set_attribute("plain", logical_dtype_key, "datetime64[ns]");
  change.set_attribute("one", logical_dtype_key, "U");
  change.set_attribute("when", logical_dtype_key, "period[Q]");
  change.set_attribute("names", logical_dtype_key, attribute_value(3));
  change.commit();
  const auto code = [&](const char* name) {
    return code_of([&] { static_cast<void>(logical_dtype_of(at(name))); });
  };
  EXPECT_EQ(code("plain"), errc::corrupt);
  EXPECT_EQ(code("one"), errc::corrupt);
  EXPECT_EQ(code("when"), errc::unsupported);
  EXPECT_EQ(code("names"), errc::invalid_argument);
  const std::string text = text_of([&] { static_cast<void>(logical_dtype_of(at("when"))); });
  for (const char* part : {"'when'", "'period[Q]'", "can be read as int64"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_TRUE(equal_bits(at("when").read(), tensor::zeros({4}, dtype::int64)));
}

}  // namespace
}  // namespace shale
