// Writes whole arrays of containers: chooses their dtype, form and attributes.
#pragma once

#include <optional>
#include <string>

#include "data/target.hpp"
#include "shale/container.hpp"

namespace shale::tools {

struct operand;

/// The properties of an array in a container, or of a slice of one; nothing for other files.
std::optional<origin> origin_of(const operand& source);

/// Creates the array `name` of the container `file` in the transaction `change`. Its dtype, form
/// and attributes come from the options, or else from the array that it replaces, or else from the
/// array that `source` is a copy of. Attributes of the copied array have priority over those of the
/// replaced array. The logical dtype is that of the values; numbers keep that of the replaced
/// array, if they can stand for it. Chunks of a whole array that keeps its chunk shape, codec,
/// dtype and fill value are not decoded. A whole chunked array whose chunks are cut by the new ones
/// is copied by `rechunk`, if the memory budget is too small to keep all chunks decoded that are
/// needed again.
/// Returns  everything but the generation, which the commit determines
/// Throws   already_exists, invalid_argument, what evaluation throws
written put_array(transaction& change, const std::string& file, const std::string& name,
                  const contents& source, const target_options& options);

}  // namespace shale::tools
