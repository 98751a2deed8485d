// Gives a dense array another shape inside a transaction.
//
// If only the first axis changes, the bytes of the shorter shape are the beginning of those of the
// longer one. The units before the end of the shorter shape stay where they are. The unit in which
// it ends, or its last part, is copied to new space where that is needed. If the array grows, that
// space also holds the new elements, which read as zeros. Any other change copies the whole array.
//
// Where a checksum covers bytes that stay and others that change, the bytes of the base generation
// are compared with it first, because the commit computes a new one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "array/elements/dense_bytes.hpp"
#include "array/transaction/state/transaction_state.hpp"
#include "shale/dims.hpp"

namespace shale::arrays {

/// Marks a call that writes bytes of a dense array, or maps them for writing. While this object
/// lives, the array keeps its shape.
class [[nodiscard]] dense_writer {
 public:
  /// If an append fails, its own writes are given up. Other writes are not.
  enum class purpose : std::uint8_t { write, append };

  /// Throws   invalid_argument (the transaction has ended, the array was resized), not_found
  dense_writer(transaction_state& owner, written_array& array, purpose of = purpose::write);
  ~dense_writer();
  dense_writer(const dense_writer&) = delete;
  dense_writer& operator=(const dense_writer&) = delete;

 private:
  transaction_state& owner_;
  written_array& array_;
};

class dense_resize {
 public:
  /// `array` is the array in its present shape. The caller holds the state lock.
  dense_resize(transaction_state& owner, written_array& array, const dims& shape);

  /// Refuses further writes of the array.
  /// Throws   busy (another call writes it)
  static void close(transaction_state& owner, written_array& array);

  /// Copies the bytes that have to move, and allocates space for new elements. `close` was called
  /// before.
  /// Throws   corrupt, out_of_space, io, cancelled: nothing has changed then
  void prepare();

  /// The array in its new shape, which is not entered anywhere yet. `stored` is its record in the
  /// catalog. The caller holds the state lock.
  std::shared_ptr<written_array> made(const format::array_record& stored) const;

  /// Gives the new space back. The caller holds the state lock.
  void give_back() noexcept;

 private:
  void allocate(std::uint64_t bytes, std::uint64_t copied = 0);
  void extend();
  void cut();
  void compare(const format::byte_interval& range) const;
  void copy_tail(std::uint64_t end);
  void copy_all();

  transaction_state& owner_;
  written_array& array_;
  const dims shape_;
  const std::uint64_t bytes_before_;
  const std::uint64_t bytes_after_;
  const std::string label_;
  bool same_rows_ = true;         // only the first axis has another extent
  std::uint64_t kept_ = 0;        // the bytes at the beginning that stay where they are
  std::uint64_t divided_at_ = 0;  // see shared_bytes
  format::extent fresh_;          // the new space for the others; may be empty
  std::shared_ptr<const std::vector<std::uint64_t>> sums_;
};

}  // namespace shale::arrays
