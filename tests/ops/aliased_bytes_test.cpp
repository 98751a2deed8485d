// Tests operands that are the same bytes at different addresses: a file that is mapped twice, a
// shared segment that is opened twice. Layouts are random and near one place of the file. The
// oracle is a loop over positions in a copy of the file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "shale/apply.hpp"
#include "shale/evaluate.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/masks.hpp"
#include "shale/ops.hpp"
#include "shale/scatter.hpp"
#include "shale/shared_memory.hpp"
#include "shale/take.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::as_list;
using test::code_of;
using test::index_list;
using test::positions_of;
using test::random_choices;
using test::sharing;

using number = std::int32_t;
constexpr index_t number_bytes = sizeof(number);
constexpr index_t backing_bytes = index_t{1} << 18;

// The place in the file near which all operands lie: after several pages, and not at the start of
// one.
constexpr index_t place = 8400;

// The bytes that are mapped, and a function that maps them from byte `first` on.
struct backing {
  std::string name;
  std::function<storage(index_t first, access allowed)> open;
};

// A storage, and the position of its first byte in the file.
struct opening {
  storage bytes;
  index_t first = 0;
};

// Elements in a storage, and their bytes in the file.
struct operand {
  tensor values;
  index_t first = 0;

  index_list bytes_in_file() const {
    index_list result = positions_of(values);
    for (auto& position : result)
      position = first + position * static_cast<index_t>(values.item_bytes());
    return result;
  }
};

class image {
 public:
  explicit image(const storage& whole) : bytes_(test::bytes_of(whole)) {}

  std::vector<number> read(const operand& source) const {
    std::vector<number> result;
    for (const auto offset : source.bytes_in_file()) {
      number element;
      std::memcpy(&element, &bytes_[static_cast<std::size_t>(offset)], sizeof element);
      result.push_back(element);
    }
    return result;
  }

  void write(const operand& to, const std::vector<number>& elements) {
    const auto places = to.bytes_in_file();
    for (std::size_t i = 0; i < places.size(); ++i)
      std::memcpy(&bytes_[static_cast<std::size_t>(places[i])], &elements[i], sizeof(number));
  }

