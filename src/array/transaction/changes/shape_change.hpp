// Changes the shape of an array inside a transaction. dense_resize.hpp says what happens to the
// bytes of a dense array.
//
// Chunks that lie outside of the new shape are erased. Chunks that it cuts through are stored again
// in new space, with the fill value beyond the new shape: otherwise their old elements would come
// back when the array grows again. All of them are stored before the index changes, so that a
// failure until then changes nothing.
//
// Invariants
//   change.7  while a shape changes, no handle to the old shape stores a chunk, and no other call
//             changes the array's shape or name. A change that fails leaves the old shape and the
//             old elements, or a transaction that refuses to commit
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "array/transaction/changes/dense_resize.hpp"
#include "array/transaction/changes/running_write.hpp"
#include "array/transaction/state/transaction_state.hpp"
#include "shale/dims.hpp"
#include "shale/region.hpp"

namespace shale::arrays {

/// Claims an array while it lives: no other call changes its shape or its name, or removes it.
class shape_change {
 public:
  /// The caller holds the transaction's lock `changes`.
  /// Throws   invalid_argument (the transaction has ended; an array of rank 0), not_found, busy
  ///          (another call changes the shape)
  shape_change(transaction_state& owner, std::string_view name);
  ~shape_change();
  shape_change(const shape_change&) = delete;
  shape_change& operator=(const shape_change&) = delete;

  /// The record of the array before the change.
  const format::array_record& before() const noexcept { return before_; }

  /// Gives the array a shape. Handles to its other shapes cannot write from now on. They can read
  /// until this object ends.
  /// Throws   invalid_argument (the shape), corrupt, out_of_space, io, cancelled, busy (another
  ///          call writes a dense array): then the array has the shape and the elements that it
  ///          had, or the transaction refuses to commit
  std::shared_ptr<written_array> set(const dims& shape);

  /// Gives the array a shape until `keep` or `undo` is called. Returns the array in the new shape,
  /// whose new part can be written. All calls see that array. If it is dense, the catalog keeps the
  /// old record.
  std::shared_ptr<written_array> begin(const dims& shape);

  /// Keeps the new shape.
  /// Throws   as `set`; then `undo` is still possible
  void keep();

  /// Gives the array its old shape back. A dense array is as it was before, and nothing is copied.
  /// But if other calls have written or mapped the array in its new shape, that array is cut to the
  /// old shape.
  /// Throws   as `set`: then the transaction must refuse to commit
  void undo();

 private:
  void require_shape(const dims& shape) const;
  std::shared_ptr<written_array> set_dense(const dims& shape);
  void begin_dense(const dims& shape);
  void publish_dense();
  bool restore_dense() noexcept;

  transaction_state& owner_;
  format::array_record before_;
  std::vector<std::shared_ptr<written_array>> superseded_;

  // A change of a dense array. It is pending until the catalog has it, or until it is given up.
  std::shared_ptr<written_array> old_;
  std::shared_ptr<written_array> made_;
  std::optional<dense_resize> change_;
  bool is_new_ = false;  // the transaction had not changed the array before
  bool pending_ = false;
};

/// Gives an array another shape; earlier handles to it end (change.7).
/// Throws   as `shape_change`
std::shared_ptr<written_array> resize_array(transaction_state& owner, std::string_view name,
                                            const dims& shape);

/// An append while it runs. It counts as a running write of the transaction.
class running_append {
 public:
  /// Makes the array longer along `axis`, by the extent of `added` there.
  /// Throws   as shape_change; invalid_argument also for an axis or extents that do not fit
  running_append(transaction_state& owner, std::string_view name, const dims& added, index_t axis);

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

  transaction_state& owner_;
  std::optional<running_write> running_;
  std::optional<shape_change> change_;
  std::shared_ptr<written_array> array_;
  region part_;
  index_t axis_ = 0;
  bool finished_ = false;
};

}  // namespace shale::arrays
