#include "ops/leaves/window_generator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

#include "core/grid.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"

namespace shale::ops {

namespace {

using namespace detail;

// A row of the result is computed in three parts. In the middle one, all taps lie inside the input.
// If the input's rows are contiguous and have the dtype of the sums, the kernel reads them in
// place. Everything else is *packed*: parts of the input are copied and converted into a buffer,
// with zeros at positions outside the input. Only short parts at the edges have such zeros.
//
// A zero times a finite weight leaves a sum unchanged: sums begin with +0 and never become -0.
// Where weights are not finite, the products that lie outside are left out, one sum after the
// other.

constexpr index_t sums_max = 512;     // of one packed part
constexpr index_t taps_max = 256;     // of one packed part
constexpr index_t vector_bytes = 64;  // of the widest instruction set
constexpr index_t few_sums = 64;      // fewer are packed, too, since they fill few vectors
constexpr std::size_t rows_max = 32;  // of one call of the kernel
constexpr std::size_t item_bytes_max = 16;

template <class T>
bool is_finite(const T& value) {
  if constexpr (std::is_floating_point_v<T>) return std::isfinite(value);
  else if constexpr (std::is_integral_v<T>) return true;
  else return std::isfinite(value.real()) && std::isfinite(value.imag());
}

template <class T>
bool are_finite(const std::byte* values, index_t count) {
  for (index_t k = 0; k < count; ++k) {
    T value;
    std::memcpy(&value, values + k * static_cast<index_t>(sizeof(T)), sizeof(T));
    if (!is_finite(value)) return false;
  }
  return true;
}

using finite_test = bool (*)(const std::byte* values, index_t count);

// The test for a dtype of sums; null if all values are finite.
finite_test finite_test_of(dtype type) {
  switch (type) {
    case dtype::float32:
      return &are_finite<float>;
    case dtype::float64:
      return &are_finite<double>;
    case dtype::complex64:
      return &are_finite<std::complex<float>>;
    case dtype::complex128:
      return &are_finite<std::complex<double>>;
    default:
      return nullptr;
  }
}

// A run of sums or weights along the last axis.
struct run {
  index_t begin;
  index_t end;
  index_t count() const noexcept { return end - begin; }
};

class window_generator final : public leaf_generator {
 public:
  window_generator(const window_leaf& leaf, const tensor& input, const tensor& weights,
                   dtype result)
      : input_(input),
        weights_(weights),
        first_(leaf.map->base),
        last_(input.rank() - 1),
        item_(static_cast<index_t>(weights.item_bytes())),
        result_item_(static_cast<index_t>(item_bytes(result))),
        kernel_(find_window_kernel(weights.dtype())),
        pack_(find_cast(input.dtype(), weights.dtype())),
        finish_(find_cast(weights.dtype(), result)),
        are_finite_(finite_test_of(weights.dtype())),
        in_place_(input.dtype() == weights.dtype() && result == weights.dtype() &&
                  (input.strides()[last_] == 1 || input.shape(last_) == 1)) {
    for (index_t axis = 0; axis <= last_; ++axis) {
      first_[axis] -= leaf.before[axis];
      strides_.push_back(input.strides()[axis] * static_cast<index_t>(input.item_bytes()));
    }
  }

  void fill(const index_t* start, std::byte* out, index_t inner, index_t outer) const override {
    dims under = first_;  // the input position under the first weight; it may lie outside
    for (index_t axis = 0; axis <= last_; ++axis) under[axis] += start[axis];
    for (index_t row = 0; row < outer; ++row, out += inner * result_item_) {
      fill_row(under, out, inner);
      if (last_ >= 1) ++under[last_ - 1];
    }
  }

 private:
  index_t extent() const noexcept { return input_.shape(last_); }
  index_t taps() const noexcept { return weights_.shape(last_); }

  void fill_row(const dims& under, std::byte* out, index_t count) const {
    const index_t begin = std::clamp<index_t>(-under[last_], 0, count);
    index_t end = std::clamp(extent() - taps() + 1 - under[last_], begin, count);
    if (!in_place_ || end - begin < few_sums) end = begin;
    else add_in_place(under, out, {begin, end});
    pack(under, out, {0, begin});
    pack(under, out, {end, count});
  }

  // Calls `body(input, weights)` for every row of weights that meets the input, in their order.
  // `input` is the address of the row's position 0.
  template <class Body>
  void for_each_row(const dims& under, const Body& body) const {
    dims from = dims::filled(last_, 0), shape = from;
    for (index_t axis = 0; axis < last_; ++axis) {
      from[axis] = std::max<index_t>(-under[axis], 0);
      const index_t end = std::min(weights_.shape(axis), input_.shape(axis) - under[axis]);
      if (end <= from[axis]) return;
      shape[axis] = end - from[axis];
    }
    dims at = dims::filled(last_, 0);
    do {
      const std::byte* input = input_.data();
      index_t row = 0;
      for (index_t axis = 0; axis < last_; ++axis) {
        const index_t tap = from[axis] + at[axis];
        input += (under[axis] + tap) * strides_[axis];
        row = row * weights_.shape(axis) + tap;
      }
      body(input, weights_.data() + row * taps() * item_);
    } while (shale::detail::advance(at, shape));
  }

