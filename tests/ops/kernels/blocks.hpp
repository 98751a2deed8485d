// Makes blocks of elements in every layout that a kernel may meet, for tests of kernels.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ops/kernels/dispatch/dispatch.hpp"
#include "shale/convert.hpp"
#include "shale/dtype.hpp"

namespace shale::test {

using generator = std::mt19937_64;

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

template <class T>
T bits_to(std::uint64_t bits) {
  T result;
  std::memcpy(static_cast<void*>(&result), &bits, sizeof(T));
  return result;
}

/// A limit, a zero, a denormal, an infinity, a NaN, a small number, or arbitrary bits.
template <class T>
T some_value(generator& random) {
  if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 0;
  } else if constexpr (is_complex<T>) {
    const auto real = some_value<typename T::value_type>(random);
    return T(real, some_value<typename T::value_type>(random));
  } else if constexpr (std::is_integral_v<T>) {
    using limits = std::numeric_limits<T>;
    switch (random() % 8) {
      case 0: {
        const T special[] = {0,
                             1,
                             static_cast<T>(-1),
                             limits::min(),
                             limits::max(),
                             static_cast<T>(limits::max() - 1),
                             static_cast<T>(limits::min() + 1)};
        return special[random() % std::size(special)];
      }
      case 1:
        return static_cast<T>(random());
      default:
        return static_cast<T>(static_cast<std::int64_t>(random() % 41) - 20);
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    using limits = std::numeric_limits<T>;
    switch (random() % 8) {
      case 0: {
        const T special[] = {T(0),
                             -T(0),
                             T(1),
                             T(-1),
                             limits::infinity(),
                             -limits::infinity(),
                             limits::quiet_NaN(),
                             limits::max(),
                             limits::lowest(),
                             limits::min(),
                             limits::denorm_min(),
                             -limits::denorm_min(),
                             T(0.5),
                             T(2.5)};
        return special[random() % std::size(special)];
      }
      case 1: {
        const T any = bits_to<T>(random());
        return any == any ? any : limits::quiet_NaN();
      }
      case 2:
        return static_cast<T>(static_cast<int>(random() % 41) - 20);
      default:
        return static_cast<T>(std::uniform_real_distribution<double>(-50, 50)(random));
    }
  } else {
    if (random() % 4 == 0) return T(some_value<float>(random));
    return T(static_cast<float>(std::uniform_real_distribution<double>(-50, 50)(random)));
  }
}

/// Whether both have equal bits, or both are NaN, whose sign and payload may differ.
template <class T>
bool same(T a, T b) {
  if constexpr (is_complex<T>) return same(a.real(), b.real()) && same(a.imag(), b.imag());
  else if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T>) return a == b;
  else {
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    return x != x ? y != y : x == y && std::signbit(x) == std::signbit(y);
  }
}

template <class T>
std::string show(T value) {
  char text[96];
  if constexpr (is_complex<T>) {
    return "(" + show(value.real()) + ", " + show(value.imag()) + ")";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    const auto wide = static_cast<double>(value);
    std::snprintf(text, sizeof(text), "%a (%.9g)", wide, wide);
    return text;
  }
}

/// A value from its bytes.
template <class T>
T read(const std::byte* address) {
  T value;
  std::memcpy(static_cast<void*>(&value), address, sizeof(T));
  return value;
}

template <class T>
void write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

template <class T>
bool same_bytes(const std::byte* a, const std::byte* b) {
  return same(read<T>(a), read<T>(b));
}

template <class T>
std::string show_bytes(const std::byte* value) {
  return show(read<T>(value));
}

/// A two-dimensional layout in bytes.
struct block_layout {
  index_t inner_stride;
  index_t outer_stride;
};

/// One operand in memory with guard bytes around its elements, which must not change.
class block {
 public:
  block(std::size_t item, block_layout layout, index_t inner, index_t outer)
      : item_(item), layout_(layout), inner_(inner), outer_(outer) {
    const index_t inner_span = layout.inner_stride * (inner - 1);
    const index_t outer_span = layout.outer_stride * (outer - 1);
    const index_t low = std::min<index_t>(inner_span, 0) + std::min<index_t>(outer_span, 0);
    const index_t high = std::max<index_t>(inner_span, 0) + std::max<index_t>(outer_span, 0);
    // There are 64 guard bytes on both sides. The address is a multiple of the item's size only.
    bytes_.assign(static_cast<std::size_t>(high - low) + item + 256, std::byte{0xa5});
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    first_ = (64 - address % 64) % 64 + 64 + std::min<std::size_t>(item, 8) +
             static_cast<std::size_t>(-low);
  }

