// Tests the casts between every pair of dtypes. The oracle is `convert`, which shares no code with
// the kernels.
#include <gtest/gtest.h>

#include "ops/kernels/blocks.hpp"

namespace shale::test {
namespace {

/// Values that are hard to convert to the target: its limits, its ties, and the neighbours of both.
template <class From>
From hard_value(generator& random) {
  if constexpr (std::is_floating_point_v<From>) {
    switch (random() % 4) {
      case 0: {
        // Powers of two and their neighbours are the limits of integers, of float16 and of float8.
        const From power = std::ldexp(From(1), static_cast<int>(random() % 100) - 30);
        const From steps[] = {power, std::nextafter(power, From(0)),
                              std::nextafter(power, std::numeric_limits<From>::infinity())};
        return random() % 2 ? steps[random() % 3] : -steps[random() % 3];
      }
      case 1: {
        // Numbers of few significant bits include ties of every narrower float.
        const auto bits = static_cast<From>(random() % 8192);
        return std::ldexp(bits, static_cast<int>(random() % 60) - 40) * (random() % 2 ? 1 : -1);
      }
      case 2:
        return bits_to<From>(random());
      default:
        return some_value<From>(random);
    }
  } else if constexpr (is_complex<From>) {
    const auto real = hard_value<typename From::value_type>(random);
    return From(real, random() % 4 == 0 ? typename From::value_type(0)
                                        : hard_value<typename From::value_type>(random));
  } else if constexpr (std::is_same_v<From, bool>) {
    return random() % 2 == 0;
  } else if constexpr (std::is_integral_v<From>) {
    if (random() % 2) return some_value<From>(random);
    return static_cast<From>((random() >> (random() % 64)) + random() % 3 - 1);
  } else {
    return bits_to<From>(random());
  }
}

/// A cast without its C++ types, so that one test body serves all pairs.
struct expectation {
  dtype from, to;
  void (*draw)(std::byte* to, generator& random);
  void (*oracle)(std::byte* out, const std::byte* in);
  std::string (*show_from)(const std::byte*);
  std::string (*show_to)(const std::byte*);
};

void expect(const expectation& tested) {
  generator random(static_cast<unsigned>(tested.from) * 32 + static_cast<unsigned>(tested.to));
  const std::size_t from_bytes = item_bytes(tested.from), to_bytes = item_bytes(tested.to);
  for (const extents size : {extents{1, 70}, extents{33, 20}, extents{1500, 2}}) {
    block in(from_bytes, input_layout(from_bytes, size, random), size.inner, size.outer);
    for (index_t row = 0; row < size.outer; ++row)
      for (index_t column = 0; column < size.inner; ++column)
        tested.draw(in.element(column, row), random);
    for (const ops::isa isa : usable_isas()) {
      block out(to_bytes, distinct_layout(to_bytes, size, random), size.inner, size.outer);
      run(ops::kernels_for(isa).casts[static_cast<int>(tested.from)][static_cast<int>(tested.to)],
          {&out, &in});
      ASSERT_TRUE(out.untouched_between()) << name(tested.from) << " to " << name(tested.to);
      for (index_t row = 0; row < size.outer; ++row) {
        for (index_t column = 0; column < size.inner; ++column) {
          const std::byte *value = in.element(column, row), *got = out.element(column, row);
          std::byte wanted[16];
          tested.oracle(wanted, value);
          ASSERT_EQ(std::memcmp(got, wanted, to_bytes), 0)
              << name(tested.from) << " to " << name(tested.to) << " with " << name(isa) << " of "
              << tested.show_from(value) << ": got " << tested.show_to(got) << ", wanted "
              << tested.show_to(wanted);
        }
      }
    }
  }
}

template <class To, class From>
void expect_cast() {
  expect({dtype_of<From>(), dtype_of<To>(),
          [](std::byte* to, generator& random) { write(to, hard_value<From>(random)); },
          [](std::byte* out, const std::byte* in) { write(out, convert<To>(read<From>(in))); },
          show_bytes<From>, show_bytes<To>});
}

template <class From>
void expect_casts_from() {
  [&]<class... To>(type_list<To...>) { (expect_cast<To, From>(), ...); }(all_types{});
}

TEST(Casts, FollowConvertForEveryPair) {
  [&]<class... From>(type_list<From...>) { (expect_casts_from<From>(), ...); }(all_types{});
}

/// Converts all values of a small format, and converts them back.
template <class Small, class Bits>
void expect_exhaustive() {
  std::vector<Bits> all(std::size_t{1} << (8 * sizeof(Bits)));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Bits>(i);
  const auto count = static_cast<index_t>(all.size());
  for (const ops::isa isa : usable_isas()) {
    std::vector<float> wide(all.size());
    const auto& casts = ops::kernels_for(isa).casts;
    std::byte* out[] = {reinterpret_cast<std::byte*>(wide.data()),
                        reinterpret_cast<std::byte*>(all.data())};
    const index_t up[] = {4, sizeof(Bits), 0, 0};
    casts[static_cast<int>(dtype_of<Small>())][static_cast<int>(dtype::float32)](out, up, count, 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float wanted = Small::from_bits(all[i]);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(wanted)) << i;
    }
    std::vector<Bits> narrow(all.size());
    std::byte* back[] = {reinterpret_cast<std::byte*>(narrow.data()),
                         reinterpret_cast<std::byte*>(wide.data())};
    const index_t down[] = {sizeof(Bits), 4, 0, 0};
    casts[static_cast<int>(dtype::float32)][static_cast<int>(dtype_of<Small>())](back, down, count,
                                                                                 1);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (wide[i] == wide[i]) {
        ASSERT_EQ(narrow[i], all[i]);
      }
  }
}

TEST(Casts, KeepEveryValueOfTheSmallFloats) {
  expect_exhaustive<float16, std::uint16_t>();
  expect_exhaustive<bfloat16, std::uint16_t>();
  expect_exhaustive<float8_e4m3fn, std::uint8_t>();
  expect_exhaustive<float8_e5m2, std::uint8_t>();
}

}  // namespace
}  // namespace shale::test
