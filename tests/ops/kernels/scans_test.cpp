// Tests scanners for every dtype, layout, scanned axis and instruction set. The oracle goes through
// the values one by one, in wider arithmetic.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "ops/kernels/blocks.hpp"

namespace shale::test {
namespace {

using ops::scan;

// The type has 113 bits, so sums of a few thousand doubles of similar size are nearly exact.
__extension__ typedef __float128 quad;

std::vector<extents> scanned_extents() {
  return {{1, 1}, {1, 600}, {2, 900}, {3, 40}, {5, 5}, {700, 3}, {1030, 2}, {40, 130}, {5000, 1}};
}

struct scanned {
  std::vector<std::byte> results;  // row-major
  std::vector<std::byte> states;
};

/// Scans a block along its inner or its outer axis. Every state first takes in `before`, one value.
scanned scan_block(ops::isa isa, scan kind, dtype type, block& values, block& results,
                   bool along_inner, const std::byte* before) {
  const ops::kernels::kernel_table& table = ops::kernels_for(isa);
  const ops::scanner& how = table.scanners[static_cast<int>(kind)][static_cast<int>(type)];
  const ops::reducer& fold =
      table.reducers[static_cast<int>(ops::reduction_of(kind))][static_cast<int>(type)];
  EXPECT_NE(how.scan, nullptr);
  const index_t count = along_inner ? values.outer() : values.inner();
  const auto bytes = static_cast<index_t>(fold.state_bytes);
  std::vector<std::uint64_t> memory(static_cast<std::size_t>(count * bytes) / 8);
  auto* const states = reinterpret_cast<std::byte*>(memory.data());
  fold.start(states, count);
  for (index_t k = 0; k < count; ++k) {
    std::byte* data[] = {states + k * bytes, const_cast<std::byte*>(before)};
    const index_t strides[] = {0, 0, 0, 0};
    fold.accumulate(data, strides, 1, 1);
  }
  std::byte* data[] = {results.first(), states, values.first()};
  const index_t strides[] = {results.layout().inner_stride, along_inner ? 0 : bytes,
                             values.layout().inner_stride,  results.layout().outer_stride,
                             along_inner ? bytes : 0,       values.layout().outer_stride};
  how.scan(data, strides, values.inner(), values.outer());
  EXPECT_TRUE(results.untouched_between());

  scanned all;
  const std::size_t item = item_bytes(how.result);
  for (index_t row = 0; row < results.outer(); ++row)
    for (index_t column = 0; column < results.inner(); ++column)
      all.results.insert(all.results.end(), results.element(column, row),
                         results.element(column, row) + item);
  all.states.resize(static_cast<std::size_t>(count) * item);
  fold.finish(states, all.states.data(), count, 0);
  return all;
}

/// Checks a scan of random values: `agrees(got, values)` compares a result with the values up to
/// its own, `before` first. All instruction sets and layouts must give the same bits.
template <class Out, class T, class Draw, class Agrees>
void expect_scanned(scan kind, Draw draw, Agrees agrees) {
  generator random(static_cast<unsigned>(kind) * 64 + static_cast<unsigned>(dtype_of<T>()));
  for (const extents& size : scanned_extents()) {
    for (const bool along_inner : {true, false}) {
      const auto made = [&](block_layout layout) {
        return block(sizeof(T), layout, size.inner, size.outer);
      };
      const auto place = [&](block_layout layout) {
        return block(sizeof(Out), layout, size.inner, size.outer);
      };
      const auto item = static_cast<index_t>(sizeof(T));
      const auto out = static_cast<index_t>(sizeof(Out));
      block dense = made({item, item * size.inner});
      block spread = made(distinct_layout(sizeof(T), size, random));
      for (index_t row = 0; row < size.outer; ++row)
        for (index_t column = 0; column < size.inner; ++column) {
          dense.set<T>(column, row, draw(random));
          spread.set<T>(column, row, dense.get<T>(column, row));
        }
      const T before = draw(random);
      std::byte before_bytes[sizeof(T)];
      std::memcpy(before_bytes, &before, sizeof(T));
      scanned first;
      for (const ops::isa isa : usable_isas()) {
        block into = place({out, out * size.inner});
        const auto got =
            scan_block(isa, kind, dtype_of<T>(), dense, into, along_inner, before_bytes);
        if (first.results.empty()) first = got;
        ASSERT_EQ(got.results, first.results) << name(isa) << " differs from the baseline";
        ASSERT_EQ(got.states, first.states);
        block elsewhere = place(distinct_layout(sizeof(Out), size, random));
        ASSERT_EQ(scan_block(isa, kind, dtype_of<T>(), spread, elsewhere, along_inner, before_bytes)
                      .results,
                  first.results)
            << name(isa) << " depends on the layout";
        if constexpr (std::is_same_v<Out, T>) {
          block same = dense;
          ASSERT_EQ(
              scan_block(isa, kind, dtype_of<T>(), same, same, along_inner, before_bytes).results,
              first.results)
              << name(isa) << " in place";
        }
      }
      for (index_t lane = 0; lane < (along_inner ? size.outer : size.inner); ++lane) {
        std::vector<T> so_far{before};
        for (index_t k = 0; k < (along_inner ? size.inner : size.outer); ++k) {
          const index_t column = along_inner ? k : lane, row = along_inner ? lane : k;
          so_far.push_back(dense.get<T>(column, row));
          const auto got = read<Out>(first.results.data() + (row * size.inner + column) * out);
          ASSERT_TRUE(agrees(got, so_far))
              << "scan " << static_cast<int>(kind) << ' ' << name(dtype_of<T>()) << " of "
              << size.outer << " x " << size.inner << (along_inner ? " rows" : " columns") << " at "
              << row << ", " << column << ": " << show(got);
        }
        ASSERT_TRUE(agrees(read<Out>(first.states.data() + lane * out), so_far));
      }
    }
  }
}

template <class T>
class IntegerScans : public testing::Test {};
using integer_list = testing::Types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                    std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(IntegerScans, integer_list);

// The oracle keeps what it has computed for all but the last value.
template <class T, class Value, class Step>
auto running(Value start, Step step) {
  return [=, value = start, seen = std::size_t{0}](const std::vector<T>& values) mutable {
    if (values.size() <= seen) {
      value = start;
      seen = 0;
    }
    for (; seen < values.size(); ++seen) value = step(value, values[seen]);
    return value;
  };
}

TYPED_TEST(IntegerScans, AreExactModulo64Bits) {
  using T = TypeParam;
  using Total = std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, std::int64_t,
                                   std::uint64_t>;
  const auto draw = [](generator& random) { return static_cast<T>(random()); };
  expect_scanned<Total, T>(scan::sum, draw,
                           [sum = running<T>(std::uint64_t{0}, [](std::uint64_t a, T b) {
                              return a + static_cast<std::uint64_t>(b);
                            })](Total got, const std::vector<T>& values) mutable {
                             return got == static_cast<Total>(sum(values));
                           });
  const auto odd = [](generator& random) { return static_cast<T>(2 * random() + 1); };
  expect_scanned<Total, T>(scan::product, odd,
                           [product = running<T>(std::uint64_t{1}, [](std::uint64_t a, T b) {
                              return a * static_cast<std::uint64_t>(b);
                            })](Total got, const std::vector<T>& values) mutable {
                             return got == static_cast<Total>(product(values));
                           });
}

template <class T>
void expect_extrema() {
  const auto draw = [](generator& random) {
    return random() % 700 == 0 ? some_value<T>(random)
                               : convert<T>(static_cast<double>(random() % 90));
  };
  for (const bool largest : {false, true}) {
    const auto better = [largest](std::optional<T> a, T b) -> std::optional<T> {
      if (!a) return b;
      const auto x = convert<double>(*a), y = convert<double>(b);
      if (x != x) return a;
      if (y != y) return b;
      if (x == y && x == 0) return (std::signbit(y) != largest) ? b : a;
      if constexpr (std::is_integral_v<T>) return (largest ? b > *a : b < *a) ? b : a;
      else return (largest ? y > x : y < x) ? b : a;
    };
    expect_scanned<T, T>(
        largest ? scan::maximum : scan::minimum, draw,
        [best = running<T>(std::optional<T>(), better)](
            T got, const std::vector<T>& values) mutable { return same(got, *best(values)); });
  }
}

TYPED_TEST(IntegerScans, FindExtrema) { expect_extrema<TypeParam>(); }

template <class T>
class FloatScans : public testing::Test {};
using float_list = testing::Types<float16, bfloat16, float, double>;
TYPED_TEST_SUITE(FloatScans, float_list);

/// The relative error of one rounding to T.
template <class T>
constexpr double rounding = std::is_same_v<T, double>    ? 0x1p-53
                            : std::is_same_v<T, float>   ? 0x1p-24
                            : std::is_same_v<T, float16> ? 0x1p-11
                                                         : 0x1p-8;

TYPED_TEST(FloatScans, FindExtrema) { expect_extrema<TypeParam>(); }

// The terms are whole numbers and fractions of both signs, so sums are much smaller than the sum of
// their magnitudes.
TYPED_TEST(FloatScans, AddInDoublesOrBetter) {
  using T = TypeParam;
  const auto draw = [](generator& random) {
    return T(static_cast<float>(std::uniform_real_distribution<double>(-1, 1)(random)));
  };
  expect_scanned<T, T>(scan::sum, draw, [sum = running<T>(quad{0}, [](quad a, T b) {
                                           return a + static_cast<quad>(static_cast<double>(b));
                                         })](T got, const std::vector<T>& values) mutable {
    const auto wanted = static_cast<double>(sum(values));
    const double accumulated =
        std::is_same_v<T, double> ? 1e-28 : static_cast<double>(values.size()) * 0x1p-52;
    return std::fabs(static_cast<double>(got) - wanted) <=
           std::fabs(wanted) * rounding<T> * 1.01 + accumulated +
               (std::is_same_v<T, float16> ? 0x1p-25 : 0);
  });
}

TYPED_TEST(FloatScans, MultiplyInDoubles) {
  using T = TypeParam;
  const auto draw = [](generator& random) {
    const double size = std::uniform_real_distribution<double>(0.9, 1.1)(random);
    return T(static_cast<float>(random() % 2 == 0 ? size : -size));
  };
  expect_scanned<T, T>(scan::product, draw, [product = running<T>(quad{1}, [](quad a, T b) {
                                               return a * static_cast<quad>(static_cast<double>(b));
                                             })](T got, const std::vector<T>& values) mutable {
    const auto wanted = static_cast<double>(product(values));
    if (std::is_same_v<T, float16> && (std::fabs(wanted) > 60000 || std::fabs(wanted) < 1e-4))
      return true;
    return std::fabs(static_cast<double>(got) - wanted) <=
           std::fabs(wanted) * (rounding<T> * 1.01 + static_cast<double>(values.size()) * 0x1p-52);
  });
}

// Infinities stay, and opposite ones make a NaN; what came before is not lost.
TYPED_TEST(FloatScans, KeepInfinities) {
  using T = TypeParam;
  const auto draw = [](generator& random) {
    const auto huge = std::numeric_limits<double>::infinity();
    const std::uint64_t choice = random() % 900;
    return convert<T>(choice == 0 ? huge : choice == 1 ? -huge : 1.0);
  };
  expect_scanned<T, T>(scan::sum, draw, [sum = running<T>(0.0, [](double a, T b) {
                                           return a + convert<double>(b);
                                         })](T got, const std::vector<T>& values) mutable {
    return same(got, convert<T>(sum(values)));
  });
}

template <class Part>
void expect_complex() {
  using T = std::complex<Part>;
  using L = std::complex<long double>;
  const auto draw = [](generator& random) {
    const auto angle = std::uniform_real_distribution<double>(-3, 3)(random);
    return T(static_cast<Part>(std::cos(angle)), static_cast<Part>(std::sin(angle)));
  };
  const auto near = [](const T& got, const L& wanted, std::size_t count) {
    const long double most =
        static_cast<long double>(std::numeric_limits<Part>::epsilon()) * (1 + std::abs(wanted)) +
        static_cast<long double>(count) * 0x1p-50L;
    return std::abs(L(got) - wanted) <= most;
  };
  expect_scanned<T, T>(scan::sum, draw, [&, sum = running<T>(L(0), [](L a, T b) {
                                              return a + L(b);
                                            })](T got, const std::vector<T>& values) mutable {
    return near(got, sum(values), values.size());
  });
  expect_scanned<T, T>(scan::product, draw, [&, product = running<T>(L(1), [](L a, T b) {
                                                  return a * L(b);
                                                })](T got, const std::vector<T>& values) mutable {
    return near(got, product(values), values.size());
  });
}

TEST(ComplexScans, AddAndMultiplyBothParts) {
  expect_complex<float>();
  expect_complex<double>();
}

TEST(Scanners, ExistForWhatReducersExist) {
  for (const scan kind : {scan::sum, scan::product, scan::minimum, scan::maximum})
    for (int type = 0; type < ops::kernels::dtype_limit; ++type) {
      const auto reducer = ops::find_reducer(ops::reduction_of(kind), static_cast<dtype>(type));
      const auto scanner = ops::find_scanner(kind, static_cast<dtype>(type));
      ASSERT_EQ(reducer != nullptr, scanner != nullptr) << static_cast<int>(kind) << ' ' << type;
      if (!reducer) continue;
      EXPECT_EQ(reducer->result, scanner->result);
    }
}

}  // namespace
}  // namespace shale::test
