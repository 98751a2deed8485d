// Do two index expressions ever meet? Both questions of layout.hpp come down to one: is there a
// choice of 0 <= x_i <= most_i with sum weight_i * x_i == target? That is NP-hard in general and
// easy for the layouts that slicing makes, where each stride exceeds all that lies inside it.
#include <algorithm>
#include <array>
#include <utility>

#include "shale/layout.hpp"

namespace shale {

namespace {

// Sums of products of two 64-bit numbers, and of these with an item's width.
__extension__ typedef __int128 wide;

// After so many steps, a few milliseconds, the answer is "overlaps".
constexpr int work_cap = 20'000;

struct term {
  wide weight = 0;
  wide most = 0;
};

wide greatest_common_divisor(wide a, wide b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

// The inverse of `weight` modulo `modulus`, which have no common divisor; 0 modulo 1.
wide inverse_modulo(wide weight, wide modulus) {
  // Euclid, keeping old = inverse * weight (mod modulus).
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
  // x makes it positive and moves a constant to the other side.
  void add(wide weight, wide most) {
    if (weight == 0 || most == 0) return;
    if (weight < 0) {
      weight = -weight;
      target_ += weight * most;
    }
    terms_[count_++] = {weight, most};
  }
  void add_to_target(wide constant) { target_ += constant; }

  // Whether a solution exists; true as well once `work` is used up.
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
      if (inner == 0) continue;  // the last: what is left decides
      here.step = inner / divisor;
      here.inverse = inverse_modulo(terms_[i].weight / divisor, here.step);
    }
    return target_ % divisor == 0 && search(0, target_, work);
  }

 private:
  // Two layouts of the largest rank, and their bytes.
  static constexpr std::size_t most_terms = 2 * max_rank + 2;

  // Largest weight first, equal weights merged, and the smallest split off while it cannot carry
  // into the others: then it takes the remainder and they must meet the quotient.
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
    std::array<wide, most_terms> outer;  // greatest common divisor of this and larger weights
    for (int i = 0; i < count_; ++i)
      outer[i] = greatest_common_divisor(terms_[i].weight, i > 0 ? outer[i - 1] : 0);
    wide scale = 1;  // by which all weights are still to be divided
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

  // Whether the terms from `at` on can sum to `rest`, which their divisor divides.
  bool search(int at, wide rest, int& work) const {
    const level& here = levels_[at];
    if (rest < 0 || rest > here.reach) return false;
    if (at + 1 == count_) return true;
    const term& own = terms_[at];
    const wide beyond = rest - levels_[at + 1].reach;
    const wide lowest = beyond > 0 ? ceil_divide(beyond, own.weight) : 0;
    const wide highest = std::min(own.most, rest / own.weight);
    // The choices that leave a rest which the remaining weights divide: x with weight * x == rest
    // modulo their divisor. No product overflows, as a step is below 2^63: strides are, and weights
    // are strides times the width of an item; either the bytes of items were split off (see
    // `normalize`), which divides all weights by more than that width, or their weight of 1 makes
    // the step 1.
    const wide first = rest / here.divisor % here.step * here.inverse % here.step;
    wide choice = lowest + (first - lowest) % here.step;
    if (choice < lowest) choice += here.step;
    for (; choice <= highest; choice += here.step) {
      if (--work < 0) return true;
      if (search(at + 1, rest - choice * own.weight, work)) return true;
    }
    return false;
  }

  // What the search asks at each depth, of a term and those after it.
  struct level {
    wide divisor = 0;  // greatest common divisor of the weights
    wide reach = 0;    // largest sum
    wide step = 0;     // between choices that leave a rest which the terms after this one divide
    wide inverse = 0;  // of weight / divisor, modulo step
  };

  std::array<term, most_terms> terms_{};
  std::array<level, most_terms> levels_{};
  int count_ = 0;
  wide target_ = 0;
};

wide magnitude(index_t value) { return value < 0 ? -static_cast<wide>(value) : value; }

}  // namespace

bool self_overlaps(const layout& which) noexcept {
  if (which.size() <= 1) return false;
  std::array<term, max_rank> axes{};
  int count = 0;
  for (index_t axis = 0; axis < which.rank(); ++axis) {
    if (which.shape()[axis] == 1) continue;
    if (which.strides()[axis] == 0) return true;
    axes[count++] = {magnitude(which.strides()[axis]), which.shape()[axis] - 1};
  }
  std::sort(axes.begin(), axes.begin() + count,
            [](const term& a, const term& b) { return a.weight > b.weight; });
  bool nested = true;
  wide inside = 0;
  for (int i = count - 1; i >= 0; --i) {
    nested = nested && axes[i].weight > inside;
    inside += axes[i].weight * axes[i].most;
  }
  if (nested) return false;

  // Two indices that meet differ by d with sum weight * d == 0, each |d_i| <= most_i, not all zero.
  // d and -d both serve, so the first that is not zero may be taken as positive.
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

  // A byte of an element of `a` minus a byte of an element of `b` must be able to be zero.
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
