// Tests overlaps in a file: random layouts over two mappings, each of random extents of one file
// side by side. The oracle is a list of the file's bytes under each tensor.
#include "parallel/operands/aliases.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "storage/files/file_descriptor.hpp"
#include "storage/mapped/mapped_extents.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"

namespace shale::parallel {
namespace {

using detail::file_extent;
using test::index_list;
using test::random_choices;
using test::sharing;

constexpr index_t page = 4096;
constexpr index_t file_pages = 8;

class Aliases : public testing::Test {
 protected:
  struct mapping {
    storage bytes;
    std::vector<file_extent> extents;
  };

  Aliases() { test::write_file(path_, std::string(file_pages * page, '\1')); }

  mapping map(const std::vector<file_extent>& extents, access allowed = access::read_write) const {
    const detail::file_descriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    return {detail::map_extents(file.get(), extents, {.access = allowed, .path = path_}), extents};
  }

  // Extents have one page each, in random order; some follow each other in the file, too.
  mapping some_pages(random_choices& choose, index_t count) const {
    std::vector<file_extent> extents;
    for (index_t i = 0; i < count; ++i)
      extents.push_back({static_cast<std::uint64_t>(choose(0, file_pages - 1) * page), page});
    return map(extents);
  }

  // A tensor whose elements lie on a few pages, perhaps with gaps.
  static tensor some_elements(random_choices& choose, const mapping& in, const dims& shape,
                              dtype type) {
    const auto held = static_cast<index_t>(in.bytes.size_bytes() / item_bytes(type));
    for (;;) {
      const auto placed = test::random_layout(choose, shape, sharing::allowed);
      const index_t spread = choose(0, 1) == 0 ? 1 : choose(1, 400);
      dims strides = placed.geometry.strides();
      for (auto& stride : strides) stride *= spread;
      if (placed.positions * spread >= held) continue;
      const index_t start = choose(0, held - 1 - placed.positions * spread);
      return tensor(in.bytes, type,
                    layout(shape, strides, placed.geometry.offset() * spread + start));
    }
  }

  // The byte of the file under every byte of every element.
  static index_list bytes_in_file(const tensor& values, const mapping& in) {
    index_list result;
    for (const auto position : test::positions_of(values))
      for (index_t i = 0; i < static_cast<index_t>(values.item_bytes()); ++i) {
        index_t at = position * static_cast<index_t>(values.item_bytes()) + i;
        for (const auto& extent : in.extents) {
          if (at < static_cast<index_t>(extent.bytes)) {
            result.push_back(static_cast<index_t>(extent.offset) + at);
            break;
          }
          at -= static_cast<index_t>(extent.bytes);
        }
      }
    return result;
  }

  // Moves `other` by whole elements, so that one of them lies near one of `values` in the file, if
  // the mapping of `other` has that place.
  static tensor moved_near(random_choices& choose, const tensor& other, const mapping& in,
                           const tensor& values, const mapping& of) {
    const auto wanted = bytes_in_file(values, of);
    const auto positions = test::positions_of(other);
    if (wanted.empty() || positions.empty()) return other;
    const auto item = static_cast<index_t>(other.item_bytes());
    const index_t byte =
        wanted[static_cast<std::size_t>(choose(0, static_cast<index_t>(wanted.size()) - 1))];
    index_t at = 0;  // where the extent begins in the mapping
    for (const auto& extent : in.extents) {
      const index_t inside = byte - static_cast<index_t>(extent.offset);
      if (inside >= 0 && inside < static_cast<index_t>(extent.bytes)) {
        const auto from =
            static_cast<std::size_t>(choose(0, static_cast<index_t>(positions.size()) - 1));
        const index_t by = (at + inside) / item - positions[from] + choose(-2, 2);
        const auto [first, last] = std::minmax_element(positions.begin(), positions.end());
        if (*first + by < 0 ||
            (*last + by + 1) * item > static_cast<index_t>(in.bytes.size_bytes()))
          return other;
        return other.as_strided(other.shape(), other.strides(), other.offset() + by);
      }
      at += static_cast<index_t>(extent.bytes);
    }
    return other;
  }

  static bool share_a_byte(const index_list& a, const index_list& b) {
    const std::set<index_t> left(a.begin(), a.end());
    return std::any_of(b.begin(), b.end(), [&](index_t byte) { return left.count(byte) > 0; });
  }

