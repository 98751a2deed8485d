// Tests arrays that take the place of others in one call.
#include "array/test_support.hpp"
#include "shale/tile_source.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::text_of;

class ReplacedArrays : public test::fresh_container {
 protected:
  ReplacedArrays() {
    transaction change = file_.begin();
    change.create("dense", old_);
    change.create("chunked", old_, {.kind = array_kind::chunked, .chunk_shape = dims{16}});
    for (const char* name : {"dense", "chunked"}) change.set_attribute(name, "unit", "m");
    change.commit();
  }

  std::vector<std::string> names() const { return file_.latest().names(); }

  const tensor old_ = counting({100}, dtype::int32);
  const tensor new_ = counting({7, 30}, dtype::int16);
  const array_form chunks_ = {.kind = array_kind::chunked, .chunk_shape = dims{3, 8}};
};

TEST_F(ReplacedArrays, AreNewInEveryRespect) {
  for (const char* name : {"dense", "chunked"})
    for (const array_form& form : {array_form{}, chunks_}) {
      SCOPED_TRACE(name);
      transaction change = file_.begin();
      const writable_array made = change.create_or_replace(name, new_, form);
      EXPECT_EQ(made.name(), name);
      const std::uint64_t generation = change.commit();
      const array stored = at(name);
      EXPECT_TRUE(equal_bits(stored.read(), new_));
      EXPECT_EQ(stored.kind(), form.kind);
      EXPECT_EQ(stored.modified(), generation);
      EXPECT_TRUE(stored.attributes().empty());
      EXPECT_EQ(names(), (std::vector<std::string>{"chunked", "dense"}));
    }
  EXPECT_EQ(test::findings_of(file_), "");
}

TEST_F(ReplacedArrays, NeedNotExist) {
  transaction change = file_.begin();
  change.create_or_replace("made", new_);
  change.create_or_replace("empty", {.dtype = dtype::int8, .shape = {3}});
  change.create_or_replace("empty", {.dtype = dtype::int16, .shape = {4}});
  change.commit();
  EXPECT_TRUE(equal_bits(at("made").read(), new_));
  EXPECT_TRUE(equal_bits(at("empty").read(), tensor::zeros({4}, dtype::int16)));
  EXPECT_EQ(names(), (std::vector<std::string>{"chunked", "dense", "empty", "made"}));
  EXPECT_EQ(test::findings_of(file_), "");
}

// The transaction has not changed the array, or has changed it as a whole, or in part.
TEST_F(ReplacedArrays, AreReadByTheirSuccessors) {
  const expr doubled = expr(old_) * 2;
  for (const char* name : {"dense", "chunked"})
    for (const int updated : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << name << updated);
      transaction change = file_.begin();
      change.create_or_replace(name, old_);
      if (updated == 0) {
        change.commit();
        change = file_.begin();
      }
      if (updated == 2) change.update(name).write({{10}, {20}}, old_.narrow(0, 10, 20));
      change.create_or_replace(name, expr(*change.find(name)) * 2);
      change.commit();
      EXPECT_TRUE(equal_bits(at(name).read(), eval(doubled)));
    }
  EXPECT_EQ(test::findings_of(file_), "");
}

TEST_F(ReplacedArrays, CanBeChangedFurther) {
  transaction change = file_.begin();
  const writable_array made = change.create_or_replace("dense", new_, chunks_);
  made.write({{0, 0}, {1, 30}}, expr(5));
  change.set_attribute("dense", "unit", "km");
  change.append("dense", new_);
  change.rename("dense", "moved");
  change.commit();
  const tensor stored = at("moved").read();
  EXPECT_EQ(stored.shape(), (dims{14, 30}));
  EXPECT_EQ(stored.at({0, 29}), scalar(5));
  EXPECT_TRUE(equal_bits(stored.narrow(0, 1, 6).clone(), new_.narrow(0, 1, 6).clone()));
  EXPECT_EQ(at("moved").attribute("unit"), "km");
  EXPECT_EQ(test::findings_of(file_), "");
}

