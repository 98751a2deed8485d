// Brings a box of an operand into memory together with its halo.
#pragma once

#include "parallel/operands/halo.hpp"
#include "shale/executor.hpp"
#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// Reads elements of an operand, by boxes in the axes of the pass that lie inside the operand.
class box_reader {
 public:
  /// The elements of a box: a view of them if they lie in memory, or else a copy.
  /// Throws   io, corrupt, out_of_memory
  virtual tensor read(const region& box) const = 0;

  /// Copies the elements of a box. `into` has its shape, and any strides.
  /// Throws   as read
  virtual void read_into(const region& box, const tensor& into) const = 0;

 protected:
  ~box_reader() = default;
};

/// Reads the elements where they lie: `values` has the shape of the pass.
class in_place_reader final : public box_reader {
 public:
  explicit in_place_reader(const tensor& values) noexcept : values_(values) {}
  tensor read(const region& box) const override;
  void read_into(const region& box, const tensor& into) const override;

 private:
  const tensor& values_;
};

/// The elements of `box` and of the halo around it, as far as it reaches (extents_around), in an
/// index space of that shape. They are what `elements` reads if the halo lies inside of the index
/// space. Otherwise they are put together in new memory of the executor's pool.
/// Throws   cancelled (before each part), what `elements` throws, out_of_memory
tensor haloed_box(const operand_halo& halo, const region& box, const dims& shape, dtype type,
                  const box_reader& elements, const executor& on);

/// The part of such elements that belongs to the box.
tensor own_part(const tensor& haloed, const operand_halo& halo, const region& box,
                const dims& shape);

}  // namespace shale::parallel
