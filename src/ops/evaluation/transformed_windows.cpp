#include "ops/evaluation/transformed_windows.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/allocating.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/graph/node_access.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "shale/elementwise.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "tensor/parts.hpp"

namespace shale::ops {

using namespace detail;

namespace {

// A block has about this many elements, unless the kernel needs more: 4 MiB.
constexpr index_t block_elements = index_t{1} << 18;

index_t power_of_two_from(index_t least) {
  return static_cast<index_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
}

// The lengths of transforms. A length is at least twice that of the kernel. It is doubled while the
// block has room, but it is never longer than all sums along the axis need.
dims lengths_of(const dims& shape, const dims& taps) {
  dims lengths, most;
  double elements = 1;
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const bool is_transformed = taps[axis] > 1;
    const index_t sums = std::min(shape[axis], index_t{1} << 60);
    most.push_back(is_transformed ? power_of_two_from(sums + taps[axis] - 1) : 1);
    lengths.push_back(is_transformed ? std::min(most[axis], power_of_two_from(2 * taps[axis])) : 1);
    elements *= static_cast<double>(lengths[axis]);
  }
  while (2 * elements <= static_cast<double>(block_elements)) {
    index_t shortest = -1;  // relative to the length of the kernel
    for (index_t axis = 0; axis < shape.size(); ++axis)
      if (lengths[axis] < most[axis] &&
          (shortest < 0 || lengths[axis] / taps[axis] < lengths[shortest] / taps[shortest]))
        shortest = axis;
    if (shortest < 0) break;
    lengths[shortest] *= 2;
    elements *= 2;
  }
  return lengths;
}

// Along axes that are not transformed, a tile takes as much as a block has room for.
dims tile_of(const dims& shape, const dims& taps, const dims& lengths) {
  index_t room = block_elements;
  for (const index_t length : lengths) room = std::max<index_t>(room / length, 1);
  dims tile = shape;
  for (index_t axis = shape.size() - 1; axis >= 0; --axis) {
    if (lengths[axis] > 1) {
      tile[axis] = lengths[axis] - taps[axis] + 1;
      continue;
    }
    tile[axis] = std::min(shape[axis], room);
    room = std::max<index_t>(room / tile[axis], 1);
  }
  return tile;
}

}  // namespace

// What all blocks use of the kernel. The spectrum of the sum over t of x[p + t] w[t] is the
// spectrum of x times that of w, if w is transformed with the opposite sign of the exponent.
struct transformed_windows::prepared_kernel {
  prepared_kernel(const dims& lengths, const tensor& weights)
      : transform(lengths),
        spectrum(tensor::zeros(lengths, dtype::complex128, &executor::current().pool())) {
    parallel::copy_elements_here(narrowed(spectrum, region::all(weights.shape())), weights);
    weights.storage().check();
    auto* const elements = reinterpret_cast<std::complex<double>*>(spectrum.data());
    transform.run(elements, lengths, transform_direction::backwards);
    const auto divisor = static_cast<double>(transform.elements());
    for (index_t k = 0; k < spectrum.size(); ++k) elements[k] /= divisor;
  }

  block_transform transform;
  tensor spectrum;  // divided by the number of elements of a transform
};

transformed_windows::transformed_windows(const stage& made, node_ref input, const tensor& weights)
    : operand_(std::move(input)),
      weights_(weights),
      before_(*made.before),
      type_(made.type),
      shape_(made.shape),
      lengths_(lengths_of(shape_, weights.shape())),
      tile_shape_(tile_of(shape_, weights.shape(), lengths_)),
      block_(tile_shape_) {
  for (index_t axis = 0; axis < block_.size(); ++axis)
    if (lengths_[axis] > 1) block_[axis] = lengths_[axis];
}

transformed_windows::~transformed_windows() = default;

// Other threads wait for the lock meanwhile, so the preparation does not call the engine.
const transformed_windows::prepared_kernel& transformed_windows::prepared() const {
  const std::lock_guard lock(mutex_);
  if (!kernel_) kernel_ = std::make_unique<const prepared_kernel>(lengths_, weights_);
  return *kernel_;
}

// The elements under the windows of a box, with zeros at the positions outside the operand.
tensor transformed_windows::block_of(const region& box) const {
  tensor block = tensor::zeros(block_, dtype::complex128, &executor::current().pool());
  region inside = box, places = box;
  for (index_t axis = 0; axis < block_.size(); ++axis) {
    const index_t under = box.start[axis] - before_[axis];
    const index_t end = std::min(under + box.shape[axis] + weights_.shape(axis) - 1,
                                 operand_.operand()->shape[axis]);
    inside.start[axis] = std::max<index_t>(under, 0);
    inside.shape[axis] = end - inside.start[axis];
    if (inside.shape[axis] <= 0) return block;
    places.start[axis] = inside.start[axis] - under;
    places.shape[axis] = inside.shape[axis];
  }
  operand_.evaluate_into(narrowed(block, places), inside);
  return block;
}

void transformed_windows::load(const dims& tile, const tensor& values) const {
  allocating([&] {
    const auto& [transform, spectrum] = prepared();
    const region box = tile_region(shape_, tile_shape_, tile);
    const tensor block = block_of(box);
    auto* const elements = reinterpret_cast<std::complex<double>*>(block.data());
    transform.run(elements, block_, transform_direction::forwards);
    eval_into(block, expr(block) * expr(spectrum));
    transform.run(elements, block_, transform_direction::backwards);
    eval_into(values, narrowed(block, region{dims::filled(box.shape.size(), 0), box.shape}));
  });
}

node_ref make_transformed_leaf(const stage& made, const staged_values& values) {
  return make_leaf(std::make_shared<const transformed_windows>(
      made, with_values(made.input, values), tensor_of(*made.factor, values)));
}

}  // namespace shale::ops
