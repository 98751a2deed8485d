#include "ops/linalg/triangle_tree.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "ops/linalg/matrix_batch.hpp"

namespace shale::ops {

namespace {

/// The children of a node.
constexpr index_t fan_in = 8;

/// The phase of a number: the number divided by its magnitude. It is 1 if the magnitude is 0 or not
/// finite.
template <class T>
T phase_of(const T& value) {
  const auto magnitude = std::abs(value);
  return magnitude > 0 && std::isfinite(magnitude) ? value / magnitude : T(1);
}

template <class T>
T conjugate(const T& value) {
  if constexpr (lapack::is_complex<T>) return std::conj(value);
  else return value;
}

template <class T>
T* elements_in(const storage& matrix) {
  return reinterpret_cast<T*>(matrix.data());
}

/// The work memory of a merge.
template <class T>
struct merge_memory {
  work_parts parts;
  std::size_t stacked, scales, block, work;
  index_t work_count;

  explicit merge_memory(lapack::integer columns) {
    const lapack::integer rows = lapack::integer_of(fan_in * index_t{columns});
    stacked = parts.add<T>(index_t{rows} * columns);
    scales = parts.add<T>(columns);
    block = parts.add<T>(index_t{columns} * columns);
    work_count = std::max(lapack::geqrf_work<T>(rows, columns),
                          lapack::orgqr_work<T>(rows, columns, columns));
    lapack::integer_of(work_count);
    work = parts.add<T>(work_count);
  }
};

double cube_of(lapack::integer n) {
  return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
}

}  // namespace

/// Children that become a node.
template <class T>
struct triangle_tree<T>::group {
  std::size_t level;        // of the children
  index_t first;            // the first child
  const storage* children;  // their triangles
  index_t count;
  const storage& triangle;  // that of the node
  const merge_memory<T>& at;
};

template <class T>
triangle_tree<T>::triangle_tree(index_t leaves, lapack::integer rows, lapack::integer columns,
                                leaf_factors keep, executor& on)
    : rows_(rows), columns_(columns) {
  index_t matrices = 0;
  for (index_t count = leaves;; count = ceil_div(count, fan_in)) {
    counts_.push_back(count);
    firsts_.push_back(matrices);
    matrices += count;
    if (count == 1) break;
  }
  merged_.resize(counts_.size(), 0);
  waiting_.resize(counts_.size());
  const auto square = static_cast<std::size_t>(rows) * static_cast<std::size_t>(rows);
  if (keep == leaf_factors::kept) factors_.emplace(square * sizeof(T), matrices, on);
}

template <class T>
bool triangle_tree<T>::is_only_child(std::size_t level, index_t node) const {
  return node % fan_in == 0 && node + 1 == counts_[level];
}

template <class T>
void triangle_tree<T>::read(std::size_t level, index_t node, T* to) const {
  factors_->read(firsts_[level] + node, reinterpret_cast<std::byte*>(to));
}

template <class T>
void triangle_tree<T>::write(std::size_t level, index_t node, const T* from) {
  factors_->write(firsts_[level] + node, reinterpret_cast<const std::byte*>(from));
}

template <class T>
void triangle_tree<T>::add(const std::vector<storage>& triangles, executor& on) {
  waiting_[0].insert(waiting_[0].end(), triangles.begin(), triangles.end());
  for (std::size_t level = 0; level + 1 < counts_.size(); ++level) {
    const auto ready = static_cast<index_t>(waiting_[level].size());
    const bool is_complete = merged_[level] + ready == counts_[level];
    const index_t groups = is_complete ? ceil_div(ready, fan_in) : ready / fan_in;
    if (groups > 0) merge(level, groups, on);
  }
}

template <class T>
void triangle_tree<T>::merge(std::size_t level, index_t groups, executor& on) {
  auto& children = waiting_[level];
  const auto ready = static_cast<index_t>(children.size());
  const auto bytes =
      static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns_) * sizeof(T);
  std::vector<storage> triangles;
  triangles.reserve(static_cast<std::size_t>(groups));
  for (index_t number = 0; number < groups; ++number) {
    const index_t first = number * fan_in;
    // An only child moves up unchanged.
    const bool is_only = is_only_child(level, merged_[level] + first);
    triangles.push_back(is_only ? children[static_cast<std::size_t>(first)]
                                : storage::allocate(bytes, &on.pool()));
  }
  const merge_memory<T> at(columns_);
  const batch_work work{groups, at.parts.bytes(), fan_in * cube_of(columns_), 0};
  for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
    const index_t first = number * fan_in;
    if (!is_only_child(level, merged_[level] + first))
      merge_group(
          {level, merged_[level] + first, children.data() + first, std::min(fan_in, ready - first),
           triangles[static_cast<std::size_t>(number)], at},
          memory);
    return lapack::integer{0};
  });
  const index_t taken = std::min(groups * fan_in, ready);
  children.erase(children.begin(), children.begin() + taken);
  merged_[level] += taken;
  auto& parents = waiting_[level + 1];
  parents.insert(parents.end(), triangles.begin(), triangles.end());
}

