// Reads the elements of a storage in an ASCII file.
#pragma once

#include "interop/input_file.hpp"
#include "interop/t7/tree.hpp"
#include "shale/storage.hpp"

namespace shale::interop::t7 {

/// The elements of `of`, a storage, in pool memory.
/// Throws   corrupt (text that is no number of the dtype), cancelled, out_of_memory, io
storage read_text_elements(const input_file& file, const object& of);

}  // namespace shale::interop::t7
