#include "shale/dimension_names.hpp"

#include "array/test_support.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;
using names = std::vector<std::string>;

class DimensionNames : public test::fresh_container {
 protected:
  DimensionNames() {
    transaction change = file_.begin();
    change.create("dem", {.dtype = dtype::int8, .shape = {2, 3}});
    change.create("one", {.dtype = dtype::int8, .shape = {}});
    change.commit();
  }
};

TEST_F(DimensionNames, AreReadInTheOrderOfTheAxes) {
  transaction change = file_.begin();
  set_dimension_names(change, "dem", {"time", "y"});
  set_dimension_names(change, "dem", {"y", "höhe"});
  set_dimension_names(change, "one", {});
  EXPECT_EQ(dimension_names(*change.find("dem")), (names{"y", "höhe"}));
  change.commit();
  EXPECT_EQ(dimension_names(at("dem")), (names{"y", "höhe"}));
  EXPECT_EQ(dimension_names(at("one")), names{});
  EXPECT_EQ(at("dem").attribute_as<names>("_ARRAY_DIMENSIONS"), (names{"y", "höhe"}));
}

TEST_F(DimensionNames, StayWhenTheArrayGrows) {
  transaction change = file_.begin();
  set_dimension_names(change, "dem", {"y", "y"});
  change.resize("dem", {5, 3});
  change.commit();
  EXPECT_EQ(dimension_names(at("dem")), (names{"y", "y"}));
}

TEST_F(DimensionNames, MayBeMissing) { EXPECT_EQ(dimension_names(at("dem")), std::nullopt); }

TEST_F(DimensionNames, AreOneForEachAxis) {
  transaction change = file_.begin();
  for (const names& wrong : {names{}, names{"y"}, names{"y", "x", "z"}})
    EXPECT_EQ(code_of([&] { set_dimension_names(change, "dem", wrong); }), errc::invalid_argument);
  const auto set = [&] { set_dimension_names(change, "dem", {"y"}); };
  EXPECT_NE(text_of(set).find("'dem'"), std::string::npos);
  EXPECT_NE(text_of(set).find("got 1 names, its rank is 2"), std::string::npos);
  EXPECT_EQ(code_of([&] {
              set_dimension_names(change, "dem", {"y", "\xff"});
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { set_dimension_names(change, "none", {"y"}); }), errc::not_found);
  EXPECT_EQ(dimension_names(*change.find("dem")), std::nullopt);
}

TEST_F(DimensionNames, OfOtherProgramsAreChecked) {
  transaction change = file_.begin();
  change.set_attribute("dem", dimension_names_key, attribute_value(names{"y", "x", "z"}));
  change.set_attribute("one", dimension_names_key, attribute_value("y"));
  change.commit();
  const auto read = [&] { static_cast<void>(dimension_names(at("dem"))); };
  EXPECT_EQ(code_of(read), errc::corrupt);
  for (const char* part : {"'dem'", "_ARRAY_DIMENSIONS", "got 3 names, its rank is 2"})
    EXPECT_NE(text_of(read).find(part), std::string::npos) << part;
  EXPECT_EQ(code_of([&] { static_cast<void>(dimension_names(at("one"))); }),
            errc::invalid_argument);
}

}  // namespace
}  // namespace shale
