// Computes the product of two vectors.
#pragma once

#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// The sum of products of two rank-1 tensors of one length, as `dot`.
/// Throws   invalid_argument (dtypes that do not promote, float8), cancelled, io
tensor inner_product(const tensor& a, const tensor& b, executor& on);

}  // namespace shale::ops
