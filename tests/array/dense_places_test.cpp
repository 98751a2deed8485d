#include "array/elements/dense_places.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/system/pages.hpp"
#include "support/random_layouts.hpp"

namespace shale::arrays {
namespace {

using format::extent;

// The oracle is a list with the place of every byte.
TEST(DensePlaces, AreThoseOfEveryByte) {
  test::random_choices choose(15);
  for (int round = 0; round < 30; ++round) {
    std::vector<extent> extents;
    std::vector<std::uint64_t> place_of_byte;
    std::vector<std::size_t> extent_of_byte;
    for (index_t count = choose(0, 6); count > 0; --count) {
      const auto offset = static_cast<std::uint64_t>(choose(0, 1000));
      const auto bytes = static_cast<std::uint64_t>(choose(1, 9));
      for (std::uint64_t byte = 0; byte < bytes; ++byte) {
        place_of_byte.push_back(offset + byte);
        extent_of_byte.push_back(extents.size());
      }
      extents.push_back({offset, bytes});
    }
    const dense_places places(extents);
    for (std::size_t first = 0; first <= place_of_byte.size(); ++first)
      for (std::size_t end = first; end <= place_of_byte.size(); ++end) {
        std::vector<std::uint64_t> found;
        const auto pieces = places.pieces(first, end - first);
        for (const extent& piece : pieces)
          for (std::uint64_t byte = 0; byte < piece.bytes; ++byte)
            found.push_back(piece.offset + byte);
        const std::vector<std::uint64_t> expected(
            place_of_byte.begin() + static_cast<std::ptrdiff_t>(first),
            place_of_byte.begin() + static_cast<std::ptrdiff_t>(end));
        ASSERT_EQ(found, expected) << first << " to " << end;
        const std::size_t extents_met =
            first == end ? 0 : extent_of_byte[end - 1] - extent_of_byte[first] + 1;
        ASSERT_EQ(pieces.size(), extents_met) << first << " to " << end;
      }
  }
}

// A hostile file may name millions of extents. A search that walked through them would take hours
// for all segments of the array. Here it would touch memory that nobody may read.
TEST(DensePlaces, AreFoundWithoutAWalkThroughTheExtents) {
  constexpr std::uint64_t bytes_each = 4096;
  constexpr std::size_t pages = 8;
  const std::size_t page = detail::system_page_bytes();
  const std::size_t count = pages * page / sizeof(extent);
  void* const memory =
      ::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const extents = static_cast<extent*>(memory);
  const auto offset_of = [](std::uint64_t number) { return (2 * number + 20) * bytes_each; };
  for (std::size_t i = 0; i < count; ++i)
    std::construct_at(extents + i, extent{offset_of(i), bytes_each});
  const dense_places places({extents, count});
  ASSERT_EQ(::mprotect(memory, (pages - 1) * page, PROT_NONE), 0);
  const std::vector<extent> expected{{offset_of(count - 2) + 96, 4000}, {offset_of(count - 1), 7}};
  EXPECT_EQ(places.pieces((count - 2) * bytes_each + 96, 4007), expected);
  ::munmap(memory, pages * page);
}

}  // namespace
}  // namespace shale::arrays
