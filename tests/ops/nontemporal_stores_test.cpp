// Passes whose outputs are stored past the cache have the results of all others.
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "parallel/stores/store_choice.hpp"
#include "shale/shale.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using parallel::store_choice;
using parallel::store_mode;

class NontemporalStores : public testing::Test {
 protected:
  ~NontemporalStores() override { store_choice::force(std::nullopt); }

  // Expects the same bytes, those around the elements too, from both kinds of stores.
  template <class Evaluate>
  static void expect_same_bytes(const tensor& out, Evaluate evaluate, const char* what) {
    const auto bytes_after = [&](store_mode mode) {
      store_choice::force(mode);
      std::memset(out.storage().data(), 0x5a, out.storage().size_bytes());
      evaluate(out);
      return test::bytes_of(out.storage());
    };
    const std::vector<std::byte> ordinary = bytes_after(store_mode::ordinary);
    const std::vector<std::byte> nontemporal = bytes_after(store_mode::nontemporal);
    // One comparison of all bytes: sanitizers would count each element.
    ASSERT_EQ(nontemporal.size(), ordinary.size());
    EXPECT_EQ(std::memcmp(nontemporal.data(), ordinary.data(), ordinary.size()), 0)
        << what << ", " << name(out.dtype());
  }
};

// Outputs whose rows are long enough for non-temporal stores, or just not.
std::vector<tensor> outputs(dtype type) {
  const tensor line = tensor::zeros({150'011}, type);
  const tensor square = tensor::zeros({70, 3001}, type);
  return {line,
          line.narrow(0, 3, 140'000),
          line.narrow(0, 1, 2049),
          square,
          square.narrow(1, 5, 2900),
          square.narrow(1, 7, 100),
          square.index({slice{}, slice{.step = 2}}),
          square.permute_dims({1, 0}),
          tensor::zeros({1}, type)};
}

// stores.1
TEST_F(NontemporalStores, HaveTheSameBytes) {
  test::random_choices choose(3);
  const dtype types[] = {dtype::complex128, dtype::uint8,   dtype::int16,
                         dtype::float32,    dtype::float64, dtype::complex64};
  for (const dtype type : std::span(types).first(test::cases(std::size(types))))
    for (const tensor& out : outputs(type)) {
      const tensor a = eval(astype(arange(out.size()), type)).reshape(out.shape());
      const tensor small = test::random_tensor<std::int8_t>(choose, out.shape());
      expect_same_bytes(
          out, [&](const tensor& to) { fill(to, 3); }, "fill");
      expect_same_bytes(
          out, [&](const tensor& to) { copy(to, a); }, "copy");
      expect_same_bytes(
          out, [&](const tensor& to) { eval_into(to, expr(a) + expr(a)); }, "add");
      expect_same_bytes(
          out,
          [&](const tensor& to) { eval_into(to, (expr(a) * expr(a) + 1) * astype(small, type)); },
          "three operations");
      expect_same_bytes(
          out, [&](const tensor& to) { copy(to, astype(small, type)); }, "cast");
      expect_same_bytes(
          out,
          [&](const tensor& to) { copy(to, astype(arange(to.size()), type).reshape(to.shape())); },
          "generator");
    }
}

// Results of scans have other bits if rows are cut elsewhere.
TEST_F(NontemporalStores, OfScansHaveTheSameBytes) {
  for (const dtype type : {dtype::float32, dtype::int64, dtype::float64, dtype::complex128})
    for (const tensor& out : outputs(type)) {
      const tensor a = eval(astype(arange(out.size()), type) / 7).reshape(out.shape());
      const expr values = astype(a, type);
      for (index_t axis = 0; axis < out.rank(); ++axis) {
        expect_same_bytes(
            out, [&](const tensor& to) { eval_into(to, cumulative_sum(values, axis)); }, "sum");
        expect_same_bytes(
            out, [&](const tensor& to) { eval_into(to, cumulative_prod(values, axis)); },
            "product");
        expect_same_bytes(
            out, [&](const tensor& to) { eval_into(to, cumulative_sum(values + values, axis)); },
            "sum of computed values");
      }
    }
}

// Some rows of these outputs begin at a line of the cache, and others do not.
TEST_F(NontemporalStores, OfTransposedCopiesHaveTheSameBytes) {
  for (const dtype type :
       {dtype::uint8, dtype::int16, dtype::float32, dtype::float64, dtype::complex128})
    for (const dims& shape :
         {dims{320, 640}, dims{300, 331}, dims{70, 64, 96}, dims{65, 33, 130}}) {
      const tensor a = eval(astype(arange(element_count(shape)), type)).reshape(shape);
      dims axes{a.rank() - 1};  // the last axis becomes the first one
      for (index_t axis = 0; axis + 1 < a.rank(); ++axis) axes.push_back(axis);
      const tensor from = a.permute_dims(axes);
      const tensor out = tensor::zeros(from.shape(), type);
      expect_same_bytes(
          out, [&](const tensor& to) { copy(to, from); }, "copy");
      expect_same_bytes(
          out.narrow(0, 1, out.shape()[0] - 1),
          [&](const tensor& to) { copy(to, from.narrow(0, 1, to.shape()[0])); }, "part");
    }
}

// The oracle is a loop of this test.
TEST_F(NontemporalStores, AreRight) {
  store_choice::force(store_mode::nontemporal);
  const tensor a = tensor::zeros({100'003}, dtype::float32);
  for (index_t i = 0; i < a.size(); ++i) a.elements<float>()[i] = static_cast<float>(i % 1000) / 8;
  const tensor out = tensor::zeros({100'003}, dtype::float32);
  eval_into(out, expr(a) * 2 + 1);
  for (index_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(out.elements<float>()[i], static_cast<float>(i % 1000) / 8 * 2 + 1) << i;
}

TEST_F(NontemporalStores, OfTransposedCopiesAreRight) {
  store_choice::force(store_mode::nontemporal);
  const tensor a = eval(astype(arange(512 * 208), dtype::float32)).reshape({512, 208});
  const tensor out = tensor::zeros({208, 512}, dtype::float32);
  copy(out, a.permute_dims({1, 0}));
  for (index_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out.elements<float>()[i], static_cast<float>(i % 512 * 208 + i / 512)) << i;
}

// Long rows are copied from where they lie, and others element by element.
TEST_F(NontemporalStores, OfTakenRowsAreRight) {
  const tensor grid = eval(astype(arange(40 * 3001), dtype::float32)).reshape({40, 3001});
  const tensor cube = eval(astype(arange(9 * 8 * 1500), dtype::float32)).reshape({9, 8, 1500});
  const tensor numbers = tensor::of<std::int64_t>({39, 0, -1, -40, 7, 7, 8, 20, 1});
  const auto expect_rows = [&](const tensor& from, const tensor& indices, const tensor& out) {
    eval_into(out, take(from, indices, 0));
    for (index_t k = 0; k < indices.size(); ++k) {
      const index_t named = indices.elements<std::int64_t>()[static_cast<std::size_t>(k)];
      const tensor wanted = from.select(0, named < 0 ? named + from.shape(0) : named);
      ASSERT_EQ(test::elements_of<float>(out.select(0, k)), test::elements_of<float>(wanted)) << k;
    }
  };
  for (const store_mode mode : {store_mode::ordinary, store_mode::nontemporal}) {
    store_choice::force(mode);
    for (const tensor& from :
         {grid, grid.narrow(1, 1, 2900), grid.flip({1}), grid.flip({0}), grid.narrow(1, 0, 511),
          grid.index({slice{}, slice{.step = 2}}), grid.reshape({3001, 40}).permute_dims({1, 0})}) {
      const index_t columns = from.shape(1);
      expect_rows(from, numbers, tensor::zeros({9, columns}, dtype::float32));
      expect_rows(from, numbers,
                  tensor::zeros({9, columns + 5}, dtype::float32).narrow(1, 3, columns));
      expect_rows(from, numbers, tensor::zeros({columns, 9}, dtype::float32).permute_dims({1, 0}));
    }
    const tensor few = tensor::of<std::int64_t>({8, 0, -9, 3});
    expect_rows(cube, few, tensor::zeros({4, 8, 1500}, dtype::float32));
    expect_rows(cube.permute_dims({0, 2, 1}), few, tensor::zeros({4, 1500, 8}, dtype::float32));
    const tensor wrong = tensor::of<std::int64_t>({0, 1, 2, 40});
    EXPECT_EQ(test::code_of([&] { eval(take(grid, wrong, 0)); }), errc::invalid_argument);
  }
}

// stores.2
TEST_F(NontemporalStores, OfAnOutputThatIsReadStayInTheCache) {
  store_choice::force(store_mode::nontemporal);
  const tensor a = tensor::zeros({100'003}, dtype::int32);
  eval_into(a, expr(a) + 1);
  eval_into(a.narrow(0, 0, 50'000), expr(a.narrow(0, 50'003, 50'000)) + 1);
  EXPECT_EQ(a.elements<std::int32_t>()[0], 2);
  EXPECT_EQ(a.elements<std::int32_t>()[100'002], 1);
  EXPECT_EQ(eval(sum(expr(a))).item(), scalar(std::int64_t{150'003}));
}

}  // namespace
}  // namespace shale
