#include "ops/evaluation/transformed_windows.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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

// The axis along which a transform has two blocks, one as real and one as imaginary parts; -1 if it
// has one. The kernel is real, so neither block adds to the sums of the other. Of all axes, it is
// the one with the most blocks.
index_t paired_axis(dtype type, const dims& shape, const dims& kept) {
  if (kind(type) == dtype_kind::complex) return -1;
  index_t found = -1;
  index_t most = 1;
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t blocks = ceil_div(shape[axis], std::max<index_t>(kept[axis], 1));
    if (blocks > most) found = axis;
    most = std::max(most, blocks);
  }
  return found;
}

// The real (0) or the imaginary (1) parts of complex elements, as a view.
tensor parts_of(const tensor& values, index_t part) {
  dims strides = values.strides();
  for (index_t& stride : strides) stride *= 2;
  return tensor(values.storage(), dtype::float64,
                layout(values.shape(), strides, 2 * values.layout().offset() + part));
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
      kept_(tile_of(shape_, weights.shape(), lengths_)),
      paired_(paired_axis(type_, shape_, kept_)),
      tile_shape_(kept_),
      block_(kept_) {
  if (paired_ >= 0) tile_shape_[paired_] = std::min(2 * kept_[paired_], shape_[paired_]);
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

// Evaluates the elements under the windows of a box into a block of zeros. Positions outside the
// operand stay zeros.
void transformed_windows::read_block(const tensor& block, const region& box) const {
  region inside = box, places = box;
  for (index_t axis = 0; axis < block_.size(); ++axis) {
    const index_t under = box.start[axis] - before_[axis];
    const index_t end = std::min(under + box.shape[axis] + weights_.shape(axis) - 1,
                                 operand_.operand()->shape[axis]);
    inside.start[axis] = std::max<index_t>(under, 0);
    inside.shape[axis] = end - inside.start[axis];
    if (inside.shape[axis] <= 0) return;
    places.start[axis] = inside.start[axis] - under;
    places.shape[axis] = inside.shape[axis];
  }
  operand_.evaluate_into(narrowed(block, places), inside);
}

// The sums of a tile that come from one transform: its parts, in the order real, imaginary.
std::vector<region> transformed_windows::parts_in(const region& tile) const {
  if (paired_ < 0 || tile.shape[paired_] <= kept_[paired_]) return {tile};
  region first = tile, second = tile;
  first.shape[paired_] = kept_[paired_];
  second.start[paired_] += kept_[paired_];
  second.shape[paired_] -= kept_[paired_];
  return {first, second};
}

void transformed_windows::load(const dims& tile, const tensor& values) const {
  allocating([&] {
    const auto& [transform, spectrum] = prepared();
    const region box = tile_region(shape_, tile_shape_, tile);
    const std::vector<region> parts = parts_in(box);
    const tensor block = tensor::zeros(block_, dtype::complex128, &executor::current().pool());
    const auto part_of_block = [&](std::size_t part) {
      return paired_ < 0 ? block : parts_of(block, static_cast<index_t>(part));
    };
    for (std::size_t k = 0; k < parts.size(); ++k) read_block(part_of_block(k), parts[k]);
    auto* const elements = reinterpret_cast<std::complex<double>*>(block.data());
    transform.run(elements, block_, transform_direction::forwards);
    eval_into(block, expr(block) * expr(spectrum));
    transform.run(elements, block_, transform_direction::backwards);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const region sums{dims::filled(box.shape.size(), 0), parts[k].shape};
      eval_into(narrowed(values, parts[k], box.start), narrowed(part_of_block(k), sums));
    }
  });
}

node_ref make_transformed_leaf(const stage& made, const staged_values& values) {
  return make_leaf(std::make_shared<const transformed_windows>(
      made, with_values(made.input, values), tensor_of(*made.factor, values)));
}

}  // namespace shale::ops
