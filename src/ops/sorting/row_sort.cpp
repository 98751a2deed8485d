#include "ops/sorting/row_sort.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "ops/sorting/row_shape.hpp"
#include "ops/sorting/sort_items.hpp"
#include "parallel/executor/worker_scratch.hpp"
#include "parallel/operands/changing_operand.hpp"
#include "shale/error.hpp"

namespace shale::ops {

namespace {

// The numbers of elements that keys do not represent exactly.
struct unkeyed {
  index_t nans = 0;
  index_t zeros = 0;
  index_t minus_zeros = 0;

  // Whether the sorted row has lost a payload or a sign.
  bool has_lost() const { return nans > 0 || minus_zeros > 0; }
};

// Where the next NaN and the next zero of the operand belong in the sorted row.
struct unkeyed_places {
  index_t nan_at;
  index_t zero_at;
};

template <class T>
class row_sorter {
  using keys = order_keys<T>;
  using bits = typename keys::bits;

 public:
  row_sorter(bool descends, index_t length)
      : flip_(descends ? keys::last : bits{0}), length_(length) {}

  void sort(const bits* from, bits* out) const {
    make_keys(out, from, length_);
    const unkeyed found = count_unkeyed(from, length_);
    sort_items(out, length_);
    make_elements(out, length_);
    if (found.has_lost()) restore(from, length_, out, found, places_in(out, found));
  }

  void sort_in_parallel(const bits* from, bits* out, bits* spare, index_t pieces,
                        executor& on) const {
    std::vector<unkeyed> found(static_cast<std::size_t>(pieces));
    const equal_pieces bounds(length_, pieces);
    sort_in_pieces(
        out, spare, length_, pieces,
        [&](bits* to, index_t first, index_t end) { make_keys(to, from + first, end - first); },
        on);
    parallel::parallel_for_tiles(on, pieces, [&](index_t piece, int) {
      const index_t first = bounds.start(piece), count = bounds.start(piece + 1) - first;
      make_elements(out + first, count);
      found[static_cast<std::size_t>(piece)] = count_unkeyed(from + first, count);
    });
    unkeyed total;
    for (const unkeyed& piece : found) {
      total.nans += piece.nans;
      total.zeros += piece.zeros;
      total.minus_zeros += piece.minus_zeros;
    }
    if (!total.has_lost()) return;
    std::vector<unkeyed_places> places(found.size(), places_in(out, total));
    for (std::size_t piece = 1; piece < found.size(); ++piece) {
      places[piece].nan_at = places[piece - 1].nan_at + found[piece - 1].nans;
      places[piece].zero_at = places[piece - 1].zero_at + found[piece - 1].zeros;
    }
    parallel::parallel_for_tiles(on, pieces, [&](index_t piece, int) {
      const auto at = static_cast<std::size_t>(piece);
      const index_t first = bounds.start(piece);
      restore(from + first, bounds.start(piece + 1) - first, out, found[at], places[at]);
    });
  }

 private:
  void make_keys(bits* to, const bits* from, index_t count) const {
    for (index_t i = 0; i < count; ++i) to[i] = static_cast<bits>(keys::key(from[i]) ^ flip_);
  }

  void make_elements(bits* items, index_t count) const {
    for (index_t i = 0; i < count; ++i)
      items[i] = keys::element(static_cast<bits>(items[i] ^ flip_));
  }

  static unkeyed count_unkeyed(const bits* from, index_t count) {
    unkeyed found;
    if constexpr (keys::has_nan)
      for (index_t i = 0; i < count; ++i) {
        found.nans += keys::is_nan(from[i]) ? 1 : 0;
        found.zeros += keys::magnitude(from[i]) == 0 ? 1 : 0;
        found.minus_zeros += keys::is_minus_zero(from[i]) ? 1 : 0;
      }
    return found;
  }

  // Elements of a sorted row that have one key.
  struct run {
    index_t first;
    index_t count;
  };

  run run_of(const bits* sorted, bits element) const {
    const auto key_of = [this](bits of) { return static_cast<bits>(keys::key(of) ^ flip_); };
    const bits key = key_of(element);
    const bits* const end = sorted + length_;
    const bits* const first =
        std::partition_point(sorted, end, [&](bits other) { return key_of(other) < key; });
    const bits* const last =
        std::partition_point(first, end, [&](bits other) { return key_of(other) == key; });
    return {first - sorted, last - first};
  }

  // Where the first NaN and the first zero of the operand belong.
  // Throws   io if the operand has other numbers of them than when its keys were made (sort.4)
  unkeyed_places places_in(const bits* sorted, const unkeyed& total) const {
    const run nans = run_of(sorted, keys::element(keys::last)), zeros = run_of(sorted, bits{0});
    if (nans.count != total.nans || zeros.count != total.zeros)
      parallel::throw_changed("the operand");
    return {nans.first, zeros.first};
  }

  // sort.3, sort.4: stores the NaNs and zeros of a piece of the operand behind those of earlier
  // pieces.
  static void restore(const bits* from, index_t count, bits* out, const unkeyed& found,
                      unkeyed_places next) {
    const index_t nan_end = next.nan_at + found.nans, zero_end = next.zero_at + found.zeros;
    const auto store = [&](index_t& at, index_t end, bits element) {
      if (at == end) parallel::throw_changed("the operand");
      out[at++] = element;
    };
    for (index_t i = 0; i < count; ++i) {
      const bits element = parallel::read_once(from[i]);
      if (keys::is_nan(element)) store(next.nan_at, nan_end, element);
      else if (keys::magnitude(element) == 0) store(next.zero_at, zero_end, element);
    }
    if (next.nan_at != nan_end || next.zero_at != zero_end) parallel::throw_changed("the operand");
  }

