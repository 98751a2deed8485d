// The programs that the documents of Torch's TH, of ATen and of SimpleTensor show for tensors,
// written with Shale. (`gather` and convolution are still missing.)
#include <gtest/gtest.h>

#include <complex>
#include <sstream>
#include <utility>
#include <vector>

#include "shale/apply.hpp"
#include "shale/error.hpp"
#include "shale/functions.hpp"
#include "shale/ops.hpp"
#include "support/failures.hpp"

namespace shale {
namespace {

TEST(AncestorsTensor, ElementsAreSetAndReadOneByOne) {
  const tensor x = tensor::empty({10}, dtype::float64);
  for (index_t i = 0; i < 10; ++i) x.set({i}, i);
  for (index_t i = 0; i < 10; ++i) EXPECT_EQ(x.at({i}), scalar(i));
}

TEST(AncestorsTensor, ApplyVisitsElementsInIndexOrderWithACounterOfTheCaller) {
  const tensor x = tensor::empty({10}, dtype::float64);
  int counter = 0;
  apply_in_order([&](double& e) { e = counter++; }, x);
  EXPECT_EQ(counter, 10);
  for (index_t i = 0; i < 10; ++i) EXPECT_EQ(x.at({i}), scalar(i));

  const tensor matrix = tensor::empty({3, 4}, dtype::int32);
  counter = 0;
  apply_in_order([&](int& e) { e = counter++; }, matrix.swapaxes(0, 1));
  EXPECT_TRUE(equal_bits(matrix, tensor::of<int>({{0, 3, 6, 9}, {1, 4, 7, 10}, {2, 5, 8, 11}})));
}

TEST(AncestorsTensor, AMatrixAndItsTransposeShareTheirBytes) {
  const tensor matrix = tensor::empty({3, 4}, dtype::float32);
  float next = 0;
  apply_in_order([&](float& e) { e = next++; }, matrix);
  const tensor turned = matrix.swapaxes(0, 1);
  EXPECT_EQ(matrix.strides(), (dims{4, 1}));
  EXPECT_EQ(turned.strides(), (dims{1, 4}));
  EXPECT_TRUE(matrix.storage().shares_owner_with(turned.storage()));
  std::ostringstream printed;
  printed << turned;
  EXPECT_EQ(printed.str(),
            "[[ 0.  4.  8.]\n [ 1.  5.  9.]\n [ 2.  6. 10.]\n [ 3.  7. 11.]]\nfloat32 (4, 3)");
  EXPECT_EQ(describe(turned), "float32 (4, 3), strides (1, 4)");

  // Reads the elements in three ways: from the raw storage, with counters, and by rows.
  std::vector<float> raw, counted, sections;
  const auto* elements = reinterpret_cast<const float*>(matrix.storage().data());
  for (index_t i = 0; i < matrix.size(); ++i) raw.push_back(elements[i]);
  const auto view = matrix.as<const float, 2>();
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j) counted.push_back(view(i, j));
  for (const tensor& row : matrix.unstack(0))
    for (const float value : row.elements<const float>()) sections.push_back(value);
  EXPECT_EQ(raw, counted);
  EXPECT_EQ(raw, sections);
}

TEST(AncestorsTensor, HasAnyNumberOfAxes) {
  const tensor four = tensor::zeros({2, 3, 4, 5}, dtype::int8);
  const tensor six = tensor::zeros({2, 1, 3, 1, 2, 2}, dtype::int8);
  EXPECT_EQ(four.rank(), 4);
  EXPECT_EQ(six.rank(), 6);
  EXPECT_EQ(six.shape(2), 3);

  const tensor cube = tensor::empty({7, 7, 7}, dtype::int32);
  int next = 0;
  apply_in_order([&](int& e) { e = next++; }, cube);
  const index_t position =
      cube.offset() + 3 * cube.stride(0) + 4 * cube.stride(1) + 5 * cube.stride(2);
  const int stored = reinterpret_cast<const int*>(cube.storage().data())[position];
  EXPECT_EQ(cube.at({3, 4, 5}), scalar(stored));
  EXPECT_EQ((cube[{3}][{4}][{5}].item()), scalar(stored));
  EXPECT_EQ((cube[{3, 4, 5}].item()), scalar(stored));
}

TEST(AncestorsTensor, AStorageIsSeenAsAMatrix) {
  const storage bytes = storage::allocate(20 * sizeof(float));
  auto* elements = reinterpret_cast<float*>(bytes.data());
  for (int i = 0; i < 20; ++i) elements[i] = static_cast<float>(i + 1);
  const tensor matrix(bytes, dtype::float32, layout({4, 5}));
  EXPECT_EQ(matrix.strides(), (dims{5, 1}));
  const tensor same = tensor::empty({4, 5}, dtype::float32);
  float counter = 0;
  apply_in_order([&](float& e) { e = ++counter; }, same);
  EXPECT_TRUE(equal_bits(matrix, same));
}

TEST(AncestorsTensor, ViewsWriteThroughAndCopiesDoNot) {
  const tensor x = tensor::zeros({5}, dtype::float64);
  fill(x.narrow(0, 1, 3), 1);
  EXPECT_TRUE(equal_bits(x, tensor::of<double>({0, 1, 1, 1, 0})));
  const tensor copied = tensor::empty({5}, dtype::float64);
  copy(copied, x);
  const tensor cloned = x.clone();
  fill(x, 7);
  EXPECT_EQ(copied.at({1}), scalar(1.0));
  EXPECT_EQ(cloned.at({0}), scalar(0.0));
}

// z = a + b for any dtype.
template <class T>
void add(const tensor& z, const tensor& a, const tensor& b) {
  apply_into(
      z, [](T x, T y) { return static_cast<T>(x + y); }, a, b);
}

TEST(AncestorsTensor, GatherPicksAnElementForEachIndex) {
  const tensor source = eval(arange(25).reshape({5, 5}));
  const tensor index = tensor::of<std::int64_t>({{0, 1, 2, 3, 4}, {4, 0, 3, 1, 2}});
  const tensor picked = eval(gather(source, 0, index));
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 5; ++j)
      EXPECT_EQ(picked.at({i, j}), source.at({index.at({i, j}).as<index_t>(), j}));
  EXPECT_FALSE(picked.storage().shares_owner_with(source.storage()));
}

