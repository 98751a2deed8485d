// Writes files that are no containers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "data/target.hpp"
#include "notation/address.hpp"
#include "shale/functions.hpp"
#include "shale/logical_dtype.hpp"

namespace shale::tools {

/// Evaluates `values` into the .npy, .npz, .t7 or raw file that `target` names, whole or not at all.
/// Throws   as write_target
written write_foreign_file(const address& target, const expr& values,
                           const std::optional<logical_dtype>& logical,
                           const target_options& options);

/// Passes computed values to `add`, which writes them to `file` from front to back. In a ZIP file,
/// the checksum of a member even precedes its bytes. Therefore the elements are first computed into
/// a file of their own beside it, which may be larger than memory. If files there cannot be mapped
/// for writing, it lies in the folder for temporary files: the one that TMPDIR names, or /var/tmp.
/// Throws   what evaluation and `add` throw
written add_computed(const std::string& file, const expr& values,
                     const std::function<void(const tensor&)>& add);

}  // namespace shale::tools
