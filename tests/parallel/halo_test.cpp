// Tests which elements stand for positions beyond the ends of an axis. The oracle walks from a
// position to the axis, step by step.
#include "parallel/operands/halo.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "parallel/ways/haloed_box.hpp"
#include "support/failures.hpp"
#include "support/halo_oracle.hpp"
#include "support/random_tensors.hpp"

namespace shale::parallel {
namespace {

// The positions that runs show, one by one; -1 is the value of the halo.
std::vector<index_t> shown_by(const std::vector<halo_run>& runs) {
  std::vector<index_t> shown;
  for (const halo_run& run : runs)
    for (index_t i = 0; i < run.count; ++i)
      shown.push_back(run.is_value ? -1 : run.from + i * run.step);
  return shown;
}

// halo.1
TEST(Halo, ShowsAPositionForEveryOneBeyondTheEnds) {
  for (const halo_mode mode : test::modes_beyond_the_ends)
    for (index_t extent = 1; extent < 8; ++extent)
      for (index_t first = -30; first < 20; ++first)
        for (const index_t count : {1, 2, 7, 40}) {
          std::vector<index_t> expected;
          for (index_t i = 0; i < count; ++i)
            expected.push_back(test::position_shown(mode, extent, first + i));
          ASSERT_EQ(shown_by(halo_runs_along(mode, extent, first, count)), expected)
              << "mode " << static_cast<int>(mode) << ", extent " << extent << ", from " << first;
        }
}

TEST(Halo, HasTheNamesOfThePadding) {
  const auto around = [](halo_mode mode) { return shown_by(halo_runs_along(mode, 4, -3, 10)); };
  using positions = std::vector<index_t>;
  EXPECT_EQ(around(halo_mode::constant), (positions{-1, -1, -1, 0, 1, 2, 3, -1, -1, -1}));
  EXPECT_EQ(around(halo_mode::edge), (positions{0, 0, 0, 0, 1, 2, 3, 3, 3, 3}));
  EXPECT_EQ(around(halo_mode::reflect), (positions{3, 2, 1, 0, 1, 2, 3, 2, 1, 0}));
  EXPECT_EQ(around(halo_mode::symmetric), (positions{2, 1, 0, 0, 1, 2, 3, 3, 2, 1}));
  EXPECT_EQ(around(halo_mode::wrap), (positions{1, 2, 3, 0, 1, 2, 3, 0, 1, 2}));
}

TEST(Halo, ThatIsClippedEndsWhereTheAxisEnds) {
  const operand_halo clipped{.before = {2, 5}, .after = {3, 1}};
  const halo_extents inner = extents_around(clipped, {{4, 1}, {2, 3}}, {20, 4});
  EXPECT_EQ(inner.before, dims({2, 1}));
  EXPECT_EQ(inner.after, dims({3, 0}));
  const operand_halo wide{.before = {2, 5}, .after = {3, 1}, .mode = halo_mode::edge};
  const halo_extents whole = extents_around(wide, {{0, 0}, {20, 4}}, {20, 4});
  EXPECT_EQ(whole.before, dims({2, 5}));
  EXPECT_EQ(whole.after, dims({3, 1}));
}

// A wide halo of few elements has few runs.
TEST(Halo, OfOneElementIsOneRun) {
  for (const halo_mode mode : {halo_mode::edge, halo_mode::reflect, halo_mode::wrap})
    EXPECT_LE(halo_runs_along(mode, 1, -(index_t{1} << 40), index_t{1} << 41).size(), 3U);
}

// Counts what is asked of it.
class counting_reader final : public box_reader {
 public:
  explicit counting_reader(const tensor& values) : in_place_(values) {}
  tensor read(const region& box) const override {
    ++views;
    return in_place_.read(box);
  }
  void read_into(const region& box, const tensor& into) const override {
    ++copies;
    in_place_.read_into(box, into);
  }
  mutable int views = 0, copies = 0;

 private:
  in_place_reader in_place_;
};

TEST(HaloedBox, InsideOfTheOperandIsAView) {
  const executor on({.threads = 1});
  test::random_choices choose(3);
  const tensor values = test::random_tensor<float>(choose, {8, 9}, test::sharing::distinct);
  const operand_halo halo{.before = {1, 2}, .after = {1, 0}, .mode = halo_mode::wrap};
  const counting_reader reader(values);
  const tensor got = haloed_box(halo, {{1, 2}, {6, 7}}, values.shape(), values.dtype(), reader, on);
  EXPECT_EQ(got.data(), values.data());
  EXPECT_EQ(got.shape(), values.shape());
  EXPECT_EQ(own_part(got, halo, {{1, 2}, {6, 7}}, values.shape()).data(),
            values.narrow(0, 1, 6).narrow(1, 2, 7).data());
  EXPECT_EQ(reader.views, 1);
  EXPECT_EQ(reader.copies, 0);
}

TEST(HaloedBox, ReadsALayerThatRepeatsOnce) {
  const executor on({.threads = 1});
  test::random_choices choose(4);
  const tensor values = test::random_tensor<float>(choose, {3, 4}, test::sharing::distinct);
  const operand_halo halo{.before = {50, 0}, .after = {0, 60}, .mode = halo_mode::edge};
  const counting_reader reader(values);
  const tensor got = haloed_box(halo, {{0, 0}, {3, 4}}, values.shape(), values.dtype(), reader, on);
  EXPECT_EQ(reader.copies, 4) << "two runs along each axis";
  const auto elements = test::elements_of<float>(got), own = test::elements_of<float>(values);
  for (index_t i = 0; i < 53; ++i)
    for (index_t j = 0; j < 64; ++j) {
      const index_t from = test::position_shown(halo_mode::edge, 3, i - 50) * 4 +
                           test::position_shown(halo_mode::edge, 4, j);
      ASSERT_EQ(elements[static_cast<std::size_t>(i * 64 + j)],
                own[static_cast<std::size_t>(from)]);
    }
}

// A part may have many tiles, whose decoding takes long.
TEST(HaloedBox, EndsBetweenItsPartsWhenItIsCancelled) {
  executor on({.threads = 1});
  test::random_choices choose(5);
  const tensor values = test::random_tensor<float>(choose, {3, 4}, test::sharing::distinct);
  const operand_halo halo{.before = {1, 1}, .after = {1, 1}, .mode = halo_mode::wrap};
  const counting_reader reader(values);
  on.cancel();
  EXPECT_EQ(test::code_of([&] {
              haloed_box(halo, {{0, 0}, {3, 4}}, values.shape(), values.dtype(), reader, on);
            }),
            errc::cancelled);
  EXPECT_EQ(reader.copies, 0);
}

}  // namespace
}  // namespace shale::parallel
