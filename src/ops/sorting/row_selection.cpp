#include "ops/sorting/row_selection.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/sorting/row_shape.hpp"
#include "ops/sorting/sort_items.hpp"
#include "parallel/operands/changing_operand.hpp"

namespace shale::ops {

namespace {

template <class T>
using bits_of = typename order_keys<T>::bits;

template <class T>
const bits_of<T>* elements_at(const tensor& values) {
  return reinterpret_cast<const bits_of<T>*>(values.data());
}

template <class T>
bits_of<T>* elements_of(const tensor& values) {
  return reinterpret_cast<bits_of<T>*>(values.data());
}

std::int64_t* indices_of(const tensor& values) {
  return reinterpret_cast<std::int64_t*>(values.data());
}

// ---- the first elements -------------------------------------------------------------------------

template <class Bits>
struct candidate {
  Bits key;
  Bits element;
  std::int64_t index;

  bool operator<(const candidate& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};

// Keeps the first k of the elements that it has seen. Indices rise, so an element whose key is
// equal to that of the last kept element comes behind it.
template <class T>
class first_elements {
  using bits = bits_of<T>;

 public:
  first_elements(index_t k, bits flip) : k_(static_cast<std::size_t>(k)), flip_(flip) {}

  void add(const bits* from, index_t count, index_t first_index) {
    constexpr index_t block = 256;
    bits keys[block];
    for (index_t begin = 0; begin < count; begin += block) {
      const index_t length = std::min(block, count - begin);
      bits least = order_keys<T>::last;
      for (index_t i = 0; i < length; ++i) {
        keys[i] = static_cast<bits>(order_keys<T>::key(from[begin + i]) ^ flip_);
        least = std::min(least, keys[i]);
      }
      if (full_ && least >= last_) continue;
      for (index_t i = 0; i < length; ++i)
        if (!full_ || keys[i] < last_) keep({keys[i], from[begin + i], first_index + begin + i});
    }
  }

  void clear() {
    kept_.clear();
    full_ = false;
  }

  void keep(const candidate<bits>& found) {
    kept_.push_back(found);
    if (kept_.size() >= 2 * k_ + block_) shrink();
  }

  const std::vector<candidate<bits>>& in_order() {
    std::sort(kept_.begin(), kept_.end());
    if (kept_.size() > k_) kept_.resize(k_);
    return kept_;
  }

 private:
  void shrink() {
    std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(k_) - 1,
                     kept_.end());
    kept_.resize(k_);
    last_ = kept_.back().key;
    full_ = true;
  }

