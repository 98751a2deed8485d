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

// So many lines are transformed together. Neighbouring columns share cache lines.
constexpr index_t lines_together = 8;

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

namespace {

// Transforms lines whose elements lie `step` apart, and whose first elements are neighbours. Both
// buffers have room for all of them.
void transform_lines(const plan& used, complex* first, index_t length, index_t step, index_t lines,
                     complex* gathered, complex* found) {
  for (index_t k = 0; k < length; ++k)
    for (index_t line = 0; line < lines; ++line)
      gathered[line * length + k] = first[k * step + line];
  for (index_t line = 0; line < lines; ++line)
    used.transform(gathered + line * length, found + line * length);
  for (index_t k = 0; k < length; ++k)
    for (index_t line = 0; line < lines; ++line) first[k * step + line] = found[line * length + k];
}

}  // namespace

void block_transform::run(complex* block, const dims& shape, transform_direction direction) const {
  index_t before = 1, behind = element_count(shape);
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t length = plans_->lengths[axis];
    behind /= shape[axis];
    if (length > 1) {
      const plan_pair& both = plans_->of_length.at(length);
      const plan& used =
          direction == transform_direction::forwards ? both.forwards : both.backwards;
      const index_t together = std::min(behind, lines_together);
      std::vector<complex> gathered(static_cast<std::size_t>(length * together));
      std::vector<complex> found(gathered.size());
      for (index_t row = 0; row < before; ++row)
        for (index_t column = 0; column < behind; column += together)
          transform_lines(used, block + row * length * behind + column, length, behind,
                          std::min(together, behind - column), gathered.data(), found.data());
    }
    before *= shape[axis];
  }
}

}  // namespace shale::ops
