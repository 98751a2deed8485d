// Fourier transforms of blocks along some of their axes, in double precision.
#pragma once

#include <complex>
#include <memory>

#include "shale/dims.hpp"

namespace shale::ops {

/// The directions differ in the sign of the exponent. Neither divides by the number of elements: a
/// block that is transformed forwards and then backwards is multiplied by it.
enum class transform_direction : bool { forwards, backwards };

class block_transform {
 public:
  /// Prepares transforms along the axes on which `lengths` is above 1: a power of two.
  /// Cost     O(the longest length), a sine and a cosine for each position
  explicit block_transform(const dims& lengths);
  ~block_transform();
  block_transform(const block_transform&) = delete;
  block_transform& operator=(const block_transform&) = delete;

  /// Transforms a row-major block in place. On transformed axes, its extents are the lengths.
  /// Throws   std::bad_alloc
  /// Threads  any, with different blocks
  void run(std::complex<double>* block, const dims& shape, transform_direction direction) const;

  /// The product of all lengths.
  index_t elements() const noexcept;

 private:
  struct plans;
  std::unique_ptr<const plans> plans_;
};

}  // namespace shale::ops
