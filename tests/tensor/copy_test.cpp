#include "tensor/copy.hpp"

#include <gtest/gtest.h>

#include "shale/tensor.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::elements_of;
using test::random_choices;

template <class T>
void check_copies(std::uint64_t seed) {
  random_choices choose(seed);
  for (int round = 0; round < 1500; ++round) {
    const dims shape = test::random_shape(choose);
    const tensor source = test::random_tensor<T>(choose, shape);
    tensor to = test::random_tensor<T>(choose, shape, test::sharing::distinct);
    // The bytes between the elements must stay unchanged.
    auto wanted = test::bytes_of(to.storage());
    const auto sources = test::positions_of(source), targets = test::positions_of(to);
    for (std::size_t i = 0; i < sources.size(); ++i)
      std::memcpy(wanted.data() + static_cast<std::size_t>(targets[i]) * sizeof(T),
                  source.storage().data() + sources[i] * static_cast<index_t>(sizeof(T)),
                  sizeof(T));
    detail::copy_serially(to, source);
    ASSERT_EQ(test::bytes_of(to.storage()), wanted)
        << to_string(shape) << to_string(source.strides()) << to_string(to.strides());
  }
}

TEST(Copy, WritesEachElementAndNothingElse) {
  check_copies<std::uint8_t>(1);
  check_copies<std::int16_t>(2);
  check_copies<float>(3);
  check_copies<double>(4);
  check_copies<std::complex<double>>(5);
}

TEST(Copy, TransposesAcrossManyBlocks) {
  // The extents are not multiples of a block, and there is a third axis on either side of the two
  // swapped ones.
  tensor source = tensor::empty({3, 150, 131}, dtype::uint16);
  for (index_t i = 0; i < source.size(); ++i)
    source.elements<std::uint16_t>()[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(i);
  for (const dims& axes :
       {dims{0, 2, 1}, dims{2, 1, 0}, dims{2, 0, 1}, dims{1, 0, 2}, dims{1, 2, 0}}) {
    const tensor view = source.permute_dims(axes).flip({1});
    const tensor copy = view.clone();
    EXPECT_TRUE(copy.is_contiguous());
    EXPECT_EQ(elements_of<std::uint16_t>(copy), elements_of<std::uint16_t>(view));
  }
}

TEST(Clone, IsContiguousEqualAndItsOwn) {
  random_choices choose(6);
  for (int round = 0; round < 500; ++round) {
    const tensor source = test::random_tensor<float>(choose, test::random_shape(choose));
    tensor copy = source.clone();
    ASSERT_TRUE(copy.is_contiguous());
    ASSERT_EQ(copy.shape(), source.shape());
    ASSERT_EQ(elements_of<float>(copy), elements_of<float>(source));
    ASSERT_FALSE(copy.storage().shares_owner_with(source.storage()));
    ASSERT_TRUE(equal_bits(copy, source));
  }
}

TEST(EqualBits, SeesEveryDifferenceOfOneElement) {
  random_choices choose(7);
  for (int round = 0; round < 1500; ++round) {
    const dims shape = test::random_shape(choose);
    const tensor a = test::random_tensor<std::int16_t>(choose, shape);
    tensor b = test::random_tensor<std::int16_t>(choose, shape, test::sharing::distinct);
    detail::copy_serially(b, a);
    ASSERT_TRUE(equal_bits(a, b));
    ASSERT_TRUE(equal_bits(b, a));
    if (a.size() == 0) continue;
    const auto targets = test::positions_of(b);
    const auto changed = static_cast<std::size_t>(choose(0, a.size() - 1));
    b.storage().data()[targets[changed] * 2 + choose(0, 1)] ^= std::byte{64};
    ASSERT_FALSE(equal_bits(a, b));
    ASSERT_FALSE(equal_bits(b, a));
  }
}

TEST(EqualBits, ComparesBitsNotNumbers) {
  const tensor nan = tensor::of<float>({NAN});
  EXPECT_TRUE(equal_bits(nan, nan.clone()));
  EXPECT_FALSE(equal_bits(tensor::of<float>({0.0f}), tensor::of<float>({-0.0f})));
  EXPECT_FALSE(equal_bits(tensor::of<float>({0.0f}), tensor::of<std::int32_t>({0})));
  EXPECT_FALSE(equal_bits(tensor::of<float>({1.0f}), tensor::of<float>({1.0f}).view({1, 1})));
  EXPECT_TRUE(
      equal_bits(tensor::empty({0, 3}, dtype::float32), tensor::empty({0, 3}, dtype::float32)));
  EXPECT_FALSE(
      equal_bits(tensor::empty({0, 3}, dtype::float32), tensor::empty({3, 0}, dtype::float32)));
}

}  // namespace
}  // namespace shale