  static constexpr std::size_t block_ = 256;
  std::size_t k_;
  bits flip_;
  bool full_ = false;
  bits last_ = 0;  // the key of the last of the first k elements, as of the last `shrink`
  std::vector<candidate<bits>> kept_;
};

template <class T>
void select_first_of(const tensor& from, const std::vector<index_t>& result_rows, index_t first,
                     index_t k, bool descends, const tensor& values, const tensor& indices,
                     executor& on) {
  using bits = bits_of<T>;
  const row_shape shape(from);
  const bits flip = descends ? order_keys<T>::last : bits{0};
  const bits* const source = elements_at<T>(from);
  const auto result_row_of = [&](index_t row) {
    return result_rows.empty() ? row : result_rows[static_cast<std::size_t>(row)];
  };
  const auto load_best = [&](first_elements<T>& best, index_t result_row) {
    for (index_t i = 0; i < std::min(k, first); ++i) {
      const bits element = elements_at<T>(values)[result_row * k + i];
      best.keep({static_cast<bits>(order_keys<T>::key(element) ^ flip), element,
                 indices_of(indices)[result_row * k + i]});
    }
  };
  const auto store_best = [&](first_elements<T>& best, index_t result_row) {
    index_t at = result_row * k;
    for (const auto& found : best.in_order()) {
      elements_of<T>(values)[at] = found.element;
      indices_of(indices)[at++] = found.index;
    }
  };
  const index_t pieces = pieces_of(shape, on);
  if (pieces == 1) {
    std::vector<first_elements<T>> of_workers(static_cast<std::size_t>(on.threads()),
                                              first_elements<T>(k, flip));
    for_each_row(shape, sizeof(bits), on, [&](index_t row, int worker) {
      first_elements<T>& best = of_workers[static_cast<std::size_t>(worker)];
      best.clear();
      const index_t result_row = result_row_of(row);
      load_best(best, result_row);
      best.add(source + row * shape.length, shape.length, first);
      store_best(best, result_row);
    });
    return;
  }
  const equal_pieces bounds(shape.length, pieces);
  for (index_t row = 0; row < shape.rows; ++row) {
    std::vector<std::vector<candidate<bits>>> found(static_cast<std::size_t>(pieces));
    parallel::parallel_for_tiles(
        on, pieces,
        [&](index_t piece, int) {
          const index_t begin = bounds.start(piece);
          first_elements<T> best(k, flip);
          best.add(source + row * shape.length + begin, bounds.start(piece + 1) - begin,
                   first + begin);
          found[static_cast<std::size_t>(piece)] = best.in_order();
        },
        {.progress_bytes = static_cast<std::uint64_t>(shape.length) * sizeof(bits)});
    first_elements<T> best(k, flip);
    const index_t result_row = result_row_of(row);
    load_best(best, result_row);
    for (const auto& piece : found)
      for (const auto& element : piece) best.keep(element);
    store_best(best, result_row);
  }
}

// ---- ranks --------------------------------------------------------------------------------------

// The bins of keys: those with the same leading bits are in one bin.
template <class T>
class key_bins {
  using bits = bits_of<T>;
  static constexpr int key_bits = 8 * sizeof(T);
  static constexpr int counted_bits = std::min(key_bits, 12);

