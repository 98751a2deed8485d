// A list of up to 32 signed numbers without heap memory, for shapes, strides, axes and indices.
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
/// Cost     never allocates; a copy copies the used entries only
/// Throws   invalid_argument from every function that would make it longer than `rank_max`
class dims {
 public:
  using value_type = index_t;
  using iterator = index_t*;
  using const_iterator = const index_t*;

  /// No entries.
  constexpr dims() noexcept {}

  /// The given entries, in their order.
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
    for (index_t& entry : result) entry = value;
    return result;
  }

  /// The number of entries: the rank, for a shape.
  constexpr index_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }

  /// The entry at `position`, 0 <= position < size(). Unchecked.
  constexpr index_t& operator[](index_t position) noexcept { return values_[position]; }
  constexpr index_t operator[](index_t position) const noexcept { return values_[position]; }

  /// The entries are contiguous. Pointers to them are valid as long as this object.
  constexpr index_t* begin() noexcept { return values_; }
  constexpr index_t* end() noexcept { return values_ + size_; }
  constexpr const index_t* begin() const noexcept { return values_; }
  constexpr const index_t* end() const noexcept { return values_ + size_; }
  constexpr const index_t* data() const noexcept { return values_; }
  constexpr index_t* data() noexcept { return values_; }

  /// The first and the last entry. Unchecked: there must be one.
  constexpr index_t front() const noexcept { return values_[0]; }
  constexpr index_t back() const noexcept { return values_[size_ - 1]; }

  /// Adds an entry at the end, or removes the last one (unchecked: there must be one).
  constexpr void push_back(index_t value) {
    check(size_ + 1);
    values_[size_++] = value;
  }
  constexpr void pop_back() noexcept { --size_; }

  /// Inserts an entry in front of `position`, 0 <= position <= size(). The position is unchecked.
  constexpr void insert(index_t position, index_t value) {
    check(size_ + 1);
    for (index_t i = size_; i > position; --i) values_[i] = values_[i - 1];
    values_[position] = value;
    ++size_;
  }

  /// Removes the entry at `position`, 0 <= position < size(). Unchecked. Later entries move up.
  constexpr void erase(index_t position) noexcept {
    --size_;
    for (index_t i = position; i < size_; ++i) values_[i] = values_[i + 1];
  }

  /// The entries as a span, which points into this object.
  constexpr operator std::span<const index_t>() const noexcept {
    return {values_, static_cast<std::size_t>(size_)};
  }

  /// Whether both have the same entries in the same order.
  friend constexpr bool operator==(const dims& a, const dims& b) noexcept {
    if (a.size_ != b.size_) return false;
    for (index_t i = 0; i < a.size_; ++i)
      if (a.values_[i] != b.values_[i]) return false;
    return true;
  }

 private:
  static constexpr void check(index_t size) {
    if (size < 0 || size > rank_max) detail::throw_rank_too_large(size);
  }

  // This is a loop because <algorithm> would add 10,000 lines to every file that includes this
  // header. Only the first size_ values of the source exist, so it must not copy a fixed number of
  // 32.
  constexpr void assign(const index_t* values) noexcept {
    for (std::int32_t i = 0; i < size_; ++i) values_[i] = values[i];
  }

  std::int32_t size_ = 0;
  index_t values_[rank_max];  // only the first size_ are ever read
};

/// The list as Python prints a tuple: "(3, 4)", "(5,)" for one entry, "()" for none.
/// Throws   std::bad_alloc
std::string to_string(const dims& values);

}  // namespace shale
