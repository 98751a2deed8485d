// Tests attributes with a kind on arrays: what transactions set, snapshots read, in the same kinds.
#include "shale/attribute_value.hpp"

#include "array/test_support.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::text_of;

using text_list = std::vector<std::string>;

class Attributes : public test::fresh_container {
 protected:
  Attributes() {
    transaction change = file_.begin();
    change.create("x", counting({4}, dtype::int8));
    change.set_attribute("x", "count", attribute_value(12));
    change.set_attribute("x", "scale", attribute_value(0.5));
    change.set_attribute("x", "units", attribute_value("m/s"));
    change.set_attribute("x", "axes", attribute_value(text_list{"time", "y"}));
    change.set_attribute("x", "old", "3");
    change.commit();
  }
};

TEST_F(Attributes, KeepTheirKinds) {
  const array x = at("x");
  EXPECT_EQ(x.attribute_as<std::int64_t>("count"), 12);
  EXPECT_EQ(x.attribute_as<double>("count"), 12.0);
  EXPECT_EQ(x.attribute_as<double>("scale"), 0.5);
  EXPECT_EQ(x.attribute_as<std::string>("units"), "m/s");
  EXPECT_EQ(x.attribute_as<text_list>("axes"), (text_list{"time", "y"}));
  EXPECT_EQ(x.attribute_as<std::string>("old"), "3");
  EXPECT_EQ(x.attribute_as<bool>("none"), std::nullopt);
  EXPECT_EQ(x.typed_attribute("scale"), attribute_value(0.5));
  EXPECT_EQ(x.typed_attribute("none"), std::nullopt);
}

TEST_F(Attributes, AreListedWithTheirStoredBytes) {
  std::vector<std::string> keys;
  for (const auto& [key, stored] : at("x").attributes()) {
    keys.push_back(key);
    EXPECT_EQ(attribute_value::of_stored(stored), at("x").typed_attribute(key)) << key;
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"axes", "count", "old", "scale", "units"}));
  EXPECT_EQ(at("x").attribute("units"), "m/s");
}

// Programs that know no kinds copy the stored bytes.
TEST_F(Attributes, KeepTheirKindsWhenTheirBytesAreCopied) {
  transaction change = file_.begin();
  change.create("y", counting({4}, dtype::int8));
  for (const auto& [key, stored] : at("x").attributes()) change.set_attribute("y", key, stored);
  change.commit();
  EXPECT_EQ(at("y").attribute_as<std::int64_t>("count"), 12);
  EXPECT_EQ(at("y").attributes(), at("x").attributes());
}

TEST_F(Attributes, AreReplacedByOnesOfAnotherKind) {
  transaction change = file_.begin();
  change.set_attribute("x", "count", attribute_value("twelve"));
  EXPECT_EQ(change.find("x")->attribute_as<std::string>("count"), "twelve");
  change.remove_attribute("x", "scale");
  change.commit();
  EXPECT_EQ(at("x").attribute_as<std::string>("count"), "twelve");
  EXPECT_EQ(at("x").attribute_as<double>("scale"), std::nullopt);
}

TEST_F(Attributes, OfAnotherKindAreRefusedWithArrayAttributeAndKinds) {
  const auto read = [&] { static_cast<void>(at("x").attribute_as<double>("units")); };
  EXPECT_EQ(code_of(read), errc::invalid_argument);
  const std::string text = text_of(read);
  for (const char* part : {"'units'", "'x'", "arrays.shale", "wanted double, got text"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST_F(Attributes, ThatAreDamagedNameArrayAndAttribute) {
  transaction change = file_.begin();
  change.set_attribute("x", "count", std::string("\xffSHATT\1\2abc", 11));
  change.set_attribute("x", "later", std::string("\xffSHATT\1\xf0", 8));
  change.commit();
  const auto read = [&] { static_cast<void>(at("x").attribute_as<std::int64_t>("count")); };
  EXPECT_EQ(code_of(read), errc::corrupt);
  EXPECT_NE(text_of(read).find("read attribute 'count' of 'x' in"), std::string::npos);
  EXPECT_EQ(code_of([&] { static_cast<void>(at("x").typed_attribute("later")); }),
            errc::unsupported);
  // The others can be read, and all bytes are listed.
  EXPECT_EQ(at("x").attribute_as<double>("scale"), 0.5);
  EXPECT_EQ(at("x").attributes().size(), 6u);
}

TEST_F(Attributes, AreSetOnArraysThatExist) {
  transaction change = file_.begin();
  EXPECT_EQ(code_of([&] { change.set_attribute("z", "k", attribute_value(1)); }), errc::not_found);
  change.commit();
  EXPECT_EQ(code_of([&] { change.set_attribute("x", "k", attribute_value(1)); }),
            errc::invalid_argument);
}

}  // namespace
}  // namespace shale