  std::byte* first() { return bytes_.data() + first_; }
  const block_layout& layout() const { return layout_; }
  index_t inner() const { return inner_; }
  index_t outer() const { return outer_; }

  template <class T>
  T get(index_t column, index_t row) const {
    T value;
    std::memcpy(static_cast<void*>(&value), at(column, row), sizeof(T));
    return value;
  }

  template <class T>
  void set(index_t column, index_t row, T value) {
    std::memcpy(const_cast<std::byte*>(at(column, row)), &value, sizeof(T));
  }

  /// The bytes of one element.
  const std::byte* element(index_t column, index_t row) const { return at(column, row); }
  std::byte* element(index_t column, index_t row) {
    return const_cast<std::byte*>(at(column, row));
  }

  template <class T>
  void fill(generator& random) {
    for (index_t row = 0; row < outer_; ++row)
      for (index_t column = 0; column < inner_; ++column) set(column, row, some_value<T>(random));
  }

  /// Whether no byte outside the elements has changed.
  bool untouched_between() const {
    std::vector<bool> element(bytes_.size());
    for (index_t row = 0; row < outer_; ++row)
      for (index_t column = 0; column < inner_; ++column)
        for (std::size_t i = 0; i < item_; ++i)
          element[static_cast<std::size_t>(at(column, row) - bytes_.data()) + i] = true;
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if (!element[i] && bytes_[i] != std::byte{0xa5}) return false;
    return true;
  }

 private:
  const std::byte* at(index_t column, index_t row) const {
    return bytes_.data() + first_ + column * layout_.inner_stride + row * layout_.outer_stride;
  }

  std::size_t item_;
  block_layout layout_;
  index_t inner_, outer_;
  std::vector<std::byte> bytes_;
  std::size_t first_;
};

/// Extents that reach every path through the kernels: vectors and their tails, several blocks of
/// packed elements, rows joined to blocks.
struct extents {
  index_t inner;
  index_t outer;
};
inline std::vector<extents> some_extents() {
  return {{1, 1}, {1, 300}, {3, 97}, {7, 5}, {64, 3}, {131, 4}, {1029, 2}, {4500, 1}};
}

/// A layout of distinct elements.
inline block_layout distinct_layout(std::size_t item, extents size, generator& random) {
  const auto width = static_cast<index_t>(item);
  switch (random() % 6) {
    case 0:
      return {2 * width, 2 * width * size.inner};
    case 1:
      return {-width, width * (size.inner + 3)};
    case 2:
      return {width * size.outer, width};  // transposed
    case 3:
      return {width, -width * size.inner};
    case 4:
      return {width, width * (size.inner + 5)};
    default:
      return {width, width * size.inner};
  }
}

/// Any layout that an input may have.
inline block_layout input_layout(std::size_t item, extents size, generator& random) {
  const auto width = static_cast<index_t>(item);
  switch (random() % 6) {
    case 0:
      return {0, 0};
    case 1:
      return {0, width};
    case 2:
      return {width, 0};
    default:
      return distinct_layout(item, size, random);
  }
}

inline std::vector<ops::isa> usable_isas() {
  std::vector<ops::isa> result;
  for (const ops::isa candidate : {ops::isa::baseline, ops::isa::avx2, ops::isa::avx512})
    if (ops::supports(candidate)) result.push_back(candidate);
  return result;
}

inline void run(ops::kernel compute, std::vector<block*> operands) {
  std::byte* data[4];
  index_t strides[8];
  const std::size_t count = operands.size();
  for (std::size_t k = 0; k < count; ++k) {
    data[k] = operands[k]->first();
    strides[k] = operands[k]->layout().inner_stride;
    strides[count + k] = operands[k]->layout().outer_stride;
  }
  compute(data, strides, operands[0]->inner(), operands[0]->outer());
}

}  // namespace shale::test
