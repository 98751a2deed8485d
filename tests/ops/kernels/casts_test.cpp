// Every pair of dtypes against `convert`, whose code the kernels do not share.
#include <gtest/gtest.h>

#include "ops/kernels/blocks.hpp"

namespace shale::test {
namespace {

/// Values that are hard for that target: its ends, its ties, the neighbours of both.
template <class From>
From hard_value(generator& random) {
  if constexpr (std::is_floating_point_v<From>) {
    switch (random() % 4) {
      case 0: {
        // Powers of two and their neighbours: limits of the integers, of float16 and of float8.
        const From power = std::ldexp(From(1), static_cast<int>(random() % 100) - 30);
        const From steps[] = {power, std::nextafter(power, From(0)),
                              std::nextafter(power, std::numeric_limits<From>::infinity())};
        return random() % 2 ? steps[random() % 3] : -steps[random() % 3];
      }
      case 1: {
        // Few significant bits: ties of every narrower float.
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

/// What a test knows of a cast, without its types: one body serves all pairs.
struct expectation {
  dtype from, to;
  void (*draw)(std::byte* to, generator& random);
  void (*oracle)(std::byte* out, const std::byte* in);
  std::string (*show_from)(const std::byte*);
  std::string (*show_to)(const std::byte*);
};

void expect(const expectation& of) {
  generator random(static_cast<unsigned>(of.from) * 32 + static_cast<unsigned>(of.to));
  const std::size_t from = item_bytes(of.from), to = item_bytes(of.to);
  for (const extents each : {extents{1, 70}, extents{33, 20}, extents{1500, 2}}) {
    block in(from, input_layout(from, each, random), each.inner, each.outer);
    for (index_t row = 0; row < each.outer; ++row)
      for (index_t column = 0; column < each.inner; ++column)
        of.draw(in.element(column, row), random);
    for (const ops::isa isa : usable_isas()) {
      block out(to, distinct_layout(to, each, random), each.inner, each.outer);
      run(ops::kernels_for(isa).casts[static_cast<int>(of.from)][static_cast<int>(of.to)],
          {&out, &in});
      ASSERT_TRUE(out.untouched_between()) << name(of.from) << " to " << name(of.to);
      for (index_t row = 0; row < each.outer; ++row) {
        for (index_t column = 0; column < each.inner; ++column) {
          const std::byte *value = in.element(column, row), *got = out.element(column, row);
          std::byte wanted[16];
          of.oracle(wanted, value);
          ASSERT_EQ(std::memcmp(got, wanted, to), 0)
              << name(of.from) << " to " << name(of.to) << " with " << name(isa) << " of "
              << of.show_from(value) << ": got " << of.show_to(got) << ", wanted "
              << of.show_to(wanted);
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

/// All values of a small format, there and back.
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
