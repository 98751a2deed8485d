#include "ops/functions/linear_algebra/tall_factors.hpp"

#include <cassert>
#include <string>
#include <utility>
#include <vector>

#include "core/allocating.hpp"
#include "core/saturating.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/graph/nested_source.hpp"
#include "ops/graph/views.hpp"
#include "ops/linalg/blas_buffer.hpp"
#include "ops/linalg/blas_kernels.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "parallel/executor/executor_state.hpp"
#include "shale/error.hpp"

namespace shale::ops {

using lapack::integer_of;

namespace {

/// Stands for a block that has an element that is refused.
constexpr lapack::integer not_finite_block = 1;

/// The node of an operand whose parts can be evaluated one by one; it reads no stages.
node_ref node_of_parts(const expr& elements) {
  return node_of(with_computed_stages(expr_of(make_operand_of_parts(node_of(elements)))));
}

bool is_read_in_place(const node_ref& elements) {
  const expr value = expr_of(elements);
  return lies_in_memory(value) && held_operand(value).is_contiguous();
}

/// Some blocks that follow one another.
struct held_blocks {
  index_t first;
  index_t count;
  tensor elements;
};

/// Calls `body` with all held_blocks of a matrix, in order.
template <class Body>
void for_each_held(const tall_matrix& matrix, executor& on, const Body& body) {
  const index_t count = matrix.cut().count(), together = matrix.held_at_once(on);
  for (index_t first = 0; first < count; first += together) {
    const index_t some = std::min(together, count - first);
    const held_blocks held{first, some, matrix.held(first, some)};
    body(held);
    held.elements.storage().check();
  }
}

/// Calls `compute(number, elements, place, memory)` for blocks, in parallel; `place` counts within
/// `held`. If it returns false, the block has an element that is refused.
template <class Compute>
void compute_each(const tall_matrix& matrix, const held_blocks& held, const work_parts& parts,
                  double multiplications, executor& on, const Compute& compute) {
  const row_blocks& cut = matrix.cut();
  const batch_work work{held.count, parts.bytes(), multiplications,
                        matrix.bytes_read(held.elements)};
  const auto failed = for_each_matrix(work, on, [&](index_t place, std::byte* memory) {
    const index_t number = held.first + place;
    const tensor elements = held.elements.narrow(0, place * cut.block, cut.rows_of(number));
    return compute(number, elements, place, memory) ? lapack::integer{0} : not_finite_block;
  });
  if (!failed) return;
  const index_t first = (held.first + failed->number) * cut.block;
  throw error(errc::invalid_argument,
              std::string(matrix.function()) + ": an element is NaN or infinite",
              {"among rows " + std::to_string(first) + " to " +
               std::to_string(first + cut.rows_of(held.first + failed->number) - 1) +
               " of the matrix as it is read, of shape " + to_string(dims{cut.rows, cut.columns})});
}

std::vector<storage> matrices_of_bytes(std::size_t bytes, index_t count, executor& on) {
  std::vector<storage> made(static_cast<std::size_t>(count));
  for (storage& matrix : made) matrix = storage::allocate(bytes, &on.pool());
  return made;
}

}  // namespace

/// Sums of matrices: pairs are added, then pairs of these sums, and so on. So rounding errors stay
/// small, and the bits of the sum depend on the order of the matrices alone.
template <class T>
class sums_in_pairs {
 public:
  explicit sums_in_pairs(index_t elements) : elements_(elements) {}

  void add(storage next) {
    for (std::size_t level = 0;; ++level) {
      if (level == waiting_.size()) waiting_.emplace_back();
      if (!waiting_[level]) {
        waiting_[level] = next;
        return;
      }
      add_to(waiting_[level], next);
      next = waiting_[level];
      waiting_[level] = storage();
    }
  }

  /// At least one matrix was added.
  storage total() {
    storage sum;
    for (const storage& part : waiting_) {
      if (!part) continue;
      if (sum) add_to(part, sum);
      sum = part;
    }
    return sum;
  }

