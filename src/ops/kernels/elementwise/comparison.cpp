// Kernels of comparisons and predicates, whose results are bool.
#include "ops/kernels/elementwise/loops.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

inline boolean truth(int value) { return {static_cast<std::uint8_t>(value)}; }

template <class T>
void fill_equality(kernel_table& table, dtype type) {
  if constexpr (is_complex<T>) {
    table.set(operation::equal, type, kernel_for<boolean, T, T>([](T a, T b) {
                return truth((a.real == b.real) & (a.imaginary == b.imaginary));
              }));
    table.set(operation::not_equal, type, kernel_for<boolean, T, T>([](T a, T b) {
                return truth((a.real != b.real) | (a.imaginary != b.imaginary));
              }));
  } else {
    table.set(operation::equal, type,
              kernel_for<boolean, T, T>([](T a, T b) { return truth(number(a) == number(b)); }));
    table.set(operation::not_equal, type,
              kernel_for<boolean, T, T>([](T a, T b) { return truth(number(a) != number(b)); }));
  }
}

template <class T>
void fill_order(kernel_table& table, dtype type) {
  table.set(operation::less, type,
            kernel_for<boolean, T, T>([](T a, T b) { return truth(number(a) < number(b)); }));
  table.set(operation::less_equal, type,
            kernel_for<boolean, T, T>([](T a, T b) { return truth(number(a) <= number(b)); }));
  table.set(operation::greater, type,
            kernel_for<boolean, T, T>([](T a, T b) { return truth(number(a) > number(b)); }));
  table.set(operation::greater_equal, type,
            kernel_for<boolean, T, T>([](T a, T b) { return truth(number(a) >= number(b)); }));
}

/// Tests the bits of a float: if all bits of the exponent are set, the value is infinite or NaN.
template <class Bits>
inline bool finite(Bits bits, Bits exponent) {
  return (bits & exponent) != exponent;
}
inline bool finite(half a) { return finite<std::uint16_t>(a.bits, 0x7c00); }
inline bool finite(brain a) { return finite<std::uint16_t>(a.bits, 0x7f80); }
inline bool finite(float a) { return finite<std::uint32_t>(as_bits<std::uint32_t>(a), 0x7f800000); }
inline bool finite(double a) {
  return finite<std::uint64_t>(as_bits<std::uint64_t>(a), 0x7ff0000000000000);
}
inline bool nan(half a) { return (a.bits & 0x7fff) > 0x7c00; }
inline bool nan(brain a) { return (a.bits & 0x7fff) > 0x7f80; }
inline bool nan(float a) { return a != a; }
inline bool nan(double a) { return a != a; }

inline bool negative(half a) { return (a.bits >> 15) != 0; }
inline bool negative(brain a) { return (a.bits >> 15) != 0; }
inline bool negative(float a) { return (as_bits<std::uint32_t>(a) >> 31) != 0; }
inline bool negative(double a) { return (as_bits<std::uint64_t>(a) >> 63) != 0; }

template <class T>
inline bool infinite(T a) {
  return !(static_cast<int>(finite(a)) | static_cast<int>(nan(a)));
}

template <class T>
void fill_float_predicates(kernel_table& table) {
  table.set(operation::sign_bit, type_of<T>,
            kernel_for<boolean, T>([](T a) { return truth(negative(a)); }));
  table.set(operation::is_nan, type_of<T>,
            kernel_for<boolean, T>([](T a) { return truth(nan(a)); }));
  table.set(operation::is_finite, type_of<T>,
            kernel_for<boolean, T>([](T a) { return truth(finite(a)); }));
  table.set(operation::is_infinite, type_of<T>,
            kernel_for<boolean, T>([](T a) { return truth(infinite(a)); }));
}

template <class T>
void fill_complex_predicates(kernel_table& table) {
  table.set(operation::is_nan, type_of<T>, kernel_for<boolean, T>([](T a) {
              return truth(static_cast<int>(nan(a.real)) | static_cast<int>(nan(a.imaginary)));
            }));
  table.set(
      operation::is_finite, type_of<T>, kernel_for<boolean, T>([](T a) {
        return truth(static_cast<int>(finite(a.real)) & static_cast<int>(finite(a.imaginary)));
      }));
  // As the standard says, the other part may be NaN.
  table.set(
      operation::is_infinite, type_of<T>, kernel_for<boolean, T>([](T a) {
        return truth(static_cast<int>(infinite(a.real)) | static_cast<int>(infinite(a.imaginary)));
      }));
}

template <class T, class... Types>
void fill_not(kernel_table& table, Types... types) {
  const auto run = kernel_for<boolean, T>([](T a) { return truth(!is_nonzero(a)); });
  (table.set(operation::logical_not, types, run), ...);
}

}  // namespace

void fill_comparison(kernel_table& table) {
  for_types(integers{}, [&]<class T>(T) {
    fill_equality<std::make_unsigned_t<T>>(table, type_of<T>);
    fill_order<T>(table, type_of<T>);
    fill_not<std::make_unsigned_t<T>>(table, type_of<T>);
    table.set(operation::is_finite, type_of<T>,
              kernel_for<boolean, std::make_unsigned_t<T>>([](auto) { return truth(true); }));
  });
  fill_equality<boolean>(table, dtype::boolean);
  fill_order<boolean>(table, dtype::boolean);
  fill_not<boolean>(table, dtype::boolean);
  table.set(operation::is_finite, dtype::boolean,
            kernel_for<boolean, boolean>([](boolean) { return truth(true); }));
  for_types(wide_floats{}, [&]<class T>(T) {
    fill_equality<T>(table, type_of<T>);
    fill_order<T>(table, type_of<T>);
    fill_not<T>(table, type_of<T>);
  });
  for_types(complexes{}, [&]<class T>(T) {
    fill_equality<T>(table, type_of<T>);
    fill_not<T>(table, type_of<T>);
    fill_complex_predicates<T>(table);
  });
  fill_not<half>(table, dtype::float16, dtype::bfloat16);
  for_types(type_list<half, brain, float, double>{},
            [&]<class T>(T) { fill_float_predicates<T>(table); });
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
