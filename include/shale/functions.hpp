// Includes all headers of functions that make expressions, except masks.hpp (masked_fill).
#pragma once

#include "shale/creation.hpp"
#include "shale/distances.hpp"
#include "shale/einsum.hpp"
#include "shale/elementwise.hpp"
#include "shale/expr.hpp"
#include "shale/gradient.hpp"
#include "shale/linalg.hpp"
#include "shale/manipulation.hpp"
#include "shale/padding.hpp"
#include "shale/random.hpp"
#include "shale/reductions.hpp"
#include "shale/scans.hpp"
#include "shale/statistics.hpp"
#include "shale/take.hpp"
#include "shale/tensor_products.hpp"
#include "shale/windows.hpp"