 private:
  /// The left matrix comes before the right one.
  void add_to(const storage& left, const storage& right) const {
    T* const sum = reinterpret_cast<T*>(left.data());
    const T* const other = reinterpret_cast<const T*>(right.data());
    for (index_t i = 0; i < elements_; ++i) sum[i] += other[i];
  }

  const index_t elements_;
  std::vector<storage> waiting_;  // number k, if it is held, is the sum of 2^k matrices
};

// ---- blocks -------------------------------------------------------------------------------------

tall_matrix::tall_matrix(const expr& elements, const row_blocks& cut, const char* function)
    : cut_(cut),
      function_(function),
      elements_(node_of_parts(elements)),
      source_depth_(1 + deepest_source(post_order(elements_.operand()))),
      is_in_place_(is_read_in_place(elements_.operand())) {}

tensor tall_matrix::held(index_t first_block, index_t count) const {
  const index_t first = first_block * cut_.block;
  const index_t rows = std::min(count * cut_.block, cut_.rows - first);
  return elements_.held({dims{first, 0}, dims{rows, cut_.columns}});
}

executor& tall_matrix::begin_pass() const {
  return is_in_place_ ? parallel::begin_call() : executor::current();
}

index_t tall_matrix::held_at_once(const executor& on) const {
  const std::uint64_t bytes = shale::detail::saturating_mul(
      static_cast<std::uint64_t>(cut_.block * cut_.columns), item_bytes(elements_.operand()->type));
  const std::uint64_t fitting = on.memory_bytes() / 4 / std::max<std::uint64_t>(bytes, 1);
  return static_cast<index_t>(
      std::clamp<std::uint64_t>(fitting, 1, static_cast<std::uint64_t>(cut_.count())));
}

/// Where the parts of the work memory of a block lie. Without q, `q_columns` is 0.
template <class T>
struct block_memory {
  work_parts parts;
  std::size_t elements, projected, scales, factor, top, q, work;
  index_t work_count;

