// Includes the whole public API: storages, tensors, the engine, expressions, containers and files
// in foreign formats.
#pragma once

#include "shale/apply.hpp"
#include "shale/container.hpp"
#include "shale/convert.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/histograms.hpp"
#include "shale/linalg.hpp"
#include "shale/linear_systems.hpp"  // solve, inverses, determinants, Cholesky
#include "shale/mapped_file.hpp"
#include "shale/masks.hpp"
#include "shale/memory_pool.hpp"
#include "shale/npy.hpp"
#include "shale/npz.hpp"
#include "shale/ops.hpp"
#include "shale/order_statistics.hpp"
#include "shale/raw.hpp"
#include "shale/scatter.hpp"
#include "shale/searching.hpp"
#include "shale/shared_memory.hpp"
#include "shale/sorting.hpp"
#include "shale/storage.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"
#include "shale/unfinished_file.hpp"
#include "shale/version.hpp"
