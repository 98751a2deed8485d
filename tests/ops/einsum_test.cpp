// Tests einsum over random subscripts, layouts and dtypes. The oracle goes through all positions of
// all names and multiplies element by element.
#include "shale/einsum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/linalg.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::as_list;
using test::code_of;
using test::coordinates_of;
using test::count_of;
using test::elements_of;
using test::index_list;
using test::number_of;
using test::random_choices;
using test::text_of;

/// Names of axes are letters, and for an ellipsis the digits '0' (its last axis), '1', …
using name_list = std::string;

constexpr std::string_view letters = "aZkb";

/// Random subscripts with operands of fitting shapes.
struct random_product {
  std::string text;
  std::vector<name_list> operands;
  std::vector<dims> shapes;
  name_list result;
  std::map<char, index_t> extents;

  explicit random_product(random_choices& choose) {
    std::map<char, index_t> wanted;
    for (const char name : std::string(letters) + "01")
      wanted[name] = choose(0, 20) == 0 ? 0 : choose(1, 4);
    const index_t count = choose(1, 3);
    index_t longest = 0;
    bool has_ellipsis = false;
    for (index_t k = 0; k < count; ++k) {
      name_list names;
      const index_t length = choose(0, 3);
      for (index_t i = 0; i < length; ++i) names += letters[static_cast<std::size_t>(choose(0, 3))];
      std::string written = names;
      if (choose(0, 2) == 0) {
        const auto at = static_cast<std::size_t>(choose(0, length));
        const index_t axes = choose(0, 2);
        written.insert(at, "...");
        names.insert(at, axes == 2 ? "10" : axes == 1 ? "0" : "");
        longest = std::max(longest, axes);
        has_ellipsis = true;
      }
      add_operand(choose, names, wanted);
      text += (k == 0 ? "" : choose(0, 1) == 0 ? "," : " , ") + written;
    }
    if (choose(0, 2) == 0) imply_result(longest);
    else write_result(choose, longest, has_ellipsis);
  }

 private:
  void add_operand(random_choices& choose, const name_list& names,
                   const std::map<char, index_t>& wanted) {
    std::map<char, index_t> own;
    dims shape;
    for (const char name : names) {
      if (!own.contains(name)) own[name] = choose(0, 6) == 0 ? 1 : wanted.at(name);
      shape.push_back(own[name]);
      if (!extents.contains(name) || extents[name] == 1) extents[name] = own[name];
    }
    operands.push_back(names);
    shapes.push_back(shape);
  }

  void imply_result(index_t longest) {
    result = longest == 2 ? "10" : longest == 1 ? "0" : "";
    for (const char letter : std::string("Zabk")) {  // in the order of ASCII
      std::ptrdiff_t occurrences = 0;
      for (const name_list& names : operands)
        occurrences += std::count(names.begin(), names.end(), letter);
      if (occurrences == 1) result += letter;
    }
  }

  void write_result(random_choices& choose, index_t longest, bool has_ellipsis) {
    for (const auto& [name, extent] : extents)
      if (name > '9' && choose(0, 1) == 0)
        result.insert(static_cast<std::size_t>(choose(0, static_cast<index_t>(result.size()))), 1,
                      name);
    std::string written = result;
    if (longest > 0 || (has_ellipsis && choose(0, 1) == 0)) {
      const auto at = static_cast<std::size_t>(choose(0, static_cast<index_t>(result.size())));
      written.insert(at, "...");
      result.insert(at, longest == 2 ? "10" : longest == 1 ? "0" : "");
    }
    text += "->" + written;
  }
};

index_list at_names(const name_list& names, const std::map<char, index_t>& at, const dims& shape) {
  index_list index;
  for (std::size_t k = 0; k < names.size(); ++k)
    index.push_back(shape[static_cast<index_t>(k)] == 1 ? 0 : at.at(names[k]));
  return index;
}

template <class T>
std::vector<T> sums_of(const random_product& of, const std::vector<tensor>& operands) {
  name_list all;
  index_list extents;
  dims shape;
  for (const auto& [name, extent] : of.extents) {
    all += name;
    extents.push_back(extent);
  }
  for (const char name : of.result) shape.push_back(of.extents.at(name));
  std::vector<std::vector<T>> elements;
  for (const tensor& operand : operands) elements.push_back(elements_of<T>(operand));
  std::vector<T> sums(static_cast<std::size_t>(count_of(as_list(shape))), T(0));
  for (index_t number = 0; number < count_of(extents); ++number) {
    const index_list position = coordinates_of(number, extents);
    std::map<char, index_t> at;
    for (std::size_t k = 0; k < all.size(); ++k) at[all[k]] = position[k];
    T product(1);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const index_list index = at_names(of.operands[k], at, operands[k].shape());
      product =
          static_cast<T>(product * elements[k][number_of(index, as_list(operands[k].shape()))]);
    }
    T& sum = sums[number_of(at_names(of.result, at, shape), as_list(shape))];
    sum = static_cast<T>(sum + product);
  }
  return sums;
}

