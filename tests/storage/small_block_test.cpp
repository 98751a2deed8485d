#include "storage/pool/heap/small_block.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace shale::detail {
namespace {

// The sanitizers and malloc's own checks see a block that overlaps another one.
TEST(SmallBlock, IsAlignedAndItsOwn) {
  struct taken {
    unsigned char* address;
    std::size_t bytes;
  };
  std::vector<taken> blocks;
  for (std::size_t alignment = 16; alignment <= 4096; alignment *= 2)
    for (const std::size_t bytes : {1, 63, 64, 65, 1000, 4096, 32767}) {
      auto* const block = static_cast<unsigned char*>(allocate_small_block(bytes, alignment));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.push_back({block, bytes});
    }
  for (std::size_t k = 0; k < blocks.size(); ++k)
    for (std::size_t i = 0; i < blocks[k].bytes; ++i) ASSERT_EQ(blocks[k].address[i], k);
  for (const taken& block : blocks) free_small_block(block.address);
}

}  // namespace
}  // namespace shale::detail
