#include "ops/leaves/block_transform.hpp"

#include <algorithm>
#include <kissfft/kissfft.hh>
#include <map>
#include <utility>
#include <vector>

#include "shale/layout.hpp"

namespace shale::ops {

namespace {

using complex = std::complex<double>;

// Lengths that are powers of two use radices of 4 and 2 only. These keep no scratch memory in the
// plan, so threads can share it.
using plan = kissfft<double>;

struct plan_pair {
  explicit plan_pair(index_t length)
      : forwards(static_cast<std::size_t>(length), false),
        backwards(static_cast<std::size_t>(length), true) {}
  plan forwards;
  plan backwards;
};

}  // namespace

struct block_transform::plans {
  dims lengths;
  std::map<index_t, plan_pair> of_length;
};

block_transform::block_transform(const dims& lengths) {
  auto made = std::make_unique<plans>();
  made->lengths = lengths;
  for (const index_t length : lengths)
    if (length > 1) made->of_length.try_emplace(length, length);
  plans_ = std::move(made);
}

block_transform::~block_transform() = default;

index_t block_transform::elements() const noexcept {
  index_t product = 1;
  for (const index_t length : plans_->lengths) product *= length;
  return product;
}

void block_transform::run(complex* block, const dims& shape, transform_direction direction) const {
  index_t before = 1, behind = element_count(shape);
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t length = plans_->lengths[axis];
    behind /= shape[axis];
    if (length > 1) {
      const plan_pair& both = plans_->of_length.at(length);
      const plan& used =
          direction == transform_direction::forwards ? both.forwards : both.backwards;
      std::vector<complex> line(static_cast<std::size_t>(length)), found(line.size());
      for (index_t row = 0; row < before; ++row)
        for (index_t column = 0; column < behind; ++column) {
          complex* const first = block + row * length * behind + column;
          for (index_t k = 0; k < length; ++k)
            line[static_cast<std::size_t>(k)] = first[k * behind];
          used.transform(line.data(), found.data());
          for (index_t k = 0; k < length; ++k)
            first[k * behind] = found[static_cast<std::size_t>(k)];
        }
    }
    before *= shape[axis];
  }
}

}  // namespace shale::ops
