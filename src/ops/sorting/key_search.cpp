#include "ops/sorting/key_search.hpp"

#include <numeric>
#include <vector>

#include "ops/sorting/order_keys.hpp"
#include "ops/sorting/row_shape.hpp"

namespace shale::ops {

namespace {

// Counts, among the first `count` elements, those whose keys are less than `key`, or with
// `behind_equal` not greater. No branch depends on the elements.
template <class T, bool behind_equal>
index_t position_of(const typename order_keys<T>::bits* sorted, index_t count,
                    typename order_keys<T>::bits key) {
  index_t first = 0;
  while (count > 0) {
    const index_t half = count / 2;
    const auto seen = order_keys<T>::key(sorted[first + half]);
    const bool behind = behind_equal ? seen <= key : seen < key;
    first = behind ? first + half + 1 : first;
    count = behind ? count - half - 1 : half;
  }
  return first;
}

template <class T, bool behind_equal>
void search_all(const tensor& sorted, const tensor& values, const tensor& out, executor& on) {
  using bits = typename order_keys<T>::bits;
  const auto* const elements = reinterpret_cast<const bits*>(sorted.data());
  const auto* const wanted = reinterpret_cast<const bits*>(values.data());
  auto* const to = reinterpret_cast<std::int64_t*>(out.data());
  const index_t count = values.size(), length = sorted.size();
  const index_t unit = piece_elements_min / 8;
  parallel::parallel_for_tiles(
      on, ceil_div(count, unit),
      [&](index_t number, int) {
        const index_t end = std::min(count, (number + 1) * unit);
        for (index_t i = number * unit; i < end; ++i)
          to[i] = position_of<T, behind_equal>(elements, length, order_keys<T>::key(wanted[i]));
      },
      {.progress_bytes = static_cast<std::uint64_t>(count) * sizeof(bits)});
}

template <class T>
tensor group_starts_of(const tensor& sorted, executor& on) {
  using bits = typename order_keys<T>::bits;
  const auto* const elements = reinterpret_cast<const bits*>(sorted.data());
  const index_t length = sorted.size();
  const auto starts_group = [&](index_t i) {
    const bits key = order_keys<T>::key(elements[i]);
    return i == 0 || order_keys<T>::is_nan(elements[i]) ||
           order_keys<T>::key(elements[i - 1]) != key;
  };
  const index_t pieces = ceil_div(length, piece_elements_min);
  const auto end_of = [&](index_t piece) {
    return std::min(length, (piece + 1) * piece_elements_min);
  };
  std::vector<index_t> found(static_cast<std::size_t>(pieces) + 1, 0);
  parallel::parallel_for_tiles(on, pieces, [&](index_t piece, int) {
    index_t count = 0;
    for (index_t i = piece * piece_elements_min; i < end_of(piece); ++i)
      count += starts_group(i) ? 1 : 0;
    found[static_cast<std::size_t>(piece) + 1] = count;
  });
  std::partial_sum(found.begin(), found.end(), found.begin());
  const tensor out = tensor::empty({found.back() + 1}, dtype::int64, &on.pool());
  auto* const starts = reinterpret_cast<std::int64_t*>(out.data());
  parallel::parallel_for_tiles(on, pieces, [&](index_t piece, int) {
    index_t next = found[static_cast<std::size_t>(piece)];
    for (index_t i = piece * piece_elements_min; i < end_of(piece); ++i)
      if (starts_group(i)) starts[next++] = i;
  });
  starts[found.back()] = length;
  return out;
}

}  // namespace

void search_keys(const tensor& sorted, const tensor& values, bool behind_equal, const tensor& out,
                 executor& on) {
  if (values.size() == 0) return;
  visit(values.dtype(), ordered_types{}, [&]<class T>(std::type_identity<T>) {
    behind_equal ? search_all<T, true>(sorted, values, out, on)
                 : search_all<T, false>(sorted, values, out, on);
  });
  sorted.storage().check();
  values.storage().check();
}

bool is_sorted(const tensor& elements) {
  return visit(elements.dtype(), ordered_types{}, [&]<class T>(std::type_identity<T>) {
    const auto* const bits = reinterpret_cast<const typename order_keys<T>::bits*>(elements.data());
    for (index_t i = 1; i < elements.size(); ++i)
      if (order_keys<T>::key(bits[i]) < order_keys<T>::key(bits[i - 1])) return false;
    return true;
  });
}

tensor group_starts(const tensor& sorted, executor& on) {
  return visit(sorted.dtype(), ordered_types{},
               [&]<class T>(std::type_identity<T>) { return group_starts_of<T>(sorted, on); });
}

}  // namespace shale::ops
