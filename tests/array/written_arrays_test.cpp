// Tests which arrays a transaction writes, by their present names.
#include "array/transaction/state/written_arrays.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "array/specification/specification.hpp"
#include "shale/storage.hpp"
#include "support/failures.hpp"

namespace shale::arrays {
namespace {

using test::code_of;

std::shared_ptr<written_array> array_named(const std::string& name) {
  return std::make_shared<written_array>(make_record(name, {.dtype = dtype::int8, .shape = {2}}));
}

std::vector<std::string> names_of(const written_arrays& written) {
  std::vector<std::string> names;
  for (const auto& entry : written) names.push_back(entry.first);
  return names;
}

TEST(WrittenArrays, AreFoundByTheirPresentNames) {
  std::mt19937 random(1);
  const std::vector<std::string> names{"a", "a/b", "b", "c"};
  written_arrays written;
  std::map<std::string, std::shared_ptr<written_array>> wanted;
  for (int step = 0; step < 2000; ++step) {
    const std::string& name = names[random() % names.size()];
    const std::string& other = names[random() % names.size()];
    switch (random() % 3) {
      case 0:
        wanted[name] = array_named(name);
        written.put(wanted[name]);
        break;
      case 1:
        wanted.erase(name);
        written.erase(name);
        break;
      default:
        if (wanted.contains(other)) break;  // the catalog has each name once
        written.rename(name, other, other);
        if (const auto renamed = wanted.find(name); renamed != wanted.end()) {
          wanted[other] = renamed->second;
          wanted.erase(renamed);
        }
    }
    std::vector<std::string> present;
    for (const auto& [known_as, array] : wanted) {
      present.push_back(known_as);
      ASSERT_EQ(written.find(known_as), array) << step;
      ASSERT_EQ(array->name, known_as) << step;
    }
    ASSERT_EQ(names_of(written), present) << step;
    for (const std::string& each : names)
      ASSERT_EQ(written.find(each) == nullptr, !wanted.contains(each)) << step;
  }
}

TEST(WrittenArrays, GiveTheirPlacesToOthers) {
  written_arrays written;
  written.put(array_named("a"));
  written.put(array_named("b"));
  const auto other = array_named("a");
  written.replace("a", other);
  EXPECT_EQ(written.find("a"), other);
  EXPECT_EQ(names_of(written), (std::vector<std::string>{"a", "b"}));
  written.clear();
  EXPECT_TRUE(names_of(written).empty());
}

TEST(WrittenArrays, KnowWhoElseHoldsTheirMappings) {
  written_arrays written;
  for (const char* name : {"a", "b", "c"}) written.put(array_named(name));
  EXPECT_FALSE(written.any_held_by_others());
  written.find("c")->bytes = storage::allocate(16);
  EXPECT_FALSE(written.any_held_by_others());
  const storage held = written.find("c")->bytes;
  EXPECT_TRUE(written.any_held_by_others());
}

// change.7
TEST(WrittenArrays, KeepTheirNamesWhileTheirShapesChange) {
  written_arrays written;
  written.begin_shape_change("a");
  EXPECT_EQ(code_of([&] { written.require_shape_at_rest("a"); }), errc::busy);
  EXPECT_NO_THROW(written.require_shape_at_rest("b"));
  written.end_shape_change("a");
  EXPECT_NO_THROW(written.require_shape_at_rest("a"));
}

}  // namespace
}  // namespace shale::arrays