  void add_in_place(const dims& under, std::byte* out, run sums) const {
    out += sums.begin * item_;
    std::memset(out, 0, static_cast<std::size_t>(sums.count() * item_));
    std::array<window_row, rows_max> rows;
    std::size_t held = 0;
    const auto add = [&] {
      kernel_(out, rows.data(), static_cast<index_t>(held), taps(), sums.count());
      held = 0;
    };
    for_each_row(under, [&](const std::byte* input, const std::byte* weights) {
      rows[held++] = {input + (under[last_] + sums.begin) * item_, weights};
      if (held == rows.size()) add();
    });
    if (held > 0) add();
  }

  void pack(const dims& under, std::byte* out, run all) const {
    alignas(64) std::array<std::byte, (sums_max + few_sums) * item_bytes_max> sums;
    for (run some{all.begin, 0}; some.begin < all.end; some.begin = some.end) {
      some.end = std::min(some.begin + sums_max, all.end);
      std::memset(sums.data(), 0, static_cast<std::size_t>(whole_vectors(some.count()) * item_));
      for_each_row(under, [&](const std::byte* input, const std::byte* weights) {
        // The taps that meet the input for at least one of the sums.
        const index_t position = under[last_] + some.begin;
        const index_t first = std::max<index_t>(1 - position - some.count(), 0);
        const index_t end = std::min(taps(), extent() - position);
        for (index_t tap = first; tap < end; tap += taps_max)
          add_packed(sums.data(), input, position + tap, weights + tap * item_, some.count(),
                     std::min(taps_max, end - tap));
      });
      convert(finish_, out + some.begin * result_item_, result_item_, sums.data(), item_,
              some.count());
    }
  }

  // Sums are padded, so that they fill whole vectors. The padding holds any values.
  index_t whole_vectors(index_t count) const noexcept {
    return ceil_div(count * item_, vector_bytes) * vector_bytes / item_;
  }

  // Adds the products of `taps` weights with the input from `position` on, which may be outside.
  void add_packed(std::byte* sums, const std::byte* input, index_t position,
                  const std::byte* weights, index_t count, index_t taps) const {
    alignas(64) std::array<std::byte, (sums_max + few_sums + taps_max) * item_bytes_max> packed;
    const index_t used = count + taps - 1;
    const run inside{std::clamp<index_t>(-position, 0, used),
                     std::clamp<index_t>(extent() - position, 0, used)};
    const index_t padded = whole_vectors(count);
    std::memset(packed.data(), 0, static_cast<std::size_t>(inside.begin * item_));
    if (inside.count() > 0)
      convert(pack_, packed.data() + inside.begin * item_, item_,
              input + (position + inside.begin) * strides_[last_], strides_[last_], inside.count());
    std::memset(packed.data() + inside.end * item_, 0,
                static_cast<std::size_t>((padded + taps - 1 - inside.end) * item_));
    const bool has_zeros = inside.count() < used;
    if (!has_zeros || !are_finite_ || are_finite_(weights, taps)) {
      const window_row row{packed.data(), weights};
      return kernel_(sums, &row, 1, taps, padded);
    }
    for (index_t k = 0; k < count; ++k) {
      const index_t first = std::max<index_t>(inside.begin - k, 0);
      const index_t end = std::min(inside.end - k, taps);
      if (first >= end) continue;
      const window_row row{packed.data() + (k + first) * item_, weights + first * item_};
      kernel_(sums + k * item_, &row, 1, end - first, 1);
    }
  }

  static void convert(kernel conversion, std::byte* to, index_t to_stride, const std::byte* from,
                      index_t from_stride, index_t count) {
    const std::array<std::byte*, 2> data{to, const_cast<std::byte*>(from)};
    const std::array<index_t, 4> strides{to_stride, from_stride, 0, 0};
    conversion(data.data(), strides.data(), count, 1);
  }

  tensor input_;
  tensor weights_;
  dims first_;    // the input position under the first weight of the leaf's first element
  dims strides_;  // of the input, in bytes
  index_t last_;  // the last axis
  index_t item_;  // bytes of a sum
  index_t result_item_;
  window_kernel kernel_;
  kernel pack_;
  kernel finish_;
  finite_test are_finite_;
  bool in_place_;
};

}  // namespace

std::unique_ptr<leaf_generator> make_window_generator(const window_leaf& leaf, const tensor& input,
                                                      const tensor& weights, dtype result) {
  return std::make_unique<window_generator>(leaf, input, weights, result);
}

}  // namespace shale::ops
