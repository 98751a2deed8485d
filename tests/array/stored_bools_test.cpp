// Tests that containers hold bools as 0 and 1, as the file format says, though a tensor of bools
// may have any bytes.
#include "core/stored_bools.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/evaluate.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/tile_source.hpp"

namespace shale {
namespace {

using test::findings_of;

class StoredBools : public test::fresh_container {
 protected:
  static constexpr index_t rows = 37, columns = 19;

  // Every third element is 0; the others take all other values of a byte.
  static std::uint8_t byte_at(index_t i) {
    return i % 3 == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(1 + i % 255);
  }

  static tensor strange(const storage& bytes) {
    auto* first = reinterpret_cast<std::uint8_t*>(bytes.data());
    for (index_t i = 0; i < rows * columns; ++i) first[i] = byte_at(i);
    return tensor(bytes, dtype::boolean, layout({rows, columns}));
  }

  // The stored bytes, whatever the dtype makes of them.
  void expect_truths(const array& stored) {
    const tensor bytes = stored.read().view_as(dtype::uint8);
    for (index_t row = 0; row < rows; ++row)
      for (index_t column = 0; column < columns; ++column)
        ASSERT_EQ(bytes.at({row, column}).as<int>(), byte_at(row * columns + column) != 0 ? 1 : 0)
            << row << ", " << column;
  }
};

TEST_F(StoredBools, AreZeroOrOneHoweverTheyAreWritten) {
  const tensor on_heap = strange(storage::allocate(rows * columns));
  const tensor mapped = strange(create_file(directory_ / "bools", rows * columns));
  const std::vector<std::pair<std::string, std::function<void(const writable_array&)>>> ways = {
      {"tensor", [&](const auto& to) { to.write(on_heap); }},
      {"mapped tensor", [&](const auto& to) { to.write(mapped); }},
      {"expression", [&](const auto& to) { to.write(where(expr(true), on_heap, false)); }},
      {"regions",
       [&](const auto& to) {
         to.write({{0, 0}, {20, columns}}, on_heap.narrow(0, 0, 20));
         to.write({{20, 0}, {rows - 20, columns}}, mapped.narrow(0, 20, rows - 20));
       }},
      {"strided tensor",
       [&](const auto& to) { to.write(on_heap.swapaxes(0, 1).clone().swapaxes(0, 1)); }},
  };
  const auto spec = [](const std::optional<dims>& chunk) {
    return array_spec{.dtype = dtype::boolean,
                      .shape = {rows, columns},
                      .kind = chunk ? array_kind::chunked : array_kind::dense,
                      .chunk_shape = chunk};
  };
  for (const std::optional<dims>& chunk : {std::optional<dims>(), std::optional(dims{8, 5})}) {
    transaction change = file_.begin();
    std::vector<std::string> names;
    for (const auto& [way, write] : ways) {
      names.push_back(way + (chunk ? ", chunked" : ", dense"));
      write(change.create(names.back(), spec(chunk)));
    }
    if (chunk) {
      names.emplace_back("tiles");
      change.create("tiles", spec(dims{rows, columns})).tiles()->store({0, 0}, on_heap);
    }
    change.commit();
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      expect_truths(at(name));
    }
  }
  EXPECT_EQ(on_heap.view_as(dtype::uint8).at({0, 1}).as<int>(), byte_at(1)) << "the source is kept";
  EXPECT_EQ(findings_of(file_), "");
}

}  // namespace
}  // namespace shale
