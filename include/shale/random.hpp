// Random numbers. Distributions are expressions, which hold no elements in memory. `permutation`,
// `multinomial` and `shuffle` are evaluated at once.
//
//   generator source(42);
//   tensor noise = eval(normal(source, {1000, 1000}) * 0.1);
//
// The numbers are a function of the generator's seed, their position and the parameters alone:
// element i of a result, counted in row-major order, has the position of the generator plus i. So
// views of an expression, chunks of an array, and any number of threads, memory budget and
// instruction set give the same bits. docs/numerics.md has the methods and their resolution.
//
// Shape    `shape`
// Cost     a node of the expression. The numbers are computed each time it is evaluated
// Throws   invalid_argument: an invalid shape, a dtype that the function does not make, parameters
//          outside the stated range or not finite in the dtype, a position beyond 2^64 - 1;
//          out_of_memory. The generator then keeps its position
// Threads  expressions are values; one thread at a time may use a generator
#pragma once

#include <cstdint>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A seed and a position: where the next numbers are drawn. Two generators that are equal give the
/// same numbers. Numbers that are drawn one after another from one generator are independent, and
/// so are numbers of two seeds.
/// Source   Philox4x32-10 of J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random
///          numbers: as easy as 1, 2, 3, SC11 (2011)
class generator {
 public:
  explicit generator(std::uint64_t seed, std::uint64_t position = 0) noexcept
      : seed_(seed), position_(position) {}

  std::uint64_t seed() const noexcept { return seed_; }

  /// The position of the next element: the constructor's one, plus those drawn and skipped since.
  std::uint64_t position() const noexcept { return position_; }

  /// Advances the position by that number of elements, as if they had been drawn.
  /// Throws   invalid_argument for a position beyond 2^64 - 1
  void skip(std::uint64_t elements);

  /// The generator of the same seed at another position.
  generator at(std::uint64_t position) const noexcept { return generator(seed_, position); }

  /// Whether seeds and positions are equal.
  friend bool operator==(const generator& a, const generator& b) noexcept {
    return a.seed_ == b.seed_ && a.position_ == b.position_;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t position_;
};

// Each function below advances the generator by the number of elements of `shape`. Continuous
// numbers have the dtype float16, bfloat16, float32 or float64.

/// Numbers low <= x < high, evenly distributed. The bounds are rounded to the dtype; if they are
/// equal then, all numbers are.
/// Throws   invalid_argument also for low > high, and if high - low overflows
expr uniform(generator& from, const dims& shape, double low = 0, double high = 1,
             dtype type = dtype::float64);

/// The normal distribution. `stddev` is not negative.
expr normal(generator& from, const dims& shape, double mean = 0, double stddev = 1,
            dtype type = dtype::float64);

/// e to the power of numbers of the normal distribution. `stddev` is not negative.
expr log_normal(generator& from, const dims& shape, double mean = 0, double stddev = 1,
                dtype type = dtype::float64);

/// The exponential distribution with the mean `scale`, which is not negative. The rate of other
/// libraries is 1 / scale.
expr exponential(generator& from, const dims& shape, double scale = 1, dtype type = dtype::float64);

/// The Cauchy distribution. `scale`, half of the distance between the quartiles, is not negative.
expr cauchy(generator& from, const dims& shape, double median = 0, double scale = 1,
            dtype type = dtype::float64);

/// How many trials it takes until one succeeds, each with the given probability: 1, 2, ….
/// `type` is float64 or an integer dtype. Larger numbers become the largest one of the dtype.
/// Throws   invalid_argument also for a probability of 0
expr geometric(generator& from, const dims& shape, double probability, dtype type = dtype::int64);

/// True with the given probability (0 to 1), else false; in other dtypes 1 or 0. `type` is any
/// dtype.
expr bernoulli(generator& from, const dims& shape, double probability, dtype type = dtype::boolean);

/// Integers low <= x < high. The relative error of each probability is below 2^-32.
/// `type` is an integer dtype that holds them.
/// Throws   invalid_argument also for low >= high, and for bounds that are not integers
expr integers(generator& from, const dims& shape, const scalar& low, const scalar& high,
              dtype type = dtype::int64);

/// The numbers 0 to count - 1 in random order. They are evaluated at once. Advances the generator
/// by `count`.
/// Shape    (count); int64
/// Cost     O(count), on the calling thread
/// Throws   invalid_argument also for a negative count
tensor permutation(generator& from, index_t count);

/// Whether an item that was drawn can be drawn again.
enum class replacement : bool { no, yes };

/// `count` numbers of categories 0 to k - 1, each drawn with a probability in proportion to its
/// weight; without replacement, to its share of the weights that are left. They are evaluated at
/// once. Advances the generator by the number of results; without replacement, by the number of
/// weights.
/// Shape    (count) for `weights` of shape (k), (m, count) for (m, k); int64
/// Cost     O(k + count log k) for each row of weights, on the calling thread; holds `weights` as
///          float64, and one float64 for each result. Without replacement, as `topk` of the weights
/// Throws   as eval; invalid_argument also for a negative count, other ranks, complex weights, a
///          negative, infinite or NaN weight, a row without a positive one or of infinite sum, and,
///          without replacement, a row with fewer positive weights than `count`
/// Source   P. S. Efraimidis, P. G. Spirakis, Weighted random sampling with a reservoir,
///          Information Processing Letters 97 (2006)
tensor multinomial(generator& from, const expr& weights, index_t count,
                   replacement with = replacement::yes);

/// `count` of the slices of `a` along `axis`, each equally likely, in random order. Advances the
/// generator by `count`; without replacement, by the length of the axis.
/// Shape    that of `a`, with the length `count` along the axis; its dtype
/// Cost     as `take`; without replacement also a `permutation` of the axis
/// Throws   as take; invalid_argument also for a negative count, for no slices to draw from, and,
///          without replacement, for a count above the length of the axis
expr choice(generator& from, const expr& a, index_t count, replacement with = replacement::yes,
            index_t axis = 0);

/// Puts the slices of `out` along `axis` into random order. Advances the generator by the length of
/// the axis.
/// Cost     a `permutation` of the axis, a `take` and a copy; holds one copy of `out`
/// Throws   as copy; invalid_argument also for an axis that does not exist
/// Threads  no other thread may use the elements of `out` meanwhile
void shuffle(generator& from, const tensor& out, index_t axis = 0);

}  // namespace shale