 public:
  static constexpr int count = 1 << counted_bits;
  static int bin_of(bits key) { return static_cast<int>(key >> (key_bits - counted_bits)); }
};

// A number for each bin, for each piece of a row.
using numbers_of_bins = std::vector<std::vector<index_t>>;

// The number of keys in each bin.
template <class T>
numbers_of_bins count_keys(const bits_of<T>* row, index_t pieces, const equal_pieces& bounds,
                           executor& on) {
  using bins = key_bins<T>;
  numbers_of_bins of_pieces(static_cast<std::size_t>(pieces));
  parallel::parallel_for_tiles(
      on, pieces,
      [&](index_t piece, int) {
        std::vector<index_t> own(bins::count, 0);
        for (index_t i = bounds.start(piece); i < bounds.start(piece + 1); ++i)
          ++own[static_cast<std::size_t>(bins::bin_of(order_keys<T>::key(row[i])))];
        of_pieces[static_cast<std::size_t>(piece)] = std::move(own);
      },
      {.progress_bytes = static_cast<std::uint64_t>(bounds.start(pieces)) * sizeof(bits_of<T>)});
  return of_pieces;
}

// Stores the keys of the wanted bins. The keys of a bin and piece begin at its place in `starts`,
// and `counts` tells their number.
// Throws   io if their number has changed since (rank.3)
template <class T>
void gather_keys(const bits_of<T>* row, const equal_pieces& bounds, const numbers_of_bins& counts,
                 const numbers_of_bins& starts, const std::vector<bool>& is_wanted,
                 bits_of<T>* keys, executor& on) {
  using bins = key_bins<T>;
  const auto pieces = static_cast<index_t>(counts.size());
  parallel::parallel_for_tiles(on, pieces, [&](index_t piece, int) {
    const std::vector<index_t>& count = counts[static_cast<std::size_t>(piece)];
    const std::vector<index_t>& start = starts[static_cast<std::size_t>(piece)];
    std::vector<index_t> found(bins::count, 0);
    for (index_t i = bounds.start(piece); i < bounds.start(piece + 1); ++i) {
      const bits_of<T> key = order_keys<T>::key(parallel::read_once(row[i]));
      const auto bin = static_cast<std::size_t>(bins::bin_of(key));
      if (!is_wanted[bin]) continue;
      if (found[bin] == count[bin]) parallel::throw_changed("the operand");
      keys[start[bin] + found[bin]++] = key;
    }
    for (std::size_t bin = 0; bin < bins::count; ++bin)
      if (is_wanted[bin] && found[bin] != count[bin]) parallel::throw_changed("the operand");
  });
}

// The keys with the given ranks of a long row (rank.2).
template <class T>
std::vector<bits_of<T>> ranked_keys(const bits_of<T>* row, index_t length, index_t pieces,
                                    const std::vector<index_t>& ranks, executor& on) {
  using bits = bits_of<T>;
  using bins = key_bins<T>;
  const equal_pieces bounds(length, pieces);
  const auto of_pieces = count_keys<T>(row, pieces, bounds, on);
  std::vector<index_t> starts(bins::count + 1, 0);
  for (std::size_t bin = 0; bin < bins::count; ++bin) {
    starts[bin + 1] = starts[bin];
    for (const auto& own : of_pieces) starts[bin + 1] += own[bin];
  }
  std::vector<bool> is_wanted(bins::count, false);
  std::vector<std::size_t> bin_of_rank;
  bin_of_rank.reserve(ranks.size());
  index_t gathered = 0;
  for (const index_t rank : ranks) {
    const auto bin = static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), rank) -
                                              starts.begin() - 1);
    if (!is_wanted[bin]) gathered += starts[bin + 1] - starts[bin];
    is_wanted[bin] = true;
    bin_of_rank.push_back(bin);
  }
  // The places of each bin's keys, and then of each piece's in it.
  std::vector<index_t> places(bins::count, 0);
  index_t place = 0;
  numbers_of_bins starts_of(static_cast<std::size_t>(pieces));
  for (auto& own : starts_of) own.assign(bins::count, 0);
  for (std::size_t bin = 0; bin < bins::count; ++bin) {
    places[bin] = place;
    if (!is_wanted[bin]) continue;
    for (std::size_t piece = 0; piece < of_pieces.size(); ++piece) {
      starts_of[piece][bin] = place;
      place += of_pieces[piece][bin];
    }
  }
  const storage memory =
      storage::allocate(static_cast<std::size_t>(gathered) * sizeof(bits), &on.pool());
  auto* const keys = reinterpret_cast<bits*>(memory.data());
  gather_keys<T>(row, bounds, of_pieces, starts_of, is_wanted, keys, on);
  std::vector<bits> found;
  found.reserve(ranks.size());
  for (std::size_t bin = 0; bin < bins::count; ++bin)
    if (is_wanted[bin]) sort_items(keys + places[bin], starts[bin + 1] - starts[bin]);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    found.push_back(keys[places[bin_of_rank[i]] + ranks[i] - starts[bin_of_rank[i]]]);
  return found;
}

// Calls `found(row, keys)` with the keys of each row that have the wanted ranks.
template <class T, class Found>
void for_each_ranked(const tensor& from, const wanted_ranks& wanted, executor& on,
                     const Found& found) {
  using bits = bits_of<T>;
  const row_shape shape(from);
  const bits* const source = elements_at<T>(from);
  const index_t pieces = pieces_of(shape, on);
  if (shape.rows < 2 * on.threads() && shape.length >= piece_elements_min) {
    std::vector<index_t> ranks(static_cast<std::size_t>(wanted.count));
    for (index_t row = 0; row < shape.rows; ++row) {
      wanted.of_row(row, ranks.data());
      found(row, ranked_keys<T>(source + row * shape.length, shape.length, pieces, ranks, on));
    }
    return;
  }
  struct memory {
    std::vector<index_t> ranks;
    std::vector<bits> keys, chosen;
  };
  std::vector<memory> of_workers(static_cast<std::size_t>(on.threads()));
  for_each_row(shape, sizeof(bits), on, [&](index_t row, int worker) {
    auto& [ranks, keys, chosen] = of_workers[static_cast<std::size_t>(worker)];
    ranks.resize(static_cast<std::size_t>(wanted.count));
    keys.resize(static_cast<std::size_t>(shape.length));
    chosen.resize(ranks.size());
    wanted.of_row(row, ranks.data());
    for (index_t i = 0; i < shape.length; ++i)
      keys[static_cast<std::size_t>(i)] = order_keys<T>::key(source[row * shape.length + i]);
    sort_items(keys.data(), shape.length);
    for (std::size_t i = 0; i < ranks.size(); ++i)
      chosen[i] = keys[static_cast<std::size_t>(ranks[i])];
    found(row, chosen);
  });
}

