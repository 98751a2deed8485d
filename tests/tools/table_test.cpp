#include "table.hpp"

#include <gtest/gtest.h>

namespace shale::tools {
namespace {

TEST(Table, AlignsColumnsAndTrimsLines) {
  table list({{"name"}, {"bytes", alignment::right}, {"note"}});
  list.add({"a", "1000", ""});
  list.add({"höhe", "5", "x"});
  EXPECT_EQ(list.to_string(),
            "name  bytes  note\n"
            "a      1000\n"
            "höhe      5  x\n");
}

TEST(Table, MissingCellsAreEmpty) {
  table list({{"a"}, {"b"}});
  EXPECT_TRUE(list.empty());
  list.add({"1"});
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(list.to_string(), "a  b\n1\n");
}

TEST(Facts, ValuesStandInOneColumn) {
  facts list;
  list.add("dtype", "float32");
  list.add("chunk shape", "128 x 64");
  EXPECT_EQ(list.to_string(),
            "dtype        float32\n"
            "chunk shape  128 x 64\n");
}

}  // namespace
}  // namespace shale::tools
