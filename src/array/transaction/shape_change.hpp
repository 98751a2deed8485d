// Changes the shape of an array inside a transaction. dense_resize.hpp has what happens to the bytes
// of a dense array.
//
// Chunks that lie outside of the new shape are erased. Chunks that it cuts through are stored again
// in new space, with the fill value beyond the new shape: otherwise their old elements would come
// back when the array grows again. All of them are stored before the index changes, so that a
// failure until then changes nothing.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "array/transaction/shared_transaction.hpp"
#include "shale/dims.hpp"
#include "shale/region.hpp"

namespace shale::arrays {

/// Claims an array while it lives: no other call changes its shape or its name, or removes it.
class shape_change {
 public:
  /// The caller holds the transaction's `changes_lock_`.
  /// Throws   invalid_argument (the transaction has ended; an array of rank 0), not_found, busy
  ///          (another call changes the shape)
  shape_change(shared_transaction& owner, std::string_view name);
  ~shape_change();
  shape_change(const shape_change&) = delete;
  shape_change& operator=(const shape_change&) = delete;

  /// The record from before.
  const format::array_record& before() const noexcept { return before_; }

  /// Gives the array a shape. Handles to its other shapes write nothing from now on, and read until
  /// this object ends.
  /// Throws   invalid_argument (the shape), corrupt, out_of_space, io, cancelled, busy (another call
  ///          writes a dense array): then the array has the shape and the elements that it had, or
  ///          the transaction refuses to commit
  std::shared_ptr<written_array> set(const dims& shape);

 private:
  void require_shape(const dims& shape) const;
  std::shared_ptr<written_array> set_dense(const dims& shape);

  shared_transaction& owner_;
  format::array_record before_;
  std::vector<std::shared_ptr<written_array>> superseded_;
};

/// An append while it runs. It counts as a running write of the transaction.
class running_append {
 public:
  /// Makes the array longer along `axis`, by the extent of `added` there.
  /// Throws   as shape_change; invalid_argument also for an axis or extents that do not fit
  running_append(shared_transaction& owner, std::string_view name, const dims& added, index_t axis);

  /// Undoes the append unless it is finished.
  ~running_append();
  running_append(const running_append&) = delete;
  running_append& operator=(const running_append&) = delete;

  const std::shared_ptr<written_array>& array() const noexcept { return array_; }

  /// Where the new elements go.
  const region& part() const noexcept { return part_; }
  index_t axis() const noexcept { return axis_; }

  /// Keeps the longer array.
  void finish();

 private:
  void begin(std::string_view name, const dims& added, index_t axis);

  shared_transaction& owner_;
  std::optional<shared_transaction::running_write> running_;
  std::optional<shape_change> change_;
  std::shared_ptr<written_array> array_;
  region part_;
  index_t axis_ = 0;
  bool finished_ = false;
};

}  // namespace shale::arrays
