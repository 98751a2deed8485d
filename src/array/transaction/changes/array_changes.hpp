// Adds, renames and removes arrays in a transaction.
//
// An array is known in two places: in written_arrays and in the catalog. The catalog is changed
// last when an array is added, and first when one is removed. So nothing that can fail comes after
// the catalog has changed.
#pragma once

#include <memory>
#include <string_view>

#include "array/transaction/state/transaction_state.hpp"
#include "format/catalog/array_record.hpp"

namespace shale::arrays {

/// Threads  any; calls that change the catalog take turns
class array_changes {
 public:
  explicit array_changes(transaction_state& owner) noexcept : owner_(owner) {}

  /// Adds an array, and reserves its space on the device.
  /// Throws   invalid_argument (the transaction has ended), already_exists, out_of_space, io
  std::shared_ptr<written_array> create(format::array_record record);

  /// Adds an array under a free name. It keeps that name until `take_name` gives it the name of the
  /// record. The free name is no part of the record's name.
  std::shared_ptr<written_array> create_unnamed(format::array_record record);

  /// Gives an array of `create_unnamed` its name. If another array has the name, it is removed
  /// before. If this call fails, both arrays are as before, or `commit` refuses. One running write
  /// must contain this call and that of `create_unnamed`, so that a commit that begins between them
  /// waits.
  /// Throws   as `rename`
  void take_name(const std::shared_ptr<written_array>& made, std::string_view name);

  /// The array of that name as this transaction writes it. The first call enters it in
  /// written_arrays.
  /// Throws   invalid_argument (the transaction has ended), not_found
  std::shared_ptr<written_array> update(std::string_view name);

  /// Throws   invalid_argument (the transaction has ended), not_found, busy (another call changes
  ///          the shape)
  void remove(std::string_view name);

  /// Removes an array that could not be filled, under its present name. If it was removed already,
  /// this does nothing, because its name may now be another array's. If it cannot be removed,
  /// `commit` refuses. One running write must contain this call and the one that made the array.
  void discard(const written_array& made) noexcept;

  /// Throws   as `remove`; invalid_argument also for the new name, already_exists
  void rename(std::string_view from, std::string_view to);

  /// Enters an array that is written from now on, or throws and changes nothing. The caller holds
  /// the state lock.
  void enlist(const std::shared_ptr<written_array>& array);

 private:
  std::shared_ptr<written_array> add(format::array_record record);
  std::shared_ptr<chunk_tiles> writable_tiles_of(const std::shared_ptr<written_array>& array,
                                                 std::string_view name);
  void move(std::string_view from, std::string_view to);
  void erase(std::string_view name);
  void give_back(const format::dense_layout& unused) noexcept;
  void give_back_copies(const written_array& array) noexcept;

  transaction_state& owner_;
};

}  // namespace shale::arrays