  void expect_as(const storage& whole) const { EXPECT_TRUE(test::bytes_of(whole) == bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class AliasedBytes : public testing::Test {
 protected:
  AliasedBytes() {
    create_file(path_, backing_bytes);
    backings_.push_back(
        {"file", [this](index_t first, access allowed) {
           return map_file(path_, {.offset = static_cast<std::uint64_t>(first), .access = allowed});
         }});
    backings_.push_back({"segment", [this](index_t first, access allowed) {
                           const storage whole = open_shared(segment_name_, {.access = allowed});
                           return whole.slice(static_cast<std::size_t>(first),
                                              static_cast<std::size_t>(backing_bytes - first));
                         }});
  }

  // Runs `body(choose, backing, whole)` for many seeds, over a backing of small numbers; `whole` is
  // a mapping of its own.
  template <class Body>
  void for_each_backing(std::uint64_t seeds, const Body& body) {
    for (const auto& file : backings_) {
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        SCOPED_TRACE(file.name + ", seed " + std::to_string(seed));
        random_choices choose(seed);
        storage whole = file.open(0, access::read_write);
        auto* const numbers = reinterpret_cast<number*>(whole.data());
        for (index_t i = 0; i < backing_bytes / number_bytes; ++i)
          numbers[i] = static_cast<number>((i * 37 + static_cast<index_t>(seed)) % 1009);
        body(choose, file, whole);
        if (HasFailure()) return;
      }
    }
  }

  static opening open(random_choices& choose, const backing& file, access allowed) {
    constexpr index_t firsts[] = {0, 4, 60, 4096, 4100, 8192, 8200};
    const index_t first = firsts[choose(0, 6)];
    return {file.open(first, allowed), first};
  }

  // A view with that geometry near `place`. The storage is a slice, or the layout has an offset.
  static operand lay(random_choices& choose, const opening& in, const test::placed_layout& placed,
                     dtype type = dtype::int32) {
    const auto item = static_cast<index_t>(item_bytes(type));
    const index_t start = place + number_bytes * choose(-12, 12) - in.first;
    if (choose(0, 1) == 0) {
      const storage part = in.bytes.slice(static_cast<std::size_t>(start),
                                          static_cast<std::size_t>(placed.positions * item));
      return {tensor(part, type, placed.geometry), in.first + start};
    }
    const auto& view = placed.geometry;
    return {
        tensor(in.bytes, type, layout(view.shape(), view.strides(), view.offset() + start / item)),
        in.first};
  }

  static dims some_shape(random_choices& choose) {
    return test::random_shape(choose, {.axes_max = 3, .longest = 5});
  }

  // A random layout that fits into the backing after `place`.
  static test::placed_layout some_layout(random_choices& choose, const dims& shape,
                                         sharing may_share) {
    for (;;) {
      const auto placed = test::random_layout(choose, shape, may_share);
      if (placed.positions < (backing_bytes - 2 * place) / number_bytes) return placed;
    }
  }

  static operand output(random_choices& choose, const backing& file, const dims& shape) {
    return lay(choose, open(choose, file, access::read_write),
               some_layout(choose, shape, sharing::distinct));
  }

  // The operand has a mapping of its own, with any access, because nothing is stored through it.
  static operand input(random_choices& choose, const backing& file, const dims& shape) {
    constexpr access kinds[] = {access::read_write, access::read_only, access::copy_on_write};
    return lay(choose, open(choose, file, kinds[choose(0, 2)]),
               some_layout(choose, shape, sharing::allowed));
  }

  static std::vector<number> broadcast(const std::vector<number>& elements, const dims& from,
                                       const dims& to) {
    std::vector<number> result;
    for (const auto position : test::broadcast_positions(from, to))
      result.push_back(elements[static_cast<std::size_t>(position)]);
    return result;
  }

  executor on_{{.threads = 2}};
  executor::scope within_{on_};
  std::vector<backing> backings_;

 private:
  test::scratch_directory directory_;
  const std::string path_ = directory_ / "bytes";
  const std::string segment_name_ = "aliased-bytes-test." + std::to_string(::getpid());
  const storage segment_ = create_shared(segment_name_, backing_bytes);
};

TEST_F(AliasedBytes, AreCopiedBetweenAsTheyWereBefore) {
  for_each_backing(400, [&](random_choices& choose, const backing& file, const storage& whole) {
    const dims shape = some_shape(choose);
    const operand out = output(choose, file, shape);
    const operand in = input(choose, file, test::random_broadcastable(choose, shape));
    image expected(whole);
    expected.write(out, broadcast(expected.read(in), in.values.shape(), shape));
    copy(out.values, in.values);
    expected.expect_as(whole);
  });
}

TEST_F(AliasedBytes, OfAWholeFileAreFlipped) {
  for (const auto& file : backings_) {
    SCOPED_TRACE(file.name);
    storage written = file.open(0, access::read_write);
    const storage read = file.open(0, access::read_only);
    const index_t count = backing_bytes / number_bytes;
    auto* const numbers = reinterpret_cast<number*>(written.data());
    for (index_t i = 0; i < count; ++i) numbers[i] = static_cast<number>(i);
    const tensor to(written, dtype::int32, layout({count}));
    const tensor from(read, dtype::int32, layout({count}));
    copy(to, from.flip());
    index_t wrong = 0;
    for (index_t i = 0; i < count; ++i) wrong += numbers[i] != count - 1 - i;
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(AliasedBytes, InExpressionsAreReadAsTheyWereBefore) {
  for_each_backing(300, [&](random_choices& choose, const backing& file, const storage& whole) {
    const dims shape = some_shape(choose);
    const operand out = output(choose, file, shape);
    const operand a = input(choose, file, shape);
    const operand b = input(choose, file, test::random_broadcastable(choose, shape));
    image expected(whole);
    auto values = expected.read(a);
    const auto right = broadcast(expected.read(b), b.values.shape(), shape);
    const auto old = expected.read(out);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 3 * values[i] + right[i] - 2 * old[i];
    expected.write(out, values);
    eval_into(out.values, expr(a.values) * 3 + expr(b.values) - expr(out.values) * 2);
    expected.expect_as(whole);
  });
}

// Elements of another width, which begin between the others.
TEST_F(AliasedBytes, OfAnotherTypeAreReadAsTheyWereBefore) {
  for_each_backing(200, [&](random_choices& choose, const backing& file, const storage& whole) {
    const dims shape = some_shape(choose);
    const operand out = output(choose, file, shape);
    const operand in = lay(choose, open(choose, file, access::read_only),
                           some_layout(choose, shape, sharing::allowed), dtype::uint8);
    image expected(whole);
    std::vector<number> values;
    const auto bytes = test::bytes_of(whole);
    for (const auto offset : in.bytes_in_file())
      values.push_back(static_cast<number>(bytes[static_cast<std::size_t>(offset)]));
    expected.write(out, values);
    copy(out.values, in.values);
    expected.expect_as(whole);
  });
}

// The inputs of generators are not operands of the plan.
TEST_F(AliasedBytes, ThatAreGatheredAreReadAsTheyWereBefore) {
  for_each_backing(200, [&](random_choices& choose, const backing& file, const storage& whole) {
    // Some tensors have several blocks of a tape.
    const bool large = choose(0, 3) == 0;
    const index_t rows = choose(1, large ? 2 : 5),
                  columns = large ? choose(1500, 3000) : choose(1, 5);
    const operand out = output(choose, file, {rows, 2 * columns});
    const operand a = input(choose, file, {rows, columns});
    const operand b = input(choose, file, {rows, columns});
    image expected(whole);
    const auto left = expected.read(a), right = expected.read(b);
    std::vector<number> values;
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < 2 * columns; ++j)
        values.push_back(j < columns ? left[static_cast<std::size_t>(i * columns + j)]
                                     : right[static_cast<std::size_t>(i * columns + j - columns)]);
    expected.write(out, values);
    const std::vector<expr> parts{expr(a.values), expr(b.values)};
    eval_into(out.values, concat(parts, 1));
    expected.expect_as(whole);
  });
}

// Functions that evaluate at once, and `take`, read indices and values in place. The indices are
// int64, the output and the values int32: each has an opening of its own.
TEST_F(AliasedBytes, AreScatteredAndTakenAsTheyWereBefore) {
  for_each_backing(300, [&](random_choices& choose, const backing& file, const storage& whole) {
    const index_t count = choose(1, 9);
    const operand out = output(choose, file, {count});
    const operand values = input(choose, file, {count});
    const index_t start = place + 8 * choose(-6, 6);
    const storage opened = file.open(0, choose(0, 1) == 0 ? access::read_write : access::read_only);
    const operand indices{
        tensor(opened.slice(static_cast<std::size_t>(start), static_cast<std::size_t>(count) * 8),
               dtype::int64, layout({count})),
        start};
    std::vector<std::int64_t> positions;
    for (index_t i = 0; i < count; ++i) positions.push_back(choose(-count, count - 1));
    std::memcpy(const_cast<std::byte*>(whole.data()) + start, positions.data(),
                positions.size() * 8);
    image expected(whole);
    const auto from = expected.read(values);
    auto elements = expected.read(out);
    const auto target = [&](std::size_t k) {
      return static_cast<std::size_t>(positions[k] < 0 ? positions[k] + count : positions[k]);
    };
    const index_t function = choose(0, 3);
    std::size_t next = 0;
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (function == 0) elements[target(k)] = from[k];
      if (function == 1) elements[target(k)] += from[k];
      if (function == 2) elements[k] = from[target(k)];
      if (function == 3 && positions[k] != 0) elements[k] = from[next++];
    }
    expected.write(out, elements);
    if (function == 0) scatter(out.values, 0, indices.values, values.values);
    if (function == 1) index_add(out.values, 0, indices.values, values.values);
    if (function == 2) eval_into(out.values, take(values.values, indices.values));
    if (function == 3) masked_scatter(out.values, indices.values, values.values);
    expected.expect_as(whole);
  });
}

TEST_F(AliasedBytes, OfAMaskMayBeThoseOfTheOutput) {
  for_each_backing(200, [&](random_choices& choose, const backing& file, const storage& whole) {
    const index_t count = choose(1, 40);
    const operand out = output(choose, file, {count});
    const operand mask = lay(choose, open(choose, file, access::read_only),
                             some_layout(choose, {count}, sharing::allowed), dtype::boolean);
    const operand values = input(choose, file, {count});
    image expected(whole);
    const auto from = expected.read(values);
    auto elements = expected.read(out);
    const auto bytes = test::bytes_of(whole);
    std::size_t next = 0, k = 0;
    for (const auto offset : mask.bytes_in_file()) {
      if (bytes[static_cast<std::size_t>(offset)] != std::byte{}) elements[k] = from[next++];
      ++k;
    }
    expected.write(out, elements);
    masked_scatter(out.values, mask.values, values.values);
    expected.expect_as(whole);
  });
}

TEST_F(AliasedBytes, AreReducedAsTheyWereBefore) {
  for_each_backing(200, [&](random_choices& choose, const backing& file, const storage& whole) {
    const index_t rows = choose(1, 6), columns = choose(1, 6);
    const operand out = output(choose, file, {columns});
    const operand in = input(choose, file, {rows, columns});
    image expected(whole);
    const auto values = expected.read(in);
    auto sums = expected.read(out);
    for (std::size_t i = 0; i < values.size(); ++i)
      sums[i % static_cast<std::size_t>(columns)] += values[i];
    expected.write(out, sums);
    eval_into(out.values, sum(expr(in.values), dims{0}) + expr(out.values));
    expected.expect_as(whole);
  });
}

TEST_F(AliasedBytes, AreMultipliedAsTheyWereBefore) {
  for_each_backing(200, [&](random_choices& choose, const backing& file, const storage& whole) {
    const index_t m = choose(1, 5), k = choose(1, 5), n = choose(1, 5);
    const operand out = output(choose, file, {m, n});
    const operand a = input(choose, file, {m, k});
    const operand b = input(choose, file, {k, n});
    image expected(whole);
    const auto left = expected.read(a), right = expected.read(b);
    std::vector<number> products;
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) {
        number total = 0;
        for (index_t l = 0; l < k; ++l)
          total += left[static_cast<std::size_t>(i * k + l)] *
                   right[static_cast<std::size_t>(l * n + j)];
        products.push_back(total);
      }
    expected.write(out, products);
    eval_into(out.values, matmul(expr(a.values), expr(b.values)));
    expected.expect_as(whole);
  });
}

// ---- two outputs -------------------------------------------------------------------------------

bool share_a_byte(const operand& a, const operand& b) {
  const auto bytes_of = [](const operand& values) {
    std::set<index_t> bytes;
    for (const auto offset : values.bytes_in_file())
      for (index_t i = 0; i < number_bytes; ++i) bytes.insert(offset + i);
    return bytes;
  };
  const auto left = bytes_of(a);
  const auto right = bytes_of(b);
  return std::any_of(left.begin(), left.end(), [&](index_t byte) { return right.count(byte) > 0; });
}

TEST_F(AliasedBytes, AsTwoOutputsAreRefused) {
  int refused = 0, accepted = 0;
  for_each_backing(400, [&](random_choices& choose, const backing& file, const storage& whole) {
    const dims shape = some_shape(choose);
    const operand x = output(choose, file, shape);
    const operand y = output(choose, file, shape);
    const operand in = input(choose, file, shape);
    image expected(whole);
    const auto run = [&] {
      apply(
          [](number& first, number& second, number value) {
            first = value + 1;
            second = value - 1;
          },
          x.values, y.values, in.values);
    };
    if (share_a_byte(x, y)) {
      ++refused;
      EXPECT_EQ(code_of(run), errc::invalid_argument);
    } else {
      ++accepted;
      auto values = expected.read(in);
      for (auto& value : values) ++value;
      expected.write(x, values);
      for (auto& value : values) value -= 2;
      expected.write(y, values);
      run();
    }
    expected.expect_as(whole);
  });
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 100);
}

