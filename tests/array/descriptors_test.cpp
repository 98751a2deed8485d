// Tests that the number of descriptors does not grow with the number of arrays and held
// generations.
#include <gtest/gtest.h>

#include <set>

#include "array/test_support.hpp"
#include "format/container/container_file.hpp"
#include "support/instrumented.hpp"

namespace shale {
namespace {

using test::array_peer;

constexpr const char* few = "256";  // the limit of a process

class Descriptors : public test::fresh_container {
 protected:
  // The generations that readers hold.
  std::set<std::uint64_t> pinned() const {
    std::set<std::uint64_t> all;
    const auto look =
        format::container_file::open(format::posix_files(), path_, format::open_access::read);
    for (const auto& range : look.pinned())
      for (std::uint64_t generation = range.first; generation <= range.last; ++generation)
        all.insert(generation);
    return all;
  }
};

TEST_F(Descriptors, OfATransactionAreAsManyForOneArrayAsForAHundredThousand) {
  const int count = test::instrumented ? 2'000 : 100'000;
  array_peer maker({"many", path_, std::to_string(count), few});
  ASSERT_EQ(maker.read_line(), "2");
  ASSERT_EQ(maker.wait(), 0);
  const snapshot made = file_.latest();
  EXPECT_EQ(made.names().size(), static_cast<std::size_t>(count));
  for (int i = 0; i < count; i += 499) {
    const tensor read = made.at("a" + std::to_string(i)).read();
    for (const std::int32_t value : read.elements<const std::int32_t>())
      ASSERT_EQ(value, i % 100 < 2 ? i : 0);
  }
}

TEST_F(Descriptors, AreNotNeededForMappedArrays) {
  // Each array needs two mappings. By default a process can have 65,530.
  const int count = test::instrumented ? 500 : 10'000;
  array_peer mapper({"map", path_, std::to_string(count), few});
  EXPECT_EQ(mapper.read_line(), std::to_string(2 * count));
  EXPECT_EQ(mapper.wait(), 0);
}

TEST_F(Descriptors, OfPinnedGenerationsAreBounded) {
  constexpr int count = test::repeats(1014);
  array_peer reader({"snapshots", path_, std::to_string(count), "64"});
  ASSERT_EQ(reader.read_line(), std::to_string(count));
  std::set<std::uint64_t> expected;
  for (std::uint64_t generation = 2; generation < count + 2; ++generation)
    expected.insert(generation);
  EXPECT_EQ(pinned(), expected);
  reader.write_line("let go");
  ASSERT_EQ(reader.read_line(), std::to_string((count + 6) / 7));
  // Writers can reuse released generations, even if several pins share a description.
  std::erase_if(expected, [](std::uint64_t generation) { return (generation - 2) % 7 != 0; });
  EXPECT_EQ(pinned(), expected);
  reader.write_line("let go");
  ASSERT_EQ(reader.read_line(), "none");
  EXPECT_TRUE(pinned().empty());
  reader.write_line("end");
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(test::findings_of(file_), "");
}

}  // namespace
}  // namespace shale