template <class T>
class Einsum : public testing::Test {};
using element_list = testing::Types<std::int8_t, std::uint32_t, double, std::complex<double>>;
TYPED_TEST_SUITE(Einsum, element_list);

TYPED_TEST(Einsum, SumsProductsOverTheNamesThatTheResultLacks) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    random_choices choose(seed);
    const random_product product(choose);
    SCOPED_TRACE(std::to_string(seed) + ": " + product.text);
    std::vector<tensor> operands;
    std::vector<expr> values;
    for (const dims& shape : product.shapes) {
      operands.push_back(test::random_tensor<T>(choose, shape));
      values.emplace_back(operands.back());
      if (choose(0, 3) == 0) values.back() = values.back() + zeros_like(values.back());
    }
    const expr made = einsum(product.text, values);
    dims shape;
    for (const char name : product.result) shape.push_back(product.extents.at(name));
    ASSERT_EQ(made.shape(), shape);
    ASSERT_EQ(made.dtype(), dtype_of<T>());
    ASSERT_EQ(elements_of<T>(eval(made)), sums_of<T>(product, operands));
  }
}

tensor ones_of(const dims& shape) { return tensor::ones(shape, dtype::float64); }

TEST(EinsumPlans, ProductsWithSumsAreMatrixProducts) {
  const expr a = ones_of({8, 300, 20}), b = ones_of({8, 20, 200});
  const auto plan = explain(einsum("bij,bjk->bik", {a, b}));
  EXPECT_NE(plan.text.find("multiplies (8, 300, 20) by (8, 20, 200)"), std::string::npos)
      << plan.text;
  EXPECT_LE(plan.staged_bytes_max, 8u * 300 * 200 * 8);
  // The sum of "j" is that of a matrix product, and all axes of one operand alone are its rows.
  const auto merged = explain(einsum("bij,cjk->bcik", {a, b}));
  EXPECT_NE(merged.text.find("multiplies (2400, 20) by (20, 1600)"), std::string::npos)
      << merged.text;
}

TEST(EinsumPlans, TheSmallestProductComesFirst) {
  const expr a = ones_of({500, 400}), b = ones_of({400, 300}), x = ones_of({300});
  EXPECT_LE(explain(einsum("ij,jk,k->i", {a, b, x})).staged_bytes_max, (500u + 400) * 8);
  EXPECT_LE(explain(einsum("k,ij,jk->i", {x, a, b})).staged_bytes_max, (500u + 400) * 8);
  EXPECT_EQ(eval(einsum("ij,jk,k->i", {a, b, x})).at({7}).as<double>(), 400 * 300);
}

TEST(EinsumPlans, OneOperandIsViewedOrSummed) {
  const tensor a = ones_of({30, 30, 5});
  EXPECT_EQ(explain(einsum("iij->ji", {a})).staged_bytes_max, 0u);
  EXPECT_EQ(explain(einsum("kji", {a})).passes, 1);
  EXPECT_EQ(eval(einsum("iij", {a})).at({3}).as<double>(), 30);
}

TEST(EinsumPlans, MergedProductsAreNotCopied) {
  const expr a = ones_of({20, 30, 40}), b = ones_of({40, 50});
  const auto product = explain(matmul(a.reshape({600, 40}), b));
  EXPECT_EQ(explain(einsum("bij,jk->bik", {a, b})).staged_bytes_max, product.staged_bytes_max);
  EXPECT_EQ(explain(einsum("bij,jk->bik", {a, b})).passes, product.passes);
}

TEST(EinsumPlans, ManyOperandsAreMultipliedPairByPair) {
  const std::vector<expr> operands(100, ones_of({2}));
  std::string text = "i";
  for (std::size_t k = 1; k < operands.size(); ++k) text += ",i";
  EXPECT_EQ(eval(einsum(text + "->", operands)).item().as<double>(), 2);
}

