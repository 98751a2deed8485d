// Everything: storages, tensors, the engine, expressions, containers.
#pragma once

#include "shale/apply.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "shale/expr.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "shale/ops.hpp"
#include "shale/shared_memory.hpp"
#include "shale/storage.hpp"
#include "shale/tensor.hpp"
