// The arrays that a transaction creates or changes, by their present names, and what happens to
// their mappings when the transaction ends.
//
// Invariants
//   change.3  writable mappings are read-only before their checksums are taken, and stay so
//   change.4  a mapping that outlives its transaction either holds a pin on the generation that
//             owns its bytes, or is detached from the file. Both happen while the writer lock is
//             held, so no other writer can use the bytes before
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "array/transaction/state/written_array.hpp"

namespace shale::arrays {

/// Threads  the caller holds the transaction's state lock, or the transaction has ended its
///          operations
class written_arrays {
 public:
  /// Null if the transaction has not created or updated an array of that name.
  std::shared_ptr<written_array> find(std::string_view name) const noexcept;

  /// Enters an array under its name. It takes the place of another one of that name.
  /// Throws   bad_alloc; nothing has changed then
  void put(const std::shared_ptr<written_array>& array);

  /// Puts an array in the place of another one, which has that name here.
  void replace(std::string_view name, const std::shared_ptr<written_array>& array) noexcept;

  /// Gives an array its new name, if it is here. `key` and `name` are two copies of the new name:
  /// so nothing can fail.
  void rename(std::string_view from, std::string key, std::string name) noexcept;

  /// Does nothing if there is none of that name.
  void erase(std::string_view name) noexcept;

  /// Lets go of all arrays, and separates them from their tiles.
  void clear() noexcept;

  /// All of them, as pairs of name and array, in byte order of the names.
  auto begin() const noexcept { return arrays_.begin(); }
  auto end() const noexcept { return arrays_.end(); }

  /// Between these two calls, the shape of the array of that name changes (change.7). The array
  /// need not have been entered here.
  void begin_shape_change(const std::string& name) { changing_shape_.insert(name); }
  void end_shape_change(const std::string& name) noexcept { changing_shape_.erase(name); }

  /// Throws   busy if a call changes the shape of the array
  void require_shape_at_rest(std::string_view name) const;

  /// Throws   io if a mapping has lost bytes, because another process truncated the file
  void check_mappings() const;

  /// Makes the mappings read-only (change.3).
  void make_read_only();

  /// Whether a handle other than the transaction's own shows a mapping.
  bool any_held_by_others() const noexcept;

  /// Detaches the remaining mappings from the file (change.4).
  void detach_mappings() noexcept;

 private:
  std::map<std::string, std::shared_ptr<written_array>, std::less<>> arrays_;
  std::set<std::string, std::less<>> changing_shape_;  // the names of arrays
};

}  // namespace shale::arrays
