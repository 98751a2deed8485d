// Decides whether two indices can reach the same byte: within one layout (`self_overlaps`), or in
// two layouts (`overlaps`). Both questions are the same problem: are there integers x_i with 0 <=
// x_i <= most_i and sum weight_i * x_i == target? The weights are strides (in elements or bytes),
// and the limits follow from the extents.
//
// The problem is NP-hard in general. It is easy for layouts that slicing makes, where each stride
// is larger than the reach of all smaller ones. The search below goes from the largest weight to
// the smallest. At each level it visits only choices whose rest is divisible by the divisor of the
// remaining weights and within their reach, so that simple layouts need one step per level.
// `work_cap` bounds the rest.
#include <algorithm>
#include <array>
#include <utility>

#include "shale/layout.hpp"

namespace shale {

namespace {

// Holds sums of products of two 64-bit numbers, and such sums times an item's width.
__extension__ typedef __int128 wide;

// After this number of steps (a few milliseconds) the answer is "overlaps", which is always safe.
constexpr int work_cap = 20'000;

struct term {
  wide weight = 0;
  wide most = 0;
};

wide greatest_common_divisor(wide a, wide b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

// The inverse of `weight` modulo `modulus`. They have no common divisor. The inverse modulo 1 is 0.
wide inverse_modulo(wide weight, wide modulus) {
  // Euclid's algorithm, which keeps old == inverse * weight (mod modulus).
  wide old = weight % modulus, rest = modulus, inverse = 1, next = 0;
  while (rest != 0) {
    const wide quotient = old / rest;
    old = std::exchange(rest, old - quotient * rest);
    inverse = std::exchange(next, inverse - quotient * next);
  }
  inverse %= modulus;
  return inverse < 0 ? inverse + modulus : inverse;
}

wide ceil_divide(wide a, wide b) { return (a + b - 1) / b; }  // a >= 0, b > 0

class equation {
 public:
  // Adds a term weight * x with 0 <= x <= most; `weight` may be negative. Substituting most - x for
  // x makes the weight positive and adds a constant to the target.
  void add(wide weight, wide most) {
    if (weight == 0 || most == 0) return;
    if (weight < 0) {
      weight = -weight;
      target_ += weight * most;
    }
    terms_[count_++] = {weight, most};
  }
  void add_to_target(wide constant) { target_ += constant; }

  // Returns whether a solution exists. Also returns true when `work` is used up.
  bool solvable(int& work) {
    normalize();
    if (count_ == 0) return target_ == 0;
    if (target_ < 0) return false;
    wide divisor = 0, reach = 0;
    for (int i = count_ - 1; i >= 0; --i) {
      const wide inner = std::exchange(divisor, greatest_common_divisor(terms_[i].weight, divisor));
      reach += terms_[i].weight * terms_[i].most;
      level& here = levels_[i];
      here = {.divisor = divisor, .reach = reach};
      if (inner == 0) continue;  // the smallest weight: the rest decides
      here.step = inner / divisor;
      here.inverse = inverse_modulo(terms_[i].weight / divisor, here.step);
    }
    return target_ % divisor == 0 && search(0, target_, work);
  }

 private:
  // One term for each axis of two layouts of the largest rank, and one for the bytes of an item of
  // each.
  static constexpr std::size_t terms_max = 2 * rank_max + 2;

  // Sorts by weight, largest first, and merges equal weights. Then it removes the smallest weight
  // as long as its reach is less than the common divisor of the larger weights. In that case there
  // is no carry: the smallest term must equal the target modulo that divisor, and the other terms
  // must reach the quotient.
  void normalize() {
    std::sort(terms_.begin(), terms_.begin() + count_,
              [](const term& a, const term& b) { return a.weight > b.weight; });
    int kept = 0;
    for (int i = 0; i < count_; ++i) {
      if (kept > 0 && terms_[kept - 1].weight == terms_[i].weight)
        terms_[kept - 1].most += terms_[i].most;
      else terms_[kept++] = terms_[i];
    }
    count_ = kept;
    std::array<wide, terms_max> outer;  // greatest common divisor of this and larger weights
    for (int i = 0; i < count_; ++i)
      outer[i] = greatest_common_divisor(terms_[i].weight, i > 0 ? outer[i - 1] : 0);
    wide scale = 1;  // all weights must still be divided by this
    while (count_ > 0 && target_ >= 0) {
      const wide common = count_ > 1 ? outer[count_ - 2] / scale : 0;
      const wide weight = terms_[count_ - 1].weight / scale;
      const wide reach = weight * terms_[count_ - 1].most;
      if (common != 0 && reach >= common) break;
      const wide rest = common != 0 ? target_ % common : target_;
      if (rest % weight != 0 || rest > reach) {
        target_ = -1;  // no solution
        return;
      }
      target_ = common != 0 ? target_ / common : 0;
      scale *= common;
      --count_;
    }
    for (int i = 0; i < count_; ++i) terms_[i].weight /= scale;
  }

  // Returns whether the terms from `depth` on can sum to `rest`. The divisor of these terms divides
  // `rest`.
  bool search(int depth, wide rest, int& work) const {
    const level& here = levels_[depth];
    if (rest < 0 || rest > here.reach) return false;
    if (depth + 1 == count_) return true;
    const term& own = terms_[depth];
    const wide beyond = rest - levels_[depth + 1].reach;
    const wide lowest = beyond > 0 ? ceil_divide(beyond, own.weight) : 0;
    const wide highest = std::min(own.most, rest / own.weight);
    // Visits only choices whose rest is divisible by the divisor of the remaining weights: x with
    // weight * x == rest modulo that divisor. No product overflows, because a step is less than
    // 2^63. Weights are strides (less than 2^63) times the width of an item. If `normalize` has
    // removed the terms for the bytes of an item, it has divided all weights by at least that
    // width. Otherwise these terms have weight 1, which makes the step 1.
    const wide first = rest / here.divisor % here.step * here.inverse % here.step;
    wide choice = lowest + (first - lowest) % here.step;
    if (choice < lowest) choice += here.step;
    for (; choice <= highest; choice += here.step) {
      if (--work < 0) return true;
      if (search(depth + 1, rest - choice * own.weight, work)) return true;
    }
    return false;
  }

  // Values for the search at each depth, about one term and all terms after it.
  struct level {
    wide divisor = 0;  // greatest common divisor of the weights
    wide reach = 0;    // largest sum
    wide step = 0;     // between choices with a rest that the later terms can divide
    wide inverse = 0;  // of weight / divisor, modulo step
  };

  std::array<term, terms_max> terms_{};
  std::array<level, terms_max> levels_{};
  int count_ = 0;
  wide target_ = 0;
};

wide magnitude(index_t value) { return value < 0 ? -static_cast<wide>(value) : value; }

}  // namespace

bool self_overlaps(const layout& values) noexcept {
  if (values.size() <= 1) return false;
  std::array<term, rank_max> axes{};
  int count = 0;
  for (index_t axis = 0; axis < values.rank(); ++axis) {
    if (values.shape()[axis] == 1) continue;
    if (values.strides()[axis] == 0) return true;
    axes[count++] = {magnitude(values.strides()[axis]), values.shape()[axis] - 1};
  }
  std::sort(axes.begin(), axes.begin() + count,
            [](const term& a, const term& b) { return a.weight > b.weight; });
  // If every stride is larger than the reach of all smaller ones, an index is like a number whose
  // digits have different bases: different indices have different positions. Most layouts are found
  // to be free of overlap here, in O(rank log rank).
  bool nested = true;
  wide inside = 0;
  for (int i = count - 1; i >= 0; --i) {
    nested = nested && axes[i].weight > inside;
    inside += axes[i].weight * axes[i].most;
  }
  if (nested) return false;

  // Two different indices with the same position differ by d with sum weight * d == 0 and |d_i| <=
  // most_i, and not all d_i are zero. If d is a solution, so is -d; so the first d_i that is not
  // zero may be assumed to be positive. Each round below assumes that it is axis `first`.
  int work = work_cap;
  for (int first = 0; first < count; ++first) {
    equation meeting;
    meeting.add(axes[first].weight, axes[first].most - 1);
    meeting.add_to_target(-axes[first].weight);
    for (int i = first + 1; i < count; ++i) {
      meeting.add(axes[i].weight, 2 * axes[i].most);
      meeting.add_to_target(axes[i].weight * axes[i].most);
    }
    if (meeting.solvable(work)) return true;
  }
  return false;
}

bool overlaps(const layout& a, std::size_t a_bytes, const layout& b, std::size_t b_bytes) noexcept {
  const auto a_reach = a.extent();
  const auto b_reach = b.extent();
  if (!a_reach || !b_reach || a_bytes == 0 || b_bytes == 0) return false;
  const auto a_width = static_cast<wide>(a_bytes);
  const auto b_width = static_cast<wide>(b_bytes);
  if ((a_reach->last + wide{1}) * a_width <= b_reach->first * b_width) return false;
  if ((b_reach->last + wide{1}) * b_width <= a_reach->first * a_width) return false;

  // The layouts overlap if (address of a byte in `a`) - (address of a byte in `b`) can be zero.
  equation meeting;
  meeting.add_to_target(b.offset() * b_width - a.offset() * a_width);
  for (index_t axis = 0; axis < a.rank(); ++axis)
    meeting.add(a.strides()[axis] * a_width, a.shape()[axis] - 1);
  for (index_t axis = 0; axis < b.rank(); ++axis)
    meeting.add(-(b.strides()[axis] * b_width), b.shape()[axis] - 1);
  meeting.add(1, a_width - 1);
  meeting.add(-1, b_width - 1);
  int work = work_cap;
  return meeting.solvable(work);
}

}  // namespace shale