TEST(EinsumSums, OfHalfFloatsMayExceedTheirRangeBeforeTheyAreMultiplied) {
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    const expr a = full({2000}, 100, type), small = full({2}, 0.0009765625, type);
    EXPECT_EQ(eval(einsum("i,j->j", {a, small})).at({0}).as<double>(),
              eval(astype(full({}, 195.3125), type)).item().as<double>());
    EXPECT_EQ(eval(einsum("j,i->", {small, a})).item().as<double>(),
              eval(astype(full({}, 390.625), type)).item().as<double>());
  }
}

// Zero, also beside an infinity, because there are no products.
TEST(EinsumSums, OfNoProductsAreZero) {
  const expr infinite = full({1}, std::numeric_limits<double>::infinity());
  const expr none = zeros({0}, dtype::float64), wide = infinite.broadcast_to({3});
  EXPECT_EQ(eval(einsum("i,j->", {infinite, none})).item().as<double>(), 0);
  EXPECT_EQ(eval(einsum("i,i->", {infinite, none})).item().as<double>(), 0);
  const tensor rows = eval(einsum("i,j->i", {wide, none}));
  EXPECT_EQ(rows.shape(), (dims{3}));
  EXPECT_EQ(rows.at({2}).as<double>(), 0);
}

TEST(EinsumDtypes, ArePromotedAndKept) {
  const expr f = tensor::ones({3, 2}, dtype::float32), i = tensor::ones({2, 3}, dtype::int16);
  EXPECT_EQ(einsum("ij,jk", {f, i}).dtype(), promote(dtype::float32, dtype::int16));
  EXPECT_EQ(einsum("ij->", {i}).dtype(), dtype::int16);
  EXPECT_EQ(einsum("ij,ij->", {i, i}).dtype(), dtype::int16);
  EXPECT_EQ(einsum("ij->ji", {astype(f, dtype::float8_e5m2)}).dtype(), dtype::float8_e5m2);
  EXPECT_EQ(code_of([&] {
              einsum("ij,ij", {f, astype(f, dtype::float8_e5m2)});
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              einsum("i,i", {zeros({2}, dtype::int64), zeros({2}, dtype::uint64)});
            }),
            errc::invalid_argument);
  // Products of bool are "and", and sums are "or".
  const expr yes = tensor::of({true, true, false}), no = tensor::of({false, true, true});
  EXPECT_EQ(elements_of<bool>(eval(einsum("i,i->", {yes, no}))), std::vector<bool>{true});
  EXPECT_EQ(elements_of<bool>(eval(einsum("i,j->i", {yes, no}))),
            (std::vector<bool>{true, true, false}));
  EXPECT_EQ(elements_of<bool>(eval(einsum("i,i->i", {yes, no}))),
            (std::vector<bool>{false, true, false}));
}

TEST(EinsumErrors, NameThePosition) {
  const expr x = zeros({2, 3}), y = zeros({3, 4});
  const auto said = [&](std::string_view text, std::initializer_list<expr> operands) {
    return text_of([&] { einsum(text, operands); });
  };
  const auto expect = [&](std::string_view text, std::initializer_list<expr> operands,
                          std::string_view part) {
    EXPECT_NE(said(text, operands).find(part), std::string::npos)
        << text << ": " << said(text, operands);
  };
  expect("ij,j1->i", {x, y}, "at position 4 of 'ij,j1->i'");
  expect("ij-ji", {x}, "at position 2 ");
  expect("ij>ji", {x}, "at position 2 ");
  expect("ij- >ji", {x}, "at position 2 ");
  expect("i..j", {x}, "at position 1 ");
  expect("...i...", {x}, "at position 4 ");
  expect("ij->ii", {x}, "at position 5 ");
  expect("ij->ik", {x}, "no operand has 'k'");
  expect("ij->i,", {x}, "at position 5 ");
  expect("ij->i->i", {x}, "at position 5 ");
  expect("ij,ijk", {x, y}, "operand 1 has shape (3, 4), but 3 letters");
  expect("ij,j", {x, y}, "at position 3 ");
  expect("ij,ij", {x, y}, "'i' has extent 2 before, and 3 in operand 1");
  expect("ii", {x}, "'i' has extents 2 and 3 in operand 0");
  expect("...ij->ij", {zeros({2, 2, 2})}, "needs '...'");
  expect("ij,jk", {x}, "got 1 operands for 'ij,jk'");
  expect("ij", {x, y}, "got 2 operands");
  expect(std::string_view("ij\0k", 4), {x}, "at position 2 ");
  const std::string many(40, 'a');
  expect(many, {x}, "more than 32 letters");
  EXPECT_EQ(code_of([&] { einsum("ij,jk", {x, zeros({2, 4})}); }), errc::invalid_argument);
}

}  // namespace
}  // namespace shale
