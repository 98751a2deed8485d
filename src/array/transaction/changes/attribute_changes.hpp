// Sets and removes attributes of arrays, of levels of names, and of the container, in a
// transaction.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "array/transaction/state/transaction_state.hpp"
#include "format/catalog/array_record.hpp"

namespace shale::arrays {

/// Threads  any; calls that change the catalog take turns
/// Throws   invalid_argument (the transaction has ended), not_found (the array, or the attribute to
///          remove), already_exists (an array of an older file has the name that is reserved for
///          the attributes of the level)
class attribute_changes {
 public:
  explicit attribute_changes(transaction_state& owner) noexcept : owner_(owner) {}

  void set(std::string_view array, std::string_view key, std::string_view value);
  void remove(std::string_view array, std::string_view key);

  /// The same for a level of names; empty is the container.
  void set_of_level(std::string_view level, std::string_view key, std::string_view value);
  void remove_of_level(std::string_view level, std::string_view key);

  /// The record that holds the attributes of a level; nothing if it has none.
  std::optional<format::array_record> find_level(std::string_view level) const;

 private:
  std::optional<format::array_record> level_record(const std::string& name) const;
  void erase(format::array_record& record, std::string_view key) const;

  transaction_state& owner_;
};

}  // namespace shale::arrays