  block_memory(const row_blocks& cut, bool is_projected, index_t q_columns) {
    const index_t rank = cut.rank();
    elements = parts.add<T>(cut.block * cut.columns);
    projected = parts.add<T>(is_projected ? cut.block * cut.width : 0);
    scales = parts.add<T>(rank);
    factor = parts.add<T>(q_columns > 0 ? rank * rank : 0);
    top = parts.add<T>(rank * q_columns);
    q = parts.add<T>(cut.block * q_columns);
    const lapack::integer height = integer_of(cut.block);
    work_count = lapack::geqrf_work<T>(height, integer_of(cut.width));
    if (q_columns > 0)
      work_count =
          std::max(work_count, lapack::ormqr_work<T>(lapack::side::left, height,
                                                     integer_of(q_columns), integer_of(rank)));
    integer_of(work_count);
    work = parts.add<T>(work_count);
  }
};

// ---- factors ------------------------------------------------------------------------------------

namespace {

/// The multiplications of a block, roughly.
double multiplications_of(const row_blocks& cut, bool is_projected) {
  const auto width = static_cast<double>(cut.width);
  return static_cast<double>(cut.block) * width *
         (2 * width + (is_projected ? static_cast<double>(cut.columns) : 0));
}

}  // namespace

template <class T>
tall_factors<T>::tall_factors(std::shared_ptr<const tall_matrix> matrix,
                              std::optional<tensor> projection, leaf_factors keep,
                              not_finite_elements treatment, executor& on)
    : matrix_(std::move(matrix)), projection_(std::move(projection)) {
  compute_r(keep, treatment, on);
}

template <class T>
void tall_factors<T>::compute_r(leaf_factors keep, not_finite_elements treatment, executor& on) {
  const index_t rank = cut().rank(), width = cut().width;
  const bool is_projected = projection_.has_value();
  const block_memory<T> at(cut(), is_projected, 0);
  tree_.emplace(cut().count(), integer_of(rank), integer_of(width), keep, on);
  const std::size_t bytes =
      static_cast<std::size_t>(rank) * static_cast<std::size_t>(width) * sizeof(T);
  for_each_held(*matrix_, on, [&](const held_blocks& held) {
    const std::vector<storage> triangles = matrices_of_bytes(bytes, held.count, on);
    const auto factor = [&](index_t number, const tensor& elements, index_t place,
                            std::byte* memory) {
      if (!factor_block(number, elements, treatment, at, memory)) return false;
      const index_t height = cut().height_of(number);
      const T* const from = part_at<T>(memory, is_projected ? at.projected : at.elements);
      T* const to = reinterpret_cast<T*>(triangles[static_cast<std::size_t>(place)].data());
      std::fill_n(to, rank * width, T(0));
      for (index_t column = 0; column < width; ++column)
        std::copy_n(from + column * height, std::min(column + 1, rank), to + column * rank);
      return true;
    };
    compute_each(*matrix_, held, at.parts, multiplications_of(cut(), is_projected), on, factor);
    tree_->add(triangles, on);
  });
  r_ = tree_->finish(on);
  if (keep == leaf_factors::dropped) tree_.reset();
}

/// Computes the reflections of a block in its work memory.
template <class T>
bool tall_factors<T>::factor_block(index_t number, const tensor& elements,
                                   not_finite_elements treatment, const block_memory<T>& at,
                                   std::byte* memory) const {
  const index_t height = cut().height_of(number), columns = cut().columns;
  const lapack::integer tall = integer_of(height), width = integer_of(cut().width);
  T* const matrix = part_at<T>(memory, at.elements);
  if (height > cut().rows_of(number)) std::fill_n(matrix, height * columns, T(0));
  matrix_batch(elements).load(0, matrix, height);
  if (treatment == not_finite_elements::refused && !has_only_finite(matrix, height * columns))
    return false;
  T* factored = matrix;
  if (projection_) {
    factored = part_at<T>(memory, at.projected);
    lapack::gemm(lapack::operation::none, lapack::operation::none, tall, width, integer_of(columns),
                 matrix, reinterpret_cast<const T*>(projection_->data()), factored);
  }
  lapack::geqrf(tall, width, factored, part_at<T>(memory, at.scales), part_at<T>(memory, at.work),
                integer_of(at.work_count));
  return true;
}

/// The rows of q of a block that was factored, column-major; rows of zeros included.
template <class T>
T* tall_factors<T>::q_of_block(index_t number, const std::optional<tensor>& turned,
                               const block_memory<T>& at, std::byte* memory) const {
  const index_t height = cut().height_of(number), rank = cut().rank();
  const index_t columns = turned ? turned->shape(-1) : rank;
  const lapack::integer small = integer_of(rank), wide = integer_of(columns);
  T* const top = part_at<T>(memory, at.top);
  if (turned) {
    T* const factor = part_at<T>(memory, at.factor);
    tree_->factor(number, factor);
    lapack::gemm(lapack::operation::none, lapack::operation::none, small, wide, small, factor,
                 reinterpret_cast<const T*>(turned->data()), top);
  } else {
    tree_->factor(number, top);
  }
  T* const q = part_at<T>(memory, at.q);
  for (index_t column = 0; column < columns; ++column) {
    std::copy_n(top + column * rank, rank, q + column * height);
    std::fill_n(q + column * height + rank, height - rank, T(0));
  }
  const T* const reflections = part_at<T>(memory, projection_ ? at.projected : at.elements);
  lapack::ormqr(lapack::side::left, lapack::operation::none, integer_of(height), wide, small,
                reflections, part_at<T>(memory, at.scales), q, part_at<T>(memory, at.work),
                integer_of(at.work_count));
  return q;
}

template <class T>
tensor tall_factors<T>::adjoint_times_q(executor& on) const {
  assert(projection_ && tree_);
  const index_t columns = cut().columns, rank = cut().rank();
  const block_memory<T> at(cut(), true, rank);
  const tensor made = empty_columns({}, columns, rank, dtype_of<T>(), on);
  sums_in_pairs<T> sums(columns * rank);
  for_each_held(*matrix_, on, [&](const held_blocks& held) {
    const std::vector<storage> products = matrices_of_bytes(made.size_bytes(), held.count, on);
    const auto multiply = [&](index_t number, const tensor& elements, index_t place,
                              std::byte* memory) {
      factor_block(number, elements, not_finite_elements::spread, at, memory);
      const T* const q = q_of_block(number, std::nullopt, at, memory);
      lapack::gemm(lapack::operation::conjugate_transpose, lapack::operation::none,
                   integer_of(columns), integer_of(rank), integer_of(cut().height_of(number)),
                   part_at<T>(memory, at.elements), q,
                   reinterpret_cast<T*>(products[static_cast<std::size_t>(place)].data()));
      return true;
    };
    compute_each(*matrix_, held, at.parts, 2 * multiplications_of(cut(), true), on, multiply);
    for (const storage& product : products) sums.add(product);
  });
  std::copy_n(reinterpret_cast<const T*>(sums.total().data()), columns * rank,
              reinterpret_cast<T*>(made.data()));
  return made;
}

template <class T>
void tall_factors<T>::store_q(index_t number, const std::optional<tensor>& turned,
                              const tensor& values) const {
  executor& on = executor::current();
  const tensor elements = matrix_->held(number, 1);
  const block_memory<T> at(cut(), projection_.has_value(), values.shape(-1));
  check_blas_kernels();
  const storage memory = storage::allocate(at.parts.bytes(), &on.pool());
  {
    const blas_buffer held;
    factor_block(number, elements, not_finite_elements::spread, at, memory.data());
    const T* const q = q_of_block(number, turned, at, memory.data());
    matrix_batch(values).store(0, q, cut().height_of(number));
  }
  elements.storage().check();
}

// ---- q as a tile source -------------------------------------------------------------------------

namespace {

template <class T>
class tall_q final : public tile_source, public nested_source {
 public:
  tall_q(std::shared_ptr<const tall_factors<T>> factors, std::optional<tensor> turned)
      : factors_(std::move(factors)),
        turned_(std::move(turned)),
        shape_{factors_->cut().rows, turned_ ? turned_->shape(-1) : factors_->cut().rank()},
        tile_shape_{factors_->cut().block, shape_[1]} {}

