// Kernels that convert every dtype to every other.
#include "ops/kernels/elementwise/loops.hpp"
#include "ops/kernels/elementwise/small_float_vectors.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

using numbers = type_list<boolean, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                          std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, half, brain,
                          float, double, complex_of<float>, complex_of<double>, e4m3fn, e5m2>;

template <std::size_t bytes>
struct bytes_of {
  std::uint64_t words[bytes / 8];
};

template <std::size_t bytes>
using unsigned_of = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<
        bytes == 2, std::uint16_t,
        std::conditional_t<bytes == 4, std::uint32_t,
                           std::conditional_t<bytes == 8, std::uint64_t, bytes_of<bytes>>>>>;

template <class T>
inline constexpr bool has_vectors = std::is_same_v<T, half> || std::is_same_v<T, brain>;

template <class Small>
void smalls_to_floats(std::byte* const* data, index_t count) {
  widen_run(reinterpret_cast<const Small*>(data[1]), reinterpret_cast<float*>(data[0]), count);
}

template <class Small>
void floats_to_smalls(std::byte* const* data, index_t count) {
  narrow_run(reinterpret_cast<const float*>(data[1]), reinterpret_cast<Small*>(data[0]), count);
}

template <class To, class From>
constexpr kernel cast_kernel() {
  if constexpr (std::is_same_v<To, float> && has_vectors<From>) {
    return &run<&smalls_to_floats<From>, sizeof(float), sizeof(From)>;
  } else if constexpr (has_vectors<To> && std::is_same_v<From, float>) {
    return &run<&floats_to_smalls<To>, sizeof(To), sizeof(float)>;
  } else if constexpr (std::is_same_v<To, From>) {
    using Word = unsigned_of<sizeof(To)>;
    return kernel_for<Word, Word>([](Word value) { return value; });
  } else if constexpr (is_integer<To> && is_integer<From>) {
    // Integers convert modulo 2^n. Narrowing does not depend on the sign; widening extends it.
    using Source = std::conditional_t<sizeof(To) <= sizeof(From), std::make_unsigned_t<From>, From>;
    using Target = std::make_unsigned_t<To>;
    return kernel_for<Target, Source>([](Source value) { return static_cast<Target>(value); });
  } else if constexpr (is_boolean<To> && is_integer<From>) {
    using Source = std::make_unsigned_t<From>;
    return kernel_for<To, Source>([](Source value) { return to<To>(value); });
  } else {
    return kernel_for<To, From>([](From value) { return to<To>(value); });
  }
}

}  // namespace

void fill_casts(kernel_table& table) {
  for_types(numbers{}, [&]<class From>(From) {
    for_types(numbers{}, [&]<class To>(To) {
      table.set_cast(type_of<From>, type_of<To>, cast_kernel<To, From>());
    });
  });
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
