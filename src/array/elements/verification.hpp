// Checks everything that a generation refers to, on all threads.
#pragma once

#include "format/generations/generation_view.hpp"
#include "shale/executor.hpp"
#include "shale/verification.hpp"

namespace shale::arrays {

/// Cost     reads every byte once, through a buffer of 1 MiB per thread
verification verify(const format::generation_view& view, executor& on);

}  // namespace shale::arrays