  shale::dtype dtype() const noexcept override { return dtype_of<T>(); }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  int depth() const noexcept override { return factors_->source_depth(); }

  void load(const dims& tile, const tensor& values) const override {
    shale::detail::allocating([&] { factors_->store_q(tile[0], turned_, values); });
  }

  /// Returns 0: the evaluations of the matrix's blocks count the bytes that they read.
  std::uint64_t stored_bytes(const dims&) const override { return 0; }

 private:
  std::shared_ptr<const tall_factors<T>> factors_;
  std::optional<tensor> turned_;
  dims shape_;
  dims tile_shape_;
};

}  // namespace

template <class T>
std::shared_ptr<const tile_source> make_tall_q(std::shared_ptr<const tall_factors<T>> factors,
                                               std::optional<tensor> turned) {
  return std::make_shared<const tall_q<T>>(std::move(factors), std::move(turned));
}

template class tall_factors<float>;
template class tall_factors<double>;
template class tall_factors<std::complex<float>>;
template class tall_factors<std::complex<double>>;

template std::shared_ptr<const tile_source> make_tall_q(std::shared_ptr<const tall_factors<float>>,
                                                        std::optional<tensor>);
template std::shared_ptr<const tile_source> make_tall_q(std::shared_ptr<const tall_factors<double>>,
                                                        std::optional<tensor>);
template std::shared_ptr<const tile_source> make_tall_q(
    std::shared_ptr<const tall_factors<std::complex<float>>>, std::optional<tensor>);
template std::shared_ptr<const tile_source> make_tall_q(
    std::shared_ptr<const tall_factors<std::complex<double>>>, std::optional<tensor>);

}  // namespace shale::ops
