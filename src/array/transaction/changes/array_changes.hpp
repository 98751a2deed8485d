// Adds, renames and removes arrays in a transaction.
//
// Of the two places that know an array, the catalog comes last if something is added and first if
// something is removed: nothing that can fail comes after the catalog has changed.
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

  /// Adds an array under a free name, which it keeps until `take_name` gives it the record's. It is
  /// no part of the record's name.
  std::shared_ptr<written_array> create_unnamed(format::array_record record);

  /// Gives an array of `create_unnamed` its name, after the array that has the name was removed. If
  /// that fails, both are as before, or `commit` refuses. A running write has to contain this call
  /// and that of `create_unnamed`: so a commit that begins between them waits.
  /// Throws   as `rename`
  void take_name(const std::shared_ptr<written_array>& made, std::string_view name);

  /// The array of that name as this transaction writes it. The first call enters it.
  /// Throws   invalid_argument (the transaction has ended), not_found
  std::shared_ptr<written_array> update(std::string_view name);

  /// Throws   invalid_argument (the transaction has ended), not_found, busy (another call changes
  ///          the shape)
  void remove(std::string_view name);

  /// Removes an array that could not be filled, under its present name. If it was removed already,
  /// its name may be another array's: this does nothing then. If it cannot be removed, `commit`
  /// refuses. A running write has to contain this call and the one that made the array.
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
