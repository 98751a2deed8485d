// Up to 32 signed numbers, held inline: shapes, strides, axis lists, indices.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include "shale/index.hpp"

namespace [[gnu::visibility("default")]] shale {

namespace detail {
[[noreturn]] void throw_rank_too_large(index_t rank);
}  // namespace detail

/// A short list of `index_t`: a shape, strides, axes or a multi-dimensional index.
/// Cost     inline, no allocation; copying moves only the used entries
/// Throws   invalid_argument from anything that would make it longer than `max_rank`
class dims {
 public:
  /// What standard algorithms and containers ask for.
  using value_type = index_t;
  using iterator = index_t*;
  using const_iterator = const index_t*;

  /// No entries.
  constexpr dims() noexcept {}

  /// The given entries in their order.
  constexpr dims(std::initializer_list<index_t> values) : dims(values.begin(), values.end()) {}
  constexpr explicit dims(std::span<const index_t> values)
      : dims(values.data(), values.data() + values.size()) {}

  /// The entries of [first, last).
  constexpr dims(const index_t* first, const index_t* last) {
    check(last - first);
    size_ = static_cast<std::int32_t>(last - first);
    assign(first);
  }
  constexpr dims(const dims& other) noexcept : size_(other.size_) { assign(other.values_); }
  constexpr dims& operator=(const dims& other) noexcept {
    size_ = other.size_;
    assign(other.values_);
    return *this;
  }

  /// `count` copies of `value`.
  static constexpr dims filled(index_t count, index_t value) {
    check(count);
    dims result;
    result.size_ = static_cast<std::int32_t>(count);
    for (index_t& each : result) each = value;
    return result;
  }

  /// Entries held: the rank of what they describe.
  constexpr index_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }

  /// Unchecked; 0 <= at < size().
  constexpr index_t& operator[](index_t at) noexcept { return values_[at]; }
  constexpr index_t operator[](index_t at) const noexcept { return values_[at]; }

  /// The entries lie one after another. Pointers live as long as this object.
  constexpr index_t* begin() noexcept { return values_; }
  constexpr index_t* end() noexcept { return values_ + size_; }
  constexpr const index_t* begin() const noexcept { return values_; }
  constexpr const index_t* end() const noexcept { return values_ + size_; }
  constexpr const index_t* data() const noexcept { return values_; }
  constexpr index_t* data() noexcept { return values_; }

  /// Unchecked; there must be an entry.
  constexpr index_t front() const noexcept { return values_[0]; }
  constexpr index_t back() const noexcept { return values_[size_ - 1]; }

  /// Adds an entry at the end, or takes the last one away (unchecked; there must be one).
  constexpr void push_back(index_t value) {
    check(size_ + 1);
    values_[size_++] = value;
  }
  constexpr void pop_back() noexcept { --size_; }

  /// Inserts before position `at` (0 <= at <= size()).
  constexpr void insert(index_t at, index_t value) {
    check(size_ + 1);
    for (index_t i = size_; i > at; --i) values_[i] = values_[i - 1];
    values_[at] = value;
    ++size_;
  }

  /// Takes entry `at` away (0 <= at < size()); later ones move forward.
  constexpr void erase(index_t at) noexcept {
    --size_;
    for (index_t i = at; i < size_; ++i) values_[i] = values_[i + 1];
  }

  /// Points into this object.
  constexpr operator std::span<const index_t>() const noexcept {
    return {values_, static_cast<std::size_t>(size_)};
  }

  /// Equal sizes and equal entries.
  friend constexpr bool operator==(const dims& a, const dims& b) noexcept {
    if (a.size_ != b.size_) return false;
    for (index_t i = 0; i < a.size_; ++i)
      if (a.values_[i] != b.values_[i]) return false;
    return true;
  }

 private:
  static constexpr void check(index_t size) {
    if (size < 0 || size > max_rank) detail::throw_rank_too_large(size);
  }

  // Loops instead of <algorithm>, which would cost every includer 10,000 lines. At most size_ of
  // the other's values exist, so this may not read a fixed 32.
  constexpr void assign(const index_t* values) noexcept {
    for (std::int32_t i = 0; i < size_; ++i) values_[i] = values[i];
  }

  std::int32_t size_ = 0;
  index_t values_[max_rank];  // only the first size_ are ever read
};

/// "(3, 4)", "(5,)" for one entry, "()" for none: as Python prints a tuple.
std::string to_string(const dims& values);

}  // namespace shale