template <class T>
void triangle_tree<T>::merge_group(const group& merged, std::byte* memory) {
  const index_t n = columns_, height = merged.count * n;
  const lapack::integer rows = lapack::integer_of(height),
                        work_count = lapack::integer_of(merged.at.work_count);
  T* const stacked = part_at<T>(memory, merged.at.stacked);
  T* const scales = part_at<T>(memory, merged.at.scales);
  T* const work = part_at<T>(memory, merged.at.work);
  for (index_t child = 0; child < merged.count; ++child) {
    const T* const from = elements_in<T>(merged.children[child]);
    for (index_t column = 0; column < n; ++column)
      std::copy_n(from + column * n, n, stacked + column * height + child * n);
  }
  lapack::geqrf(rows, columns_, stacked, scales, work, work_count);
  T* const triangle = elements_in<T>(merged.triangle);
  std::fill_n(triangle, n * n, T(0));
  for (index_t column = 0; column < n; ++column)
    std::copy_n(stacked + column * height, column + 1, triangle + column * n);
  if (!factors_) return;
  lapack::orgqr(rows, columns_, columns_, stacked, scales, work, work_count);
  T* const block = part_at<T>(memory, merged.at.block);
  for (index_t child = 0; child < merged.count; ++child) {
    for (index_t column = 0; column < n; ++column)
      std::copy_n(stacked + column * height + child * n, n, block + column * n);
    write(merged.level, merged.first + child, block);
  }
}

template <class T>
tensor triangle_tree<T>::finish(executor& on) {
  const index_t m = rows_, n = columns_;
  const T* const root = elements_in<T>(waiting_.back().front());
  const tensor made = tensor::empty({m, n}, dtype_of<T>(), &on.pool());
  T* const to = reinterpret_cast<T*>(made.data());
  std::vector<T> signs(static_cast<std::size_t>(m * m), T(0));
  for (index_t row = 0; row < m; ++row) {
    const T phase = phase_of(root[row * m + row]);
    signs[static_cast<std::size_t>(row * m + row)] = phase;
    std::fill_n(to + row * n, row, T(0));
    for (index_t column = row; column < n; ++column)
      to[row * n + column] = conjugate(phase) * root[column * m + row];
    // Without an imaginary part from rounding.
    to[row * n + row] = T(std::real(to[row * n + row]));
  }
  if (factors_) {
    write(counts_.size() - 1, 0, signs.data());
    for (std::size_t level = counts_.size() - 1; level-- > 0;) pass_down(level, on);
  }
  waiting_.clear();
  return made;
}

/// Multiplies the blocks of q of a level by the factors of their parents.
template <class T>
void triangle_tree<T>::pass_down(std::size_t level, executor& on) {
  const index_t square = index_t{rows_} * rows_;
  work_parts parts;
  const std::size_t block_at = parts.add<T>(square), parent_at = parts.add<T>(square),
                    made_at = parts.add<T>(square);
  const batch_work work{counts_[level], parts.bytes(), cube_of(rows_), 0};
  for_each_matrix(work, on, [&](index_t node, std::byte* memory) {
    T* const parent = part_at<T>(memory, parent_at);
    read(level + 1, node / fan_in, parent);
    if (is_only_child(level, node)) {
      write(level, node, parent);
      return lapack::integer{0};
    }
    T* const block = part_at<T>(memory, block_at);
    T* const made = part_at<T>(memory, made_at);
    read(level, node, block);
    lapack::gemm(lapack::operation::none, lapack::operation::none, rows_, rows_, rows_, block,
                 parent, made);
    write(level, node, made);
    return lapack::integer{0};
  });
}

template class triangle_tree<float>;
template class triangle_tree<double>;
template class triangle_tree<std::complex<float>>;
template class triangle_tree<std::complex<double>>;

}  // namespace shale::ops
