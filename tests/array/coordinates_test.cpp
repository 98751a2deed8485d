#include "shale/coordinates.hpp"

#include "array/test_support.hpp"
#include "shale/dimension_names.hpp"
#include "shale/logical_arrays.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;
using names = std::vector<std::string>;

class Coordinates : public test::fresh_container {
 protected:
  // A level with an array over time, y and x, whose axes have coordinates, except x.
  Coordinates() {
    transaction change = file_.begin();
    make(change, "run/t2m", {4, 2, 3}, {"time", "y", "x"});
    make(change, "run/time", {4}, {"time"});
    make(change, "run/y", {2});
    make(change, "run/lat", {2, 3}, {"y", "x"});
    make(change, "lat", {2}, {"y"});
    make(change, "x", {3}, {"x"});
    change.commit();
  }

  static void make(transaction& change, const std::string& name, const dims& shape) {
    change.create(name, {.dtype = dtype::float64, .shape = shape});
  }
  static void make(transaction& change, const std::string& name, const dims& shape,
                   const names& axes) {
    make(change, name, shape);
    set_dimension_names(change, name, axes);
  }

  void set_coordinates(const names& wanted, const std::string& name = "run/t2m") {
    transaction change = file_.begin();
    set_coordinate_names(change, name, wanted);
    change.commit();
  }

  array_coordinates found(const std::string& name = "run/t2m") const {
    return find_coordinates(file_.latest(), name);
  }

  // The names of the arrays that hold the coordinates of the axes; "-" for none.
  names variables(const std::string& name = "run/t2m") const {
    names result;
    for (const axis_coordinates& axis : found(name).axes)
      result.push_back(axis.variable ? axis.variable->name() : "-");
    return result;
  }

  names others(const std::string& name = "run/t2m") const {
    names result;
    for (const array& other : found(name).others) result.push_back(other.name());
    return result;
  }
};

TEST_F(Coordinates, OfAnAxisHaveTheNameOfItsDimensionInTheSameLevel) {
  EXPECT_EQ(variables(), (names{"run/time", "run/y", "-"}));
  const array_coordinates all = found();
  EXPECT_EQ(all.axes[2].dimension, "x");  // "x" of the level above holds no coordinates of it
  EXPECT_EQ(all.axes[0].variable->shape(), (dims{4}));
  EXPECT_TRUE(all.others.empty());
}

TEST_F(Coordinates, MayBeTheArrayItself) {
  EXPECT_EQ(variables("run/time"), names{"run/time"});
  EXPECT_EQ(variables("x"), names{"x"});
  EXPECT_EQ(variables("run/y"), names{"-"}) << "its axis has no name";
}

TEST_F(Coordinates, AreNotArraysOfSeveralAxesOrOfAnotherDimension) {
  transaction change = file_.begin();
  make(change, "run/x", {3, 2}, {"x", "bounds"});
  change.commit();
  EXPECT_EQ(variables()[2], "-");
  transaction again = file_.begin();
  again.remove("run/x");
  make(again, "run/x", {9}, {"station"});
  again.commit();
  EXPECT_EQ(variables()[2], "-");
}

TEST_F(Coordinates, AreNotInOtherLevels) {
  transaction change = file_.begin();
  make(change, "d", {3, 2}, {"run/y", ""});
  make(change, "run/deep/y", {2}, {"y"});
  change.commit();
  EXPECT_EQ(variables("d"), (names{"-", "-"}));
  EXPECT_EQ(variables()[1], "run/y");
}

TEST_F(Coordinates, HaveTheExtentOfTheAxis) {
  transaction change = file_.begin();
  change.resize("run/time", {5});
  change.commit();
  const auto find = [&] { static_cast<void>(found()); };
  EXPECT_EQ(code_of(find), errc::corrupt);
  for (const char* part : {"'run/t2m'", "'run/time'", "'time'", "got extent 5, the array has 4"})
    EXPECT_NE(text_of(find).find(part), std::string::npos) << part;
}

TEST_F(Coordinates, OfOtherArraysAreNamed) {
  set_coordinates({"lat", "/lat", "deep/label"});
  EXPECT_EQ(coordinate_names(at("run/t2m")), (names{"lat", "/lat", "deep/label"}));
  EXPECT_EQ(at("run/t2m").attribute("coordinates"), "lat /lat deep/label");
  EXPECT_EQ(code_of([&] { static_cast<void>(found()); }), errc::not_found);
  EXPECT_NE(text_of([&] { static_cast<void>(found()); }).find("'run/deep/label'"),
            std::string::npos);
  transaction change = file_.begin();
  make(change, "run/deep/label", dims{}, names{});
  change.commit();
  EXPECT_EQ(others(), (names{"run/lat", "lat", "run/deep/label"}));
  set_coordinates({});
  EXPECT_TRUE(others().empty());
  EXPECT_TRUE(coordinate_names(at("run/time")).empty());
}