TEST_F(ReplacedArrays, EndTheHandlesToThem) {
  transaction change = file_.begin();
  const writable_array before = change.update("dense");
  const tensor mapped = before.map();
  change.create_or_replace("dense", new_);
  EXPECT_EQ(code_of([&] { before.write(expr(1)); }), errc::not_found);
  EXPECT_TRUE(mapped.storage().failed());
  change.commit();
  EXPECT_TRUE(equal_bits(at("dense").read(), new_));
}

// A tile source whose elements cannot be loaded, or one that throws what is no error of the
// library.
class lost final : public tile_source {
 public:
  explicit lost(bool is_strange) : is_strange_(is_strange) {}
  shale::dtype dtype() const noexcept override { return dtype::int8; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims&, const tensor&) const override {
    if (is_strange_) throw 7;
    throw error(errc::corrupt, "lost");
  }

 private:
  bool is_strange_;
  dims shape_{10};
};

TEST_F(ReplacedArrays, StayIfTheirSuccessorsFail) {
  transaction change = file_.begin();
  for (const char* name : {"dense", "chunked", "none"}) {
    SCOPED_TRACE(name);
    const auto replace = [&] {
      change.create_or_replace(name, expr(std::make_shared<lost>(false)));
    };
    EXPECT_EQ(code_of(replace), errc::corrupt);
    EXPECT_EQ(text_of(replace).find(".new"), std::string::npos) << text_of(replace);
    EXPECT_NE(text_of(replace).find("'" + std::string(name) + "'"), std::string::npos);
    EXPECT_THROW(change.create_or_replace(name, expr(std::make_shared<lost>(true))), int);
    EXPECT_EQ(code_of([&] { change.create_or_replace(name, {.shape = {-1}}); }),
              errc::invalid_argument);
    EXPECT_EQ(change.names(), (std::vector<std::string>{"chunked", "dense"}));
  }
  change.commit();
  for (const char* name : {"dense", "chunked"}) {
    EXPECT_TRUE(equal_bits(at(name).read(), old_)) << name;
    EXPECT_EQ(at(name).attribute("unit"), "m") << name;
  }
  EXPECT_EQ(test::findings_of(file_), "");
}

TEST_F(ReplacedArrays, AreNotThoseWithTheNameOfTheNewOne) {
  transaction change = file_.begin();
  change.create(".new-1", old_);
  change.create_or_replace("dense", new_);
  EXPECT_EQ(code_of([&] { change.create_or_replace("a//b", new_); }), errc::invalid_argument);
  change.commit();
  EXPECT_TRUE(equal_bits(at(".new-1").read(), old_));
  EXPECT_TRUE(equal_bits(at("dense").read(), new_));
  EXPECT_EQ(names(), (std::vector<std::string>{".new-1", "chunked", "dense"}));
}

TEST_F(ReplacedArrays, MayHaveANameLikeThatOfANewOne) {
  transaction change = file_.begin();
  for (const char* name : {".new-1", ".new-2/x", ".new-3"})
    for (const tensor& values : {old_, new_}) {
      change.create_or_replace(name, values);
      EXPECT_TRUE(equal_bits(change.find(name)->read(), values)) << name;
    }
  const std::string text =
      text_of([&] { change.create_or_replace("x.new-4", expr(std::make_shared<lost>(false))); });
  EXPECT_NE(text.find("replace 'x.new-4' in "), std::string::npos) << text;
  EXPECT_NE(text.find("write 'x.new-4' in "), std::string::npos) << text;
  change.create_or_replace("dense", new_);
  change.commit();
  EXPECT_EQ(names(),
            (std::vector<std::string>{".new-1", ".new-2/x", ".new-3", "chunked", "dense"}));
  for (const char* name : {".new-1", ".new-2/x", ".new-3", "dense"})
    EXPECT_TRUE(equal_bits(at(name).read(), new_)) << name;
  EXPECT_EQ(test::findings_of(file_), "");
}

TEST_F(ReplacedArrays, ComeBackIfNothingIsCommitted) {
  {
    transaction change = file_.begin();
    change.create_or_replace("dense", new_);
  }
  EXPECT_TRUE(equal_bits(at("dense").read(), old_));
}

}  // namespace
}  // namespace shale