TEST(AncestorsTensor, AdditionIsGenericOverElements) {
  const auto adds = []<class T>(std::type_identity<T>) {
    const tensor a = tensor::of<T>({T(1), T(2), T(3)}), b = tensor::of<T>({T(4), T(5), T(6)});
    const tensor z = tensor::empty_like(a);
    add<T>(z, a, b);
    EXPECT_TRUE(equal_bits(z, tensor::of<T>({T(5), T(7), T(9)})));
  };
  adds(std::type_identity<std::uint8_t>());
  adds(std::type_identity<std::int16_t>());
  adds(std::type_identity<std::int64_t>());
  adds(std::type_identity<float>());
  adds(std::type_identity<double>());
  adds(std::type_identity<std::complex<float>>());
}

TEST(AncestorsTensor, ScaledAdditionOfDifferentLayouts) {
  const tensor a = tensor::of<float>({{1, 2, 3}, {4, 5, 6}});
  const tensor b = tensor::of<float>({{10, 40}, {20, 50}, {30, 60}}).swapaxes(0, 1);
  const tensor r = tensor::empty({3, 2}, dtype::float32).swapaxes(0, 1);
  eval_into(r, expr(a) + 0.5 * expr(b));
  EXPECT_TRUE(equal_bits(r, tensor::of<float>({{6, 12, 18}, {24, 30, 36}})));
}

TEST(AncestorsTensor, ShapesAreCountedComparedAndPrinted) {
  const dims shape{2, 3, 4, 5};
  EXPECT_EQ(element_count(shape), 120);
  EXPECT_EQ(element_count(shape, 1, 3), 12);
  EXPECT_EQ(element_count(shape, 2, 2), 1);
  EXPECT_EQ(shape, (dims{2, 3, 4, 5}));
  EXPECT_NE(shape, (dims{2, 3, 5, 4}));
  dims without = shape;
  without.erase(1);
  EXPECT_EQ(without, (dims{2, 4, 5}));
  EXPECT_EQ(to_string(shape), "(2, 3, 4, 5)");
  EXPECT_EQ(test::code_of([&] { element_count(shape, 1, 5); }), errc::invalid_argument);
}

TEST(AncestorsTensor, ViewsAndExpressionsShareOneStorage) {
  const tensor x = tensor::empty({2, 3, 4}, dtype::float32);
  float next = 0;
  apply_in_order([&](float& e) { e = next++; }, x);
  const tensor turned = x.permute_dims({2, 0, 1});
  EXPECT_EQ(turned.at({3, 1, 2}), x.at({1, 2, 3}));
  EXPECT_EQ(x.swapaxes(0, 2).at({3, 2, 1}), x.at({1, 2, 3}));
  EXPECT_EQ((x[{slice{0, 1}, slice{1, 3}}].shape()), (dims{1, 2, 4}));
  EXPECT_EQ(x.expand_dims(1).shape(), (dims{2, 1, 3, 4}));
  EXPECT_EQ(x.expand_dims(1).squeeze(1).shape(), x.shape());
  EXPECT_EQ(x.view({6, 4}).at({5, 3}), x.at({1, 2, 3}));
  EXPECT_EQ(test::code_of([&] { turned.view({24}); }), errc::invalid_argument);
  for (const tensor& view : {turned, x.swapaxes(0, 2), x.view({24})})
    EXPECT_TRUE(view.storage().shares_owner_with(x.storage()));

  const tensor a = tensor::of<float>({{1, 2}, {3, 4}}), b = tensor::of<float>({{10, 20}, {30, 40}});
  eval_into(a, expr(a).swapaxes(0, 1) + expr(b));
  EXPECT_TRUE(equal_bits(a, tensor::of<float>({{11, 23}, {32, 44}})));
}

TEST(AncestorsTensor, IsResizedAsMemoryThatOneHolds) {
  tensor x;
  x.resize({2, 3});
  fill(x, 4);
  EXPECT_TRUE(equal_bits(x, tensor::full({2, 3}, 4, dtype::float32)));
  x.resize({2, 2});
  x.resize({4, 2});  // what the old bytes held stays in front
  EXPECT_EQ(x.at({2, 1}), scalar(4.0F));
  x.resize(layout({2, 2}, {1, 2}, 0));
  EXPECT_EQ(x.strides(), (dims{1, 2}));
  const tensor other = x;
  EXPECT_EQ(test::code_of([&] { x.resize({100}); }), errc::invalid_argument);
  EXPECT_EQ(x.shape(), (dims{2, 2}));
}

}  // namespace
}  // namespace shale