// ---- no overlap --------------------------------------------------------------------------------

std::uint64_t peak_of(const std::function<void()>& body) {
  auto& pool = memory_pool::default_pool();
  pool.reset_peak();
  const auto before = pool.statistics();
  body();
  return pool.statistics().peak_live_bytes - before.live_bytes;
}

// The same layout of the same bytes is computed in place, even through different mappings.
TEST_F(AliasedBytes, ElementOnElementAreNotCopied) {
  for_each_backing(1, [&](random_choices&, const backing& file, const storage& whole) {
    const index_t count = 30'000;
    const storage w = file.open(4100, access::read_write);
    const storage r = file.open(8192, access::read_only);
    const operand out{tensor(w, dtype::int32, layout({count}, {1}, 2000)), 4100};
    const operand in{tensor(r, dtype::int32, layout({count}, {1}, 2000 - (8192 - 4100) / 4)), 8192};
    image expected(whole);
    auto values = expected.read(in);
    for (auto& value : values) value = value * 2 + 1;
    expected.write(out, values);
    const auto run = [&] { eval_into(out.values, expr(in.values) * 2 + 1); };
    EXPECT_LT(peak_of(run), static_cast<std::uint64_t>(count * number_bytes));
    expected.expect_as(whole);
  });
}

TEST_F(AliasedBytes, OfDisjointRangesAreNotCopied) {
  for_each_backing(1, [&](random_choices&, const backing& file, const storage& whole) {
    const index_t count = 20'000;
    const storage w = file.open(4096, access::read_write);
    const storage r = file.open(0, access::read_only);
    const operand out{tensor(w, dtype::int32, layout({count}, {1}, 20'000)), 4096};
    const operand in{tensor(r, dtype::int32, layout({count}, {1}, 1'000)), 0};
    image expected(whole);
    expected.write(out, expected.read(in));
    EXPECT_LT(peak_of([&] { copy(out.values, in.values); }),
              static_cast<std::uint64_t>(count * number_bytes));
    expected.expect_as(whole);
  });
}

// ---- private mappings --------------------------------------------------------------------------

// A store into a private mapping is not visible through another mapping.
TEST_F(AliasedBytes, AreNotCopiedForAPrivateOutput) {
  for_each_backing(1, [&](random_choices&, const backing& file, const storage& whole) {
    const index_t count = backing_bytes / number_bytes;
    for (const access read : {access::read_only, access::copy_on_write, access::read_write}) {
      const tensor out(file.open(0, access::copy_on_write), dtype::int32, layout({count}));
      const tensor in(file.open(0, read), dtype::int32, layout({count}));
      const image unchanged(whole);
      const auto before = test::elements_of<number>(in);
      EXPECT_LT(peak_of([&] { copy(out, in.flip()); }), static_cast<std::uint64_t>(backing_bytes));
      EXPECT_EQ(test::elements_of<number>(out),
                std::vector<number>(before.rbegin(), before.rend()));
      EXPECT_EQ(test::elements_of<number>(in), before);
      unchanged.expect_as(whole);
    }
  });
}

// A page of a private mapping shows stores to the file until the first store into that page.
TEST_F(AliasedBytes, InAPrivateInputAreReadAsTheyWereBefore) {
  for_each_backing(1, [&](random_choices&, const backing& file, const storage& whole) {
    const index_t count = backing_bytes / number_bytes;
    const storage seen = file.open(0, access::copy_on_write);
    tensor in(seen, dtype::int32, layout({count}));
    const tensor out(file.open(0, access::read_write), dtype::int32, layout({count}));
    in.set({20'000}, 77);  // one page is this mapping's own from here on
    const auto before = test::elements_of<number>(in);
    copy(out, in.flip());
    EXPECT_EQ(test::elements_of<number>(tensor(whole, dtype::int32, layout({count}))),
              std::vector<number>(before.rbegin(), before.rend()));
  });
}

}  // namespace
}  // namespace shale
