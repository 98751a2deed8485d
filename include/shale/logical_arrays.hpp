// The logical dtype of an array in a container: an attribute `_LOGICAL_DTYPE` that is a text, as
// "datetime64[ns]" or "S". The array holds integers; renames, resizes, appends and copies keep the
// attribute as they keep every other.
//
//   transaction change = file.begin();
//   change.create("when", {.dtype = dtype::int64, .shape = {24}});
//   set_logical_dtype(change, "when", *parse_logical_dtype("datetime64[h]"));
#pragma once

#include <optional>
#include <string_view>

#include "shale/array.hpp"
#include "shale/container.hpp"
#include "shale/logical_dtype.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The key of the attribute.
inline constexpr std::string_view logical_dtype_key = "_LOGICAL_DTYPE";

/// What the integers of an array stand for; nothing if they are numbers.
/// Throws   unsupported (a logical dtype of a later version: the integers can be read all the
///          same), corrupt (the array has another dtype than it needs, or no axis of characters; a
///          damaged attribute), invalid_argument (the attribute is no text), each naming the array;
///          out_of_memory
std::optional<logical_dtype> logical_dtype_of(const array& stored);

/// Says what the integers of an array stand for. The elements stay as they are.
/// Cost     as transaction::set_attribute
/// Throws   as transaction::set_attribute; invalid_argument also if the array has another dtype
///          than storage_dtype says, or no axis of characters, or if `type` is no logical dtype
void set_logical_dtype(transaction& change, std::string_view array, const logical_dtype& type);

}  // namespace shale