  bits flip_;
  index_t length_;
};

template <class T>
void sort_rows_of(const tensor& from, const tensor& out, bool descends, executor& on) {
  using bits = typename order_keys<T>::bits;
  const row_shape shape(from);
  const row_sorter<T> sorter(descends, shape.length);
  const auto* const source = reinterpret_cast<const bits*>(from.data());
  auto* const target = reinterpret_cast<bits*>(out.data());
  const index_t pieces = pieces_of(shape, on);
  if (pieces > 1) {
    const tensor spare = tensor::empty({shape.length}, from.dtype(), &on.pool());
    for (index_t row = 0; row < shape.rows; ++row)
      sorter.sort_in_parallel(source + row * shape.length, target + row * shape.length,
                              reinterpret_cast<bits*>(spare.data()), pieces, on);
    return;
  }
  for_each_row(shape, sizeof(bits), on, [&](index_t row, int) {
    sorter.sort(source + row * shape.length, target + row * shape.length);
  });
}

// Pairs of a key and an index, as one number.
template <class Bits>
struct narrow_pairs {
  using item = std::uint64_t;
  static item make(Bits key, index_t index) {
    return static_cast<item>(key) << 32 | static_cast<item>(index);
  }
  static std::int64_t index(item pair) { return static_cast<std::uint32_t>(pair); }
};

struct wide_pairs {
  using item = wide_pair;
  static item make(std::uint64_t key, index_t index) {
    item made;
    made.hi = key;
    made.lo = static_cast<std::uint64_t>(index);
    return made;
  }
  static std::int64_t index(const item& pair) { return static_cast<std::int64_t>(pair.lo); }
};

template <class T, class Pairs>
void argsort_rows_by(const tensor& from, const tensor& out, bool descends, executor& on) {
  using bits = typename order_keys<T>::bits;
  using item = typename Pairs::item;
  const row_shape shape(from);
  const bits flip = descends ? order_keys<T>::last : bits{0};
  const auto* const source = reinterpret_cast<const bits*>(from.data());
  auto* const target = reinterpret_cast<std::int64_t*>(out.data());
  const auto make_pairs = [flip](item* to, const bits* row, index_t first, index_t end) {
    for (index_t i = first; i < end; ++i)
      to[i - first] = Pairs::make(static_cast<bits>(order_keys<T>::key(row[i]) ^ flip), i);
  };
  // Each index is stored at or before the place of its pair, which was read.
  const auto store_indices = [](std::int64_t* to, const item* pairs, index_t count) {
    for (index_t i = 0; i < count; ++i) to[i] = Pairs::index(pairs[i]);
  };
  // Pairs of 8 bytes are sorted where their indices belong.
  constexpr bool in_place = sizeof(item) == sizeof(std::int64_t);
  const auto room_for = [&on](index_t items) {
    return tensor::empty({items * static_cast<index_t>(sizeof(item) / sizeof(std::int64_t))},
                         dtype::int64, &on.pool());
  };
  const index_t pieces = pieces_of(shape, on);
  if (pieces > 1) {
    const tensor spare = room_for(shape.length);
    const tensor own = in_place ? tensor() : room_for(shape.length);
    const equal_pieces bounds(shape.length, pieces);
    for (index_t row = 0; row < shape.rows; ++row) {
      std::int64_t* const to = target + row * shape.length;
      auto* const pairs =
          reinterpret_cast<item*>(in_place ? reinterpret_cast<std::byte*>(to) : own.data());
      const bits* const elements = source + row * shape.length;
      sort_in_pieces(
          pairs, reinterpret_cast<item*>(spare.data()), shape.length, pieces,
          [&](item* made, index_t first, index_t end) { make_pairs(made, elements, first, end); },
          on);
      parallel::parallel_for_tiles(on, pieces, [&](index_t piece, int) {
        const index_t first = bounds.start(piece);
        store_indices(to + first, pairs + first, bounds.start(piece + 1) - first);
      });
    }
    return;
  }
  parallel::worker_scratch scratch(
      in_place ? 0 : static_cast<std::size_t>(shape.length) * sizeof(item), shape.rows, on);
  const auto sort_row = [&](index_t row, int worker) {
    std::int64_t* const to = target + row * shape.length;
    auto* const pairs =
        reinterpret_cast<item*>(in_place ? reinterpret_cast<std::byte*>(to) : scratch.of(worker));
    make_pairs(pairs, source + row * shape.length, 0, shape.length);
    sort_items(pairs, shape.length);
    store_indices(to, pairs, shape.length);
  };
  for_each_row(shape, sizeof(item), on, sort_row, scratch.workers());
}

}  // namespace

void require_order(dtype type, const char* function) {
  if (kind(type) == dtype_kind::complex)
    throw error(errc::invalid_argument,
                std::string(function) + " needs elements that have an order",
                {"got " + std::string(name(type)) + "; abs(x) has an order"});
}

void sort_rows(const tensor& from, const tensor& out, bool descends, executor& on) {
  if (from.size() == 0) return;
  visit(from.dtype(), ordered_types{},
        [&]<class T>(std::type_identity<T>) { sort_rows_of<T>(from, out, descends, on); });
  from.storage().check();
}

void argsort_rows(const tensor& from, const tensor& out, bool descends, executor& on) {
  if (from.size() == 0) return;
  visit(from.dtype(), ordered_types{}, [&]<class T>(std::type_identity<T>) {
    if constexpr (sizeof(T) < 8)
      if (from.shape(-1) <= index_t{1} << 32)
        return argsort_rows_by<T, narrow_pairs<typename order_keys<T>::bits>>(from, out, descends,
                                                                              on);
    argsort_rows_by<T, wide_pairs>(from, out, descends, on);
  });
  from.storage().check();
}

}  // namespace shale::ops
