// First, each operand is simplified. A name that it has twice becomes one axis, the diagonal, and
// axes of length 1 are left out, which broadcasts them. Then pairs of arrays are contracted until
// one array is left.
#include "shale/einsum.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/allocating.hpp"
#include "ops/functions/linear_algebra/contraction.hpp"
#include "ops/functions/linear_algebra/subscripts.hpp"
#include "ops/linalg/products.hpp"
#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

/// The extents of names. The extent of a name that no operand has is -1.
class name_extents {
 public:
  name_extents() { extents_.fill(-1); }

  index_t operator[](index_t name) const { return extents_[static_cast<std::size_t>(name)]; }

  /// Adds the axes of an operand. An extent of 1 fits every extent of another operand. Inside one
  /// operand, the extents of a name must be equal.
  void add(const subscripts& text, std::size_t number, const dims& names, const dims& shape) {
    for (index_t axis = 0; axis < names.size(); ++axis) {
      index_t& extent = extents_[static_cast<std::size_t>(names[axis])];
      const auto first = std::find(names.begin(), names.begin() + axis, names[axis]);
      const index_t own = shape[first - names.begin()];
      if (own != shape[axis])
        differ(text, number, names[axis], "s " + std::to_string(own) + " and ", shape[axis]);
      if (extent >= 0 && extent != 1 && own != 1 && own != extent)
        differ(text, number, names[axis], " " + std::to_string(extent) + " before, and ", own);
      if (extent < 0 || extent == 1) extent = own;
    }
  }

 private:
  [[noreturn]] static void differ(const subscripts& text, std::size_t number, index_t name,
                                  const std::string& one, index_t other) {
    text.fail("'" + name_text(name) + "' has extent" + one + std::to_string(other) +
                  " in operand " + std::to_string(number),
              text.operands[number].begin);
  }

  std::array<index_t, axis_names_max> extents_{};
};

/// The operand with different names, and without its axes of length 1.
named_array simplified(named_array a) {
  for (index_t axis = 0; axis < a.names.size();) {
    const auto again =
        std::find(a.names.begin() + axis + 1, a.names.end(), a.names[axis]) - a.names.begin();
    if (again == a.names.size()) {
      ++axis;
      continue;
    }
    const index_t name = a.names[axis];
    a.values = a.values.diagonal(0, axis, again);
    a.names.erase(again);
    a.names.erase(axis);
    a.names.push_back(name);
  }
  for (index_t axis = a.names.size(); axis-- > 0;) {
    if (a.values.shape(axis) != 1) continue;
    a.values = a.values.squeeze(axis);
    a.names.erase(axis);
  }
  return a;
}

/// The number of elements of an array with these names.
double size_of(const name_set& names, const name_extents& extents) {
  double size = 1;
  for (index_t name = 0; name < axis_names_max; ++name)
    if (names[static_cast<std::size_t>(name)]) size *= static_cast<double>(extents[name]);
  return size;
}

/// Whether all sums are empty: a name that is summed has the extent 0.
bool sums_nothing(const std::vector<named_array>& operands, const dims& result,
                  const name_extents& extents) {
  for (const named_array& operand : operands)
    for (const index_t name : operand.names)
      if (extents[name] == 0 && std::find(result.begin(), result.end(), name) == result.end())
        return true;
  return false;
}

expr zeros_of(const dims& names, const name_extents& extents, dtype type) {
  dims shape;
  for (const index_t name : names) shape.push_back(extents[name]);
  return full(shape, 0, product_dtype(type, type));
}

/// The operands that are still to be multiplied.
class open_product {
 public:
  open_product(std::vector<named_array> operands, const name_extents& extents,
               const name_set& wanted)
      : operands_(std::move(operands)), extents_(extents), wanted_(wanted) {}

  named_array result() {
    while (operands_.size() > 1) multiply(cheapest());
    return summed(operands_.front(), wanted_);
  }

 private:
  using pair = std::pair<std::size_t, std::size_t>;

  /// The names that at least one operand has, those that at least two have, and those that at least
  /// three have.
  struct shared_names {
    name_set one, two, three;

    explicit shared_names(const std::vector<named_array>& operands) {
      for (const named_array& each : operands) {
        const name_set own = names_of(each);
        three |= two & own;
        two |= one & own;
        one |= own;
      }
    }

    /// The names of all operands except two. The names of these two are `a` and `b`.
    name_set without(const name_set& a, const name_set& b) const {
      return three | (two & ~(a & b)) | (one & ~(a | b));
    }
  };

  /// The pair whose product has the fewest elements. Among several such pairs, it is the one with
  /// the fewest multiplications; among several of those, the first one.
  pair cheapest() const {
    const shared_names shared(operands_);
    pair best{0, 1};
    std::pair<double, double> least{-1, -1};
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const name_set of_i = names_of(operands_[i]);
      for (std::size_t j = i + 1; j < operands_.size(); ++j) {
        const name_set of_j = names_of(operands_[j]), both = of_i | of_j;
        const name_set kept = both & (wanted_ | shared.without(of_i, of_j));
        const std::pair<double, double> costs{size_of(kept, extents_), size_of(both, extents_)};
        if (least.first >= 0 && !(costs < least)) continue;
        least = costs;
        best = {i, j};
      }
    }
    return best;
  }

  void multiply(const pair& of) {
    named_array& a = operands_[of.first];
    const named_array& b = operands_[of.second];
    const name_set kept = shared_names(operands_).without(names_of(a), names_of(b)) | wanted_;
    a = contracted(a, b, kept);
    operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(of.second));
  }

  std::vector<named_array> operands_;
  const name_extents& extents_;
  name_set wanted_;
};

expr einsum_of(const subscripts& text, std::span<const expr> operands) {
  if (operands.size() != text.operands.size())
    throw error(errc::invalid_argument, "einsum needs an operand for each term",
                {"got " + std::to_string(operands.size()) + " operands for '" +
                 std::string(text.text) + "'"});
  name_extents extents;
  std::vector<named_array> arrays;
  dtype type = operands[0].dtype();
  index_t ellipsis_axes = 0;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const dims names = text.names_of_operand(k, operands[k].shape());
    extents.add(text, k, names, operands[k].shape());
    ellipsis_axes = std::max(ellipsis_axes, names.size() - text.operands[k].names.size());
    arrays.push_back({operands[k], names});
    type = promote(type, operands[k].dtype());
  }
  const dims names = text.names_of_result(ellipsis_axes);
  if (sums_nothing(arrays, names, extents)) return zeros_of(names, extents, type);
  for (named_array& array : arrays) array = simplified({astype(array.values, type), array.names});

  // Names of extent 1 were left out. They come back at the end.
  dims left;
  name_set wanted;
  for (const index_t name : names) {
    if (extents[name] == 1) continue;
    left.push_back(name);
    wanted.set(static_cast<std::size_t>(name));
  }
  expr result = arranged(open_product(std::move(arrays), extents, wanted).result(), left);
  for (index_t axis = 0; axis < names.size(); ++axis)
    if (extents[names[axis]] == 1) result = result.expand_dims(axis);
  return result;
}

}  // namespace

expr einsum(std::string_view text, std::span<const expr> operands) {
  return allocating([&] { return einsum_of(subscripts::read(text), operands); });
}

}  // namespace shale
