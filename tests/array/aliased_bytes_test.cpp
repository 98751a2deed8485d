// Tests bytes of a container that are mapped at two addresses: in the array that a transaction
// writes, and in a mapping of the container's whole file.
#include <algorithm>
#include <vector>

#include "array/test_support.hpp"
#include "shale/apply.hpp"
#include "shale/array.hpp"
#include "shale/container.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;

constexpr index_t count = 100'000;

class AliasedArray : public test::fresh_container {
 protected:
  static array_spec spec() { return {.dtype = dtype::int32, .shape = {count}}; }

  // The elements of `seen`, read through a mapping of the whole container.
  tensor beside(const tensor& seen, access allowed) const {
    const auto first = static_cast<index_t>(seen.storage().file_offset().value());
    return tensor(map_file(path_, {.access = allowed}), dtype::int32,
                  layout({count}, {1}, first / 4));
  }

  static std::vector<std::int32_t> backwards(std::vector<std::int32_t> elements) {
    std::reverse(elements.begin(), elements.end());
    return elements;
  }
};

TEST_F(AliasedArray, IsReadAsItWasBefore) {
  transaction change = file_.begin();
  // This array is as long as the other one. So positions in the mapping of the whole file are
  // greater than all positions in the array's own mapping.
  change.create("before", spec());
  const writable_array made = change.create("a", spec());
  made.write(test::counting({count}, dtype::int32));
  for (const access allowed : {access::read_only, access::read_write, access::copy_on_write}) {
    const tensor written = made.map();
    const auto before = elements_of<std::int32_t>(written);
    copy(written, beside(written, allowed).flip());
    EXPECT_TRUE(elements_of<std::int32_t>(written) == backwards(before));
    made.write(expr(beside(written, allowed).flip()));
    EXPECT_TRUE(elements_of<std::int32_t>(written) == before);
    made.write({{1}, {count - 1}}, beside(written, allowed).narrow(0, 0, count - 1));
    EXPECT_TRUE(std::equal(before.begin(), before.end() - 1,
                           elements_of<std::int32_t>(written).begin() + 1));
    copy(written, tensor::of<std::int32_t>(before, {count}));
  }
  change.commit();
  EXPECT_EQ(test::findings_of(file_), "");
}

TEST_F(AliasedArray, IsReadAsItWasBeforeThroughItsOwnTransaction) {
  transaction change = file_.begin();
  const writable_array made = change.create("a", spec());
  made.write(test::counting({count}, dtype::int32));
  const auto before = elements_of<std::int32_t>(made.map());
  made.write(expr(change.find("a")->map().flip()));
  EXPECT_TRUE(elements_of<std::int32_t>(made.map()) == backwards(before));
  copy(made.map(), expr(*change.find("a")).flip({0}));
  EXPECT_TRUE(elements_of<std::int32_t>(made.map()) == before);
}

// The tiles that `find` reads are those that the transaction replaces.
TEST_F(AliasedArray, InChunksIsReadAsItWasBeforeThroughItsOwnTransaction) {
  constexpr index_t few = 1000;
  transaction change = file_.begin();
  const writable_array made = change.create("a", {.dtype = dtype::int32,
                                                  .shape = {few},
                                                  .kind = array_kind::chunked,
                                                  .chunk_shape = dims{10}});
  made.write(test::counting({few}, dtype::int32));
  const auto elements = [&] { return elements_of<std::int32_t>(change.find("a")->read()); };
  const auto before = elements();
  made.write(expr(*change.find("a")).flip());
  EXPECT_EQ(elements(), backwards(before));
  eval_into(*made.tiles(), expr(change.find("a")->tiles()).flip());
  EXPECT_EQ(elements(), before);
  // Elementwise, nothing has to be computed before.
  made.write(expr(*change.find("a")) + 1);
  EXPECT_EQ(elements().front(), before.front() + 1);
  change.commit();
  change = file_.begin();
  const writable_array again = change.update("a");
  again.write(cumulative_sum(expr(*change.find("a")).flip(), 0));
  std::int64_t total = 0;
  for (const std::int32_t number : before) total += number + 1;
  EXPECT_EQ(elements().back(), static_cast<std::int32_t>(total));
  EXPECT_EQ(elements().front(), before.back() + 1);
}

TEST_F(AliasedArray, IsNoSecondOutput) {
  transaction change = file_.begin();
  const writable_array made = change.create("a", spec());
  const tensor first = made.map();
  const tensor second = beside(first, access::read_write);
  EXPECT_EQ(code_of([&] {
              apply(
                  [](std::int32_t& x, std::int32_t& y) {
                    x = 1;
                    y = 2;
                  },
                  first.narrow(0, 1, count - 1), second.narrow(0, 0, count - 1));
            }),
            errc::invalid_argument);
}

// A newer generation is never written into bytes that an older one shows.
TEST_F(AliasedArray, OfAnOlderGenerationIsNotCopied) {
  write_new("a", spec(), test::counting({count}, dtype::int32));
  const tensor old = at("a").map();
  transaction change = file_.begin();
  const tensor made = change.update("a").map();
  executor small({.threads = 1, .memory_bytes = 1000});
  const executor::scope within(small);
  copy(made, old.flip());
  EXPECT_TRUE(elements_of<std::int32_t>(made) == backwards(elements_of<std::int32_t>(old)));
}

}  // namespace
}  // namespace shale
