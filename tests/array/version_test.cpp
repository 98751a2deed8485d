// Tests the version numbers of the library.
#include "shale/version.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "array/test_support.hpp"
#include "shale/container.hpp"

namespace shale::test {
namespace {

TEST(Version, IsTheProjects) { EXPECT_EQ(version(), SHALE_PROJECT_VERSION); }

// docs/container-format.md: the superblock at 16 KiB holds the version after its magic.
TEST(Version, OfTheFormatIsWhatContainersCarry) {
  const scratch_directory directory;
  const std::string path = directory / "a.shale";
  container::create(path);
  const std::vector<std::byte> bytes = bytes_of_file(path);
  const std::size_t offset = 16 * 1024 + 8;
  ASSERT_GT(bytes.size(), offset + 4);
  std::uint32_t stored = 0;
  for (std::size_t i = 4; i-- > 0;)
    stored = stored << 8 | std::to_integer<std::uint32_t>(bytes[offset + i]);
  EXPECT_EQ(static_cast<std::uint32_t>(format_version()), stored);
}

TEST(Version, NamesTheKernelsInUse) {
  const std::string isa(instruction_set());
  const char* const asked = std::getenv("SHALE_ISA");
  if (asked != nullptr && *asked != '\0') EXPECT_EQ(isa, asked);
  else EXPECT_TRUE(isa == "baseline" || isa == "avx2" || isa == "avx512") << isa;
}

}  // namespace
}  // namespace shale::test
