// Checking everything that a generation refers to, on all threads.
#pragma once

#include "format/container_file.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"

namespace shale::arrays {

/// Cost     every byte read once; one buffer a thread, of the largest chunk or a segment
verification verify(const format::generation_view& view, executor& on);

}  // namespace shale::arrays
