#include "array/specification/new_names.hpp"

#include "array/test_support.hpp"
#include "format/container/container_file.hpp"
#include "support/failures.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;

// Names that the format allows, but that no new array can get.
const std::vector<std::string> odd_names = {"/",  "/a",   "a/",  "a//b", "//",    ".",
                                            "..", "a/..", "./a", "...",  "a/./b", "a//"};

class OddNames : public test::fresh_container {};

std::string problem_of(std::string_view name) {
  return text_of([&] { arrays::require_new_name(name); });
}

TEST(NewNames, AreLevelsThatHaveNames) {
  for (const char* name : {"a", "a/b", "raw/2026/dem", ".a", "a.", "a..b", "x[0]", " a b ", "höhe",
                           "a\\b", "-", "a:b", "*"})
    EXPECT_NO_THROW(arrays::require_new_name(name)) << name;
  for (const std::string& name : odd_names)
    EXPECT_EQ(code_of([&] { arrays::require_new_name(name); }), errc::invalid_argument) << name;
}

TEST(NewNames, AreRefusedWithThePartAndTheReason) {
  EXPECT_NE(problem_of("/a").find("begins with '/'"), std::string::npos);
  EXPECT_NE(problem_of("a/").find("ends with '/'"), std::string::npos);
  EXPECT_NE(problem_of("ab//c").find("empty, byte 3"), std::string::npos);
  EXPECT_NE(problem_of("ab/../c").find("level '..' at byte 3"), std::string::npos);
  EXPECT_NE(problem_of("").find("1 to 1024 bytes"), std::string::npos);
  EXPECT_NE(problem_of("a\x07").find("control"), std::string::npos);
  EXPECT_NE(problem_of("a\xff").find("UTF-8"), std::string::npos);
}

// Makes arrays with these names like another program: the format allows more names than containers
// give.
TEST_F(OddNames, StayReadableRenamableAndRemovable) {
  for (const std::string& name : odd_names) {
    write_new("plain", {.dtype = dtype::int32, .shape = {3}}, arange(0, 3, 1, dtype::int32));
    {
      auto raw =
          format::container_file::open(format::posix_files(), path_, format::open_access::write);
      auto change = raw.begin(std::chrono::milliseconds(0));
      change.rename("plain", name);
      change.commit();
    }
    EXPECT_EQ(file_.latest().names(), std::vector<std::string>{name});
    EXPECT_EQ(at(name).read().at({2}), scalar(2)) << name;
    transaction change = file_.begin();
    change.set_attribute(name, "unit", "m");
    change.update(name).write(expr(7));
    EXPECT_EQ(code_of([&] { change.rename(name, "a//b"); }), errc::invalid_argument);
    change.commit();
    EXPECT_EQ(at(name).read().at({2}), scalar(7)) << name;
    {
      transaction given_up = file_.begin();
      given_up.rename(name, "decent");
      EXPECT_EQ(given_up.find("decent")->attributes().size(), 1u);
    }
    transaction last = file_.begin();
    last.remove(name);
    last.commit();
  }
  EXPECT_EQ(test::findings_of(file_), "");
}

TEST_F(OddNames, AreGivenToNoArray) {
  transaction change = file_.begin();
  change.create("a", {.shape = {1}});
  for (const std::string& name : odd_names) {
    EXPECT_EQ(code_of([&] { change.create(name, {.shape = {1}}); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { change.rename("a", name); }), errc::invalid_argument);
  }
  change.commit();
  EXPECT_EQ(file_.latest().names(), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace shale