template <class T>
void select_ranked_of(const tensor& from, index_t rank, const tensor& values, const tensor& indices,
                      executor& on) {
  using bits = bits_of<T>;
  const index_t length = from.shape(-1);
  const wanted_ranks wanted{1, [rank](index_t, index_t* ranks) { *ranks = rank; }};
  for_each_ranked<T>(from, wanted, on, [&](index_t row, const std::vector<bits>& keys) {
    const bits* const elements = elements_at<T>(from) + row * length;
    index_t before = 0;  // elements that come before all with this key
    for (index_t i = 0; i < length; ++i) before += order_keys<T>::key(elements[i]) < keys[0];
    index_t equal = rank - before;
    index_t at = 0;
    for (; at < length; ++at)
      if (order_keys<T>::key(elements[at]) == keys[0] && equal-- == 0) break;
    if (at == length) parallel::throw_changed("the operand");  // the element is gone
    elements_of<T>(values)[row] = elements[at];
    indices_of(indices)[row] = at;
  });
}

template <class T>
void select_modes_of(const tensor& sorted, const tensor& order, const tensor& values,
                     const tensor& indices, executor& on) {
  using bits = bits_of<T>;
  const row_shape shape(sorted);
  for_each_row(shape, sizeof(bits), on, [&](index_t row, int) {
    const bits* const elements = elements_at<T>(sorted) + row * shape.length;
    index_t best = 0, most = 0;
    for (index_t begin = 0; begin < shape.length;) {
      const bits key = order_keys<T>::key(elements[begin]);
      index_t end = begin + 1;
      while (end < shape.length && order_keys<T>::key(elements[end]) == key) ++end;
      if (end - begin > most) {
        most = end - begin;
        best = begin;
      }
      begin = end;
    }
    elements_of<T>(values)[row] = elements[best];
    indices_of(indices)[row] = indices_of(order)[row * shape.length + best];
  });
}

}  // namespace

void select_first(const tensor& from, const std::vector<index_t>& result_rows, index_t first,
                  index_t k, bool descends, const tensor& values, const tensor& indices,
                  executor& on) {
  if (from.size() == 0 || k == 0) return;
  visit(from.dtype(), ordered_types{}, [&]<class T>(std::type_identity<T>) {
    select_first_of<T>(from, result_rows, first, k, descends, values, indices, on);
  });
  from.storage().check();
}

tensor select_ranks(const tensor& from, const wanted_ranks& ranks, executor& on) {
  const row_shape shape(from);
  const index_t count = ranks.count;
  const tensor out = tensor::empty({shape.rows, count}, from.dtype(), &on.pool());
  if (out.size() == 0) return out;
  visit(from.dtype(), ordered_types{}, [&]<class T>(std::type_identity<T>) {
    for_each_ranked<T>(from, ranks, on, [&](index_t row, const std::vector<bits_of<T>>& keys) {
      for (std::size_t i = 0; i < keys.size(); ++i)
        elements_of<T>(out)[row * count + static_cast<index_t>(i)] =
            order_keys<T>::element(keys[i]);
    });
  });
  from.storage().check();
  return out;
}

void select_ranked(const tensor& from, index_t rank, const tensor& values, const tensor& indices,
                   executor& on) {
  if (from.size() == 0) return;
  visit(from.dtype(), ordered_types{}, [&]<class T>(std::type_identity<T>) {
    select_ranked_of<T>(from, rank, values, indices, on);
  });
  from.storage().check();
}

void select_modes(const tensor& sorted, const tensor& order, const tensor& values,
                  const tensor& indices, executor& on) {
  if (sorted.size() == 0) return;
  visit(sorted.dtype(), ordered_types{}, [&]<class T>(std::type_identity<T>) {
    select_modes_of<T>(sorted, order, values, indices, on);
  });
}

}  // namespace shale::ops
