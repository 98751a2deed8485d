// Logical dtypes of the arrays that commands read and write: which slices and copies keep them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shale/array.hpp"
#include "shale/expr.hpp"
#include "shale/index_entry.hpp"
#include "shale/logical_dtype.hpp"

namespace shale::tools {

/// What the integers of an array stand for. Returns nothing also if its logical dtype is damaged or
/// of a later version: the integers can still be read, and `info` shows the problem.
std::optional<logical_dtype> usable_logical_dtype(const array& stored);

/// What a slice of an array of rank `rank` stands for. A slice of texts must keep the axis of
/// characters at the end.
std::optional<logical_dtype> logical_of_slice(const std::optional<logical_dtype>& whole,
                                              const std::optional<std::vector<index_entry>>& index,
                                              index_t rank);

/// Whether elements of the dtype `storage` in this shape can have the logical dtype `type`.
bool can_stand_for(const logical_dtype& type, dtype storage, const dims& shape);

/// The logical dtype, if the elements can stand for it.
std::optional<logical_dtype> kept_logical_dtype(const std::optional<logical_dtype>& type,
                                                const expr& values);

/// Which elements are NaT (not a time), as bools; nothing if `type` is not one of times.
std::optional<expr> missing_times(const std::optional<logical_dtype>& type, const expr& values);

/// A line that says that the logical dtype is not kept.
std::string lost_logical_dtype(const logical_dtype& type, dtype storage);

/// Refuses elements that stand for other values than those of the array `present`; plain numbers
/// may be stored into any array.
/// Throws   invalid_argument naming both
void require_same_logical_dtype(const array& present, const std::optional<logical_dtype>& values);

}  // namespace shale::tools