 private:
  test::scratch_directory directory_;
  const std::string path_ = directory_ / "bytes";
};

TEST_F(Aliases, AreExactWhereEachMappingIsOneExtent) {
  int met = 0, passed = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    random_choices choose(seed);
    const auto stretch = [&] {
      const index_t first = choose(0, file_pages - 3);
      return map({{static_cast<std::uint64_t>(first * page),
                   static_cast<std::size_t>(choose(2, file_pages - first) * page)}});
    };
    const mapping a = stretch(), b = stretch();
    const dims shape = test::random_shape(choose, {.axes_max = 3});
    const tensor x = some_elements(choose, a, shape, dtype::int32);
    const tensor y = moved_near(
        choose, some_elements(choose, b, shape, choose(0, 1) == 0 ? dtype::int32 : dtype::int8), b,
        x, a);
    const bool shared = share_a_byte(bytes_in_file(x, a), bytes_in_file(y, b));
    ++(shared ? met : passed);
    ASSERT_EQ(may_overlap(x, y), shared) << "seed " << seed;
    ASSERT_EQ(may_overlap(y, x), shared) << "seed " << seed;
  }
  EXPECT_GT(met, 100);
  EXPECT_GT(passed, 100);
}

TEST_F(Aliases, AreNeverMissedInSeveralExtents) {
  int met = 0, passed = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    random_choices choose(seed);
    const mapping a = some_pages(choose, choose(1, 4)), b = some_pages(choose, choose(1, 4));
    const dims shape = test::random_shape(choose, {.axes_max = 3});
    const tensor x = some_elements(choose, a, shape, dtype::int32);
    const tensor y = moved_near(choose, some_elements(choose, b, shape, dtype::int32), b, x, a);
    if (share_a_byte(bytes_in_file(x, a), bytes_in_file(y, b))) {
      ++met;
      ASSERT_TRUE(may_overlap(x, y)) << "seed " << seed;
    } else if (!may_overlap(x, y)) {
      ++passed;
    }
  }
  EXPECT_GT(met, 100);
  EXPECT_GT(passed, 100);
}

TEST_F(Aliases, AreTheSameElementsExactlyIfEveryIndexNamesTheSameBytes) {
  int same = 0, other = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    random_choices choose(seed);
    const mapping a = some_pages(choose, choose(1, 4));
    // The other mapping has the same extents, or one of them exchanged, or one more page in front.
    auto extents = a.extents;
    const index_t change = choose(0, 3);
    if (change == 1)
      extents[static_cast<std::size_t>(choose(0, static_cast<index_t>(extents.size()) - 1))]
          .offset = static_cast<std::uint64_t>(choose(0, file_pages - 1) * page);
    if (change == 2) extents.insert(extents.begin(), {0, page});
    const mapping b = map(extents);
    const dims shape = test::random_shape(choose, {.axes_max = 3, .may_be_empty = false});
    const tensor x = some_elements(choose, a, shape, dtype::int32);
    const index_t shift = change == 2 ? page / 4 : 0;
    const tensor y(b.bytes, dtype::int32, layout(x.shape(), x.strides(), x.offset() + shift));
    // If the bytes between the elements differ, `same_elements` may return false although it could
    // return true.
    const bool equal = bytes_in_file(x, a) == bytes_in_file(y, b);
    if (!equal || change != 1) {
      ASSERT_EQ(same_elements(x, y), equal) << "seed " << seed;
    }
    ++(equal ? same : other);
  }
  EXPECT_GT(same, 100);
  EXPECT_GT(other, 100);
}

// The stride of an axis of length 1 does not matter, and an empty tensor overlaps nothing.
TEST_F(Aliases, OfOneElementDoNotCompareStrides) {
  const mapping a = map({{0, page}}), b = map({{0, page}});
  const tensor x(a.bytes, dtype::int32, layout({1, 3}, {7, 1}, 5));
  const tensor y(b.bytes, dtype::int32, layout({1, 3}, {9, 1}, 5));
  EXPECT_TRUE(same_elements(x, y));
  EXPECT_FALSE(same_elements(x, tensor(b.bytes, dtype::int32, layout({1, 3}, {9, 1}, 6))));
  EXPECT_FALSE(may_overlap(x.narrow(1, 0, 0), y.narrow(1, 0, 0)));
  EXPECT_FALSE(same_elements(x.narrow(1, 0, 0), y.narrow(1, 0, 0)));
}

TEST_F(Aliases, OfAnOutputInPrivateMemoryAreNone) {
  const mapping shared = map({{0, page}}, access::read_write);
  const mapping own = map({{0, page}}, access::copy_on_write);
  const mapping second = map({{0, page}}, access::copy_on_write);
  const auto over = [](const mapping& in) {
    return tensor(in.bytes, dtype::int32, layout(dims{page / 4}));
  };
  EXPECT_TRUE(may_overlap(over(shared), over(own)));
  EXPECT_FALSE(may_overlap(over(own), over(shared)));
  EXPECT_FALSE(may_overlap(over(own), over(second)));
  EXPECT_TRUE(may_overlap(over(own), over(own).flip()));
}

}  // namespace
}  // namespace shale::parallel