TEST_F(Coordinates, OfOtherProgramsHaveAnyBlanks) {
  transaction change = file_.begin();
  change.set_attribute("run/t2m", "coordinates", "  lat\t/lat\n");
  change.set_attribute("run/y", "coordinates", attribute_value(std::int64_t{3}));
  change.commit();
  EXPECT_EQ(coordinate_names(at("run/t2m")), (names{"lat", "/lat"}));
  EXPECT_EQ(code_of([&] { coordinate_names(at("run/y")); }), errc::invalid_argument);
}

TEST_F(Coordinates, OfOtherArraysHaveAxesOfTheArray) {
  transaction change = file_.begin();
  make(change, "run/wide", {2, 4}, {"y", "x"});
  make(change, "run/other", {2, 3}, {"y", "k"});
  make(change, "run/nameless", {7});
  change.commit();
  for (const auto& [name, problem] : {std::pair{"wide", "'x': got extent 4, the array has 3"},
                                      std::pair{"other", "'k': the array does not have it"}}) {
    set_coordinates({name});
    const auto find = [&] { static_cast<void>(found()); };
    EXPECT_EQ(code_of(find), errc::corrupt) << name;
    EXPECT_NE(text_of(find).find(problem), std::string::npos) << text_of(find);
  }
  set_coordinates({"nameless"});
  EXPECT_EQ(others(), names{"run/nameless"});
}

TEST_F(Coordinates, ThatAreTextsHaveAnAxisOfCharacters) {
  transaction change = file_.begin();
  change.create("run/label", {.dtype = dtype::uint8, .shape = {2, 12}});
  set_dimension_names(change, "run/label", {"y", "characters"});
  set_coordinate_names(change, "run/t2m", {"label"});
  change.commit();
  EXPECT_EQ(code_of([&] { static_cast<void>(found()); }), errc::corrupt);
  transaction again = file_.begin();
  set_logical_dtype(again, "run/label", {.kind = logical_kind::bytes});
  again.commit();
  EXPECT_EQ(others(), names{"run/label"});
}

TEST_F(Coordinates, OfEqualDimensionsAreThoseOfAnAxisThatFits) {
  transaction change = file_.begin();
  make(change, "square", {2, 3}, {"y", "y"});
  make(change, "w", {3}, {"y"});
  set_coordinate_names(change, "square", {"w"});
  change.commit();
  EXPECT_EQ(others("square"), names{"w"});
  EXPECT_EQ(variables("square"), (names{"-", "-"}));
}

TEST_F(Coordinates, NeedNamesOfAxesOnlyForVariables) {
  transaction change = file_.begin();
  make(change, "plain", {3});
  set_coordinate_names(change, "plain", {"x", "lat"});
  change.commit();
  EXPECT_EQ(variables("plain"), names{"-"});
  EXPECT_EQ(others("plain"), (names{"x", "lat"}));
  EXPECT_EQ(code_of([&] { static_cast<void>(found("none")); }), errc::not_found);
}

TEST_F(Coordinates, AreNamedWithoutBlanks) {
  transaction change = file_.begin();
  for (const names& wrong : {names{""}, names{"lat", "a b"}, names{"a\tb"}, names{"\xff"}})
    EXPECT_EQ(code_of([&] { set_coordinate_names(change, "lat", wrong); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { set_coordinate_names(change, "none", {"lat"}); }), errc::not_found);
  EXPECT_TRUE(coordinate_names(*change.find("lat")).empty());
}

TEST_F(Coordinates, HaveUnits) {
  transaction change = file_.begin();
  set_units(change, "run/t2m", "K");
  set_units(change, "run/time", "hours since 2026-01-01");
  set_units(change, "lat", "1");
  change.set_attribute("x", "units", attribute_value(3));
  EXPECT_EQ(code_of([&] { set_units(change, "x", "\xff"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { set_units(change, "none", "K"); }), errc::not_found);
  EXPECT_EQ(units(*change.find("run/t2m")), "K");
  change.commit();
  EXPECT_EQ(units(at("run/t2m")), "K");
  EXPECT_EQ(units(at("run/time")), "hours since 2026-01-01");
  EXPECT_EQ(at("run/time").attribute("units"), "hours since 2026-01-01");
  EXPECT_EQ(units(at("lat")), "1");
  EXPECT_EQ(units(at("run/y")), std::nullopt);
  EXPECT_EQ(code_of([&] { static_cast<void>(units(at("x"))); }), errc::invalid_argument);
}

}  // namespace
}  // namespace shale
