// The logical dtype of an array in a container. It is stored in an attribute `_LOGICAL_DTYPE` that
// is a text, for example "datetime64[ns]" or "S". The array holds integers. Renames, resizes,
// appends and copies keep the attribute, as they keep every other one.
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

/// The logical dtype: what the integers of an array stand for. Nothing if they are plain numbers.
/// Throws   unsupported (a logical dtype of a later version: the integers can be read all the
///          same), corrupt (the array has another dtype than the logical dtype needs, or no axis of
///          characters; a damaged attribute), invalid_argument (the attribute is no text), each
///          naming the array; out_of_memory
std::optional<logical_dtype> logical_dtype_of(const array& stored);

/// Sets the logical dtype of an array: what its integers stand for. The elements stay as they are.
/// Cost     as transaction::set_attribute
/// Throws   as transaction::set_attribute; invalid_argument also if the array has another dtype
///          than storage_dtype says, or no axis of characters, or if `type` is no logical dtype
void set_logical_dtype(transaction& change, std::string_view array, const logical_dtype& type);

}  // namespace shale
