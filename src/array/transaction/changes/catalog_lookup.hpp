// Looks for arrays in the catalog of a transaction, as it is with all changes so far.
#pragma once

#include <string_view>

#include "array/transaction/state/transaction_state.hpp"
#include "format/catalog/array_record.hpp"

namespace shale::arrays {

/// The record of an array. The caller holds the state lock.
/// Throws   not_found, with names that are similar. Records of the attributes of a level are no
///          arrays
format::array_record existing_record(transaction_state& owner, std::string_view name);

/// The error of `existing_record`. The caller holds the state lock.
[[noreturn]] void throw_no_array(transaction_state& owner, std::string_view name);

/// Checks that an array can have the name beside the others, as `require_free_path` of
/// new_names.hpp does. The caller holds both locks.
/// Throws   already_exists naming the array and the level
void require_free_path(transaction_state& owner, std::string_view name, std::string_view given_up);

}  // namespace shale::arrays
