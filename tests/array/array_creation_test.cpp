// Tests arrays that are made from values, and specifications that are refused.
#include "array/test_support.hpp"
#include "shale/tile_source.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;

class ArrayCreation : public test::fresh_container {};

TEST_F(ArrayCreation, FromValuesTakesTheirDtypeAndShape) {
  const tensor values = counting({30, 40}, dtype::int16);
  transaction change = file_.begin();
  change.create("dense", values);
  change.create("turned", expr(values).swapaxes(0, 1) * 2);
  const writable_array chunked = change.create(
      "chunked", values, {.kind = array_kind::chunked, .chunk_shape = dims{7, 9}, .fill_value = 3});
  EXPECT_EQ(chunked.chunk_shape(), (dims{7, 9}));
  change.commit();
  EXPECT_TRUE(equal_bits(at("dense").read(), values));
  EXPECT_EQ(at("dense").kind(), array_kind::dense);
  EXPECT_TRUE(equal_bits(at("turned").read(), eval(expr(values).swapaxes(0, 1) * 2)));
  EXPECT_TRUE(equal_bits(at("chunked").read(), values));
  EXPECT_EQ(at("chunked").fill_value(), scalar(3));
}

// A tile source whose elements cannot be loaded.
class lost final : public tile_source {
 public:
  shale::dtype dtype() const noexcept override { return dtype::int8; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims&, const tensor&) const override { throw error(errc::corrupt, "lost"); }

 private:
  dims shape_{10};
};

TEST_F(ArrayCreation, FromValuesThatFailLeavesNoArray) {
  transaction change = file_.begin();
  const expr values(std::make_shared<lost>());
  EXPECT_EQ(code_of([&] { change.create("x", values); }), errc::corrupt);
  EXPECT_FALSE(change.find("x").has_value());
  EXPECT_EQ(code_of([&] { change.create("x", values, {.kind = array_kind::chunked}); }),
            errc::corrupt);
  change.create("x", counting({3}, dtype::int8));
  EXPECT_EQ(code_of([&] { change.create("x", values); }), errc::already_exists);
  change.commit();
  EXPECT_TRUE(equal_bits(at("x").read(), counting({3}, dtype::int8)));
}

// An axis of extent 0 leaves no elements, but strides step over the others.
TEST_F(ArrayCreation, ShapesBeyondTheLimitAreRefusedUnderTheNameThatIsAskedFor) {
  transaction change = file_.begin();
  for (const dims& shape : {dims{1, 0, INT64_MAX}, dims{0, index_t{1} << 58}})
    for (const array_kind kind : {array_kind::dense, array_kind::chunked}) {
      const array_spec spec{.shape = shape, .kind = kind};
      EXPECT_EQ(code_of([&] { change.create("x", spec); }), errc::invalid_argument);
      const std::string text = test::text_of([&] { change.create_or_replace("x", spec); });
      EXPECT_NE(text.find("more elements"), std::string::npos) << text;
      EXPECT_NE(text.find("'x'"), std::string::npos) << text;
      EXPECT_EQ(text.find(".new"), std::string::npos) << text;
    }
  change.create("x", {.shape = {0, index_t{1} << 56}});
  change.commit();
  EXPECT_EQ(at("x").shape(), (dims{0, index_t{1} << 56}));
}

TEST_F(ArrayCreation, DenseRefusesWhatItWouldIgnore) {
  transaction change = file_.begin();
  const auto code_for = [&](const array_spec& spec) {
    return code_of([&] { change.create("x", spec); });
  };
  EXPECT_EQ(code_for({.shape = {3}, .fill_value = 7}), errc::invalid_argument);
  EXPECT_EQ(code_for({.shape = {3}, .fill_value = -0.0}), errc::invalid_argument);
  EXPECT_EQ(code_for({.shape = {3}, .chunk_shape = dims{2}}), errc::invalid_argument);
  EXPECT_EQ(code_for({.shape = {3}, .codec = {.compression = zstd(5)}}), errc::invalid_argument);
  change.create("x", {.shape = {3}, .fill_value = 0.0});
  change.commit();
  EXPECT_TRUE(equal_bits(at("x").read(), tensor::zeros({3}, dtype::float32)));
}

TEST_F(ArrayCreation, OnlyDenseArraysAreMapped) {
  transaction change = file_.begin();
  change.create("chunked", counting({4}, dtype::float32), {.kind = array_kind::chunked});
  change.create("dense", counting({4}, dtype::float32));
  EXPECT_EQ(code_of([&] { change.update("chunked").map(); }), errc::invalid_argument);
  change.commit();
  EXPECT_EQ(code_of([&] { at("chunked").map(); }), errc::invalid_argument);
  EXPECT_TRUE(equal_bits(at("dense").map(), at("chunked").read()));
}

TEST_F(ArrayCreation, AttributesAreFoundByKey) {
  transaction change = file_.begin();
  change.create("x", counting({4}, dtype::int8));
  change.set_attribute("x", "units", "m/s");
  change.set_attribute("x", "", "nameless");
  change.commit();
  EXPECT_EQ(at("x").attribute("units"), "m/s");
  EXPECT_EQ(at("x").attribute(""), "nameless");
  EXPECT_EQ(at("x").attribute("unit"), std::nullopt);
}

}  // namespace
}  // namespace shale
