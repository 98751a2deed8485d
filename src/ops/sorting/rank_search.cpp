#include "ops/sorting/rank_search.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>

#include "core/grid.hpp"
#include "ops/sorting/order_keys.hpp"
#include "ops/sorting/row_shape.hpp"
#include "ops/sorting/sort_items.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/operands/changing_operand.hpp"

namespace shale::ops {

namespace {

template <class T>
class rank_search {
  using keys = order_keys<T>;
  using bits = typename keys::bits;
  static constexpr int key_bits = 8 * sizeof(T);

  // The elements whose keys have the same known leading bits, which are those of a wanted rank.
  struct group {
    std::uint64_t leading;
    index_t before;  // the elements with lower leading bits
    index_t count;
  };

 public:
  rank_search(index_t count, const std::vector<index_t>& ranks, executor& on)
      : ranks_(ranks), groups_{{0, 0, count}}, group_of_rank_(ranks.size(), 0), on_(on) {}

  searched_ranks run(dtype type, index_t gathered_max, const part_loop& for_each_part) {
    do narrow(for_each_part);
    while (known_bits_ < key_bits && gathered() > gathered_max);
    searched_ranks found{tensor::empty({static_cast<index_t>(ranks_.size())}, type, &on_.pool()),
                         {}};
    auto* const elements = reinterpret_cast<bits*>(found.elements.data());
    const bool is_gathered = known_bits_ < key_bits;
    const std::vector<bits> sorted = is_gathered ? gather(for_each_part) : std::vector<bits>{};
    const std::vector<index_t> starts = starts_of_groups();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const group& own = groups_[group_of_rank_[i]];
      const auto first = sorted.begin() + (is_gathered ? starts[group_of_rank_[i]] : 0);
      const bits key = is_gathered ? first[ranks_[i] - own.before] : static_cast<bits>(own.leading);
      elements[i] = keys::element(key);
      const index_t lower = is_gathered ? std::lower_bound(first, sorted.end(), key) - first : 0;
      found.before.push_back(own.before + lower);
    }
    return found;
  }

 private:
  // The number of the element's group, or that of all groups if it is in none.
  std::size_t group_of(bits key) const {
    if (known_bits_ == 0) return 0;
    const std::uint64_t leading = std::uint64_t{key} >> (key_bits - known_bits_);
    const auto found = first_with(leading);
    return found != groups_.end() && found->leading == leading
               ? static_cast<std::size_t>(found - groups_.begin())
               : groups_.size();
  }

  typename std::vector<group>::const_iterator first_with(std::uint64_t leading) const {
    return std::lower_bound(
        groups_.begin(), groups_.end(), leading,
        [](const group& one, std::uint64_t other) { return one.leading < other; });
  }

  index_t gathered() const {
    index_t sum = 0;
    for (const group& one : groups_) sum += one.count;
    return sum;
  }

  // Where each group begins among the sorted keys of all groups.
  std::vector<index_t> starts_of_groups() const {
    std::vector<index_t> starts{0};
    for (const group& one : groups_) starts.push_back(starts.back() + one.count);
    return starts;
  }

  // Calls `body(elements, count, worker)` for units of a part, in parallel.
  template <class Body>
  void for_each_unit(const tensor& part, const Body& body) const {
    const auto* const elements = reinterpret_cast<const bits*>(part.data());
    parallel::parallel_for_tiles(on_, ceil_div(part.size(), piece_elements_min),
                                 [&](index_t unit, int worker) {
                                   const index_t first = unit * piece_elements_min;
                                   body(elements + first,
                                        std::min(piece_elements_min, part.size() - first),
                                        static_cast<std::size_t>(worker));
                                 },
                                 {.progress_bytes = part.size_bytes()});
  }

  // search.1
  void narrow(const part_loop& for_each_part) {
    // The counts take 512 KiB for each group if there are few, else 2 KiB.
    const int step = std::min(key_bits - known_bits_, groups_.size() <= 8 ? 16 : 8);
    const int shift = key_bits - known_bits_ - step;
    const std::size_t bins = std::size_t{1} << step;
    std::vector<std::vector<index_t>> of_workers(static_cast<std::size_t>(on_.threads()));
    for_each_part([&](const tensor& part) {
      for_each_unit(part, [&](const bits* elements, index_t count, std::size_t worker) {
        std::vector<index_t>& own = of_workers[worker];
        own.resize(groups_.size() * bins, 0);
        for (index_t i = 0; i < count; ++i) {
          const bits key = keys::key(elements[i]);
          const std::size_t number = group_of(key);
          if (number == groups_.size()) continue;
          ++own[number * bins + ((std::uint64_t{key} >> shift) & (bins - 1))];
        }
      });
    });
    std::vector<index_t> counts(groups_.size() * bins, 0);
    for (const std::vector<index_t>& own : of_workers)
      for (std::size_t i = 0; i < own.size(); ++i) counts[i] += own[i];
    split(std::move(counts), step);
  }

  // The part of a group that has the element of a rank. `sums` tells for each bin of the group how
  // many of its elements have this one or a lower one.
  static group part_with(index_t rank, const group& whole, const index_t* sums, int step) {
    const index_t* const end = sums + (std::ptrdiff_t{1} << step);
    const index_t* const found = std::upper_bound(sums, end, rank - whole.before);
    if (found == end) parallel::throw_changed("the operand");
    const index_t lower = found == sums ? 0 : found[-1];
    return {whole.leading << step | static_cast<std::uint64_t>(found - sums), whole.before + lower,
            *found - lower};
  }

  void split(std::vector<index_t> counts, int step) {
    index_t* const sums = counts.data();
    for (std::size_t number = 0; number < groups_.size(); ++number) {
      index_t* const own = sums + (number << step);
      std::partial_sum(own, own + (std::ptrdiff_t{1} << step), own);
    }
    std::vector<group> of_ranks;
    of_ranks.reserve(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      of_ranks.push_back(part_with(ranks_[i], groups_[group_of_rank_[i]],
                                   sums + (group_of_rank_[i] << step), step));
    groups_ = of_ranks;
    std::sort(groups_.begin(), groups_.end(),
              [](const group& a, const group& b) { return a.leading < b.leading; });
    const auto end =
        std::unique(groups_.begin(), groups_.end(),
                    [](const group& a, const group& b) { return a.leading == b.leading; });
    groups_.erase(end, groups_.end());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      group_of_rank_[i] =
          static_cast<std::size_t>(first_with(of_ranks[i].leading) - groups_.begin());
    known_bits_ += step;
  }

  // search.2, search.3: the keys of all groups, in order.
  std::vector<bits> gather(const part_loop& for_each_part) const {
    std::vector<std::vector<bits>> of_workers(static_cast<std::size_t>(on_.threads()));
    for_each_part([&](const tensor& part) {
      for_each_unit(part, [&](const bits* elements, index_t count, std::size_t worker) {
        for (index_t i = 0; i < count; ++i) {
          const bits key = keys::key(elements[i]);
          if (group_of(key) < groups_.size()) of_workers[worker].push_back(key);
        }
      });
    });
    std::vector<bits> all;
    for (const std::vector<bits>& own : of_workers) all.insert(all.end(), own.begin(), own.end());
    const auto found = static_cast<index_t>(all.size());
    if (found != gathered()) parallel::throw_changed("the operand");
    sort_items(all.data(), found);
    return all;
  }

  const std::vector<index_t>& ranks_;
  std::vector<group> groups_;  // by rising leading bits
  std::vector<std::size_t> group_of_rank_;
  int known_bits_ = 0;
  executor& on_;
};

}  // namespace

searched_ranks search_ranks(dtype type, index_t count, const std::vector<index_t>& ranks,
                            index_t gathered_max, const part_loop& for_each_part, executor& on) {
  searched_ranks found;
  visit(type, ordered_types{}, [&]<class T>(std::type_identity<T>) {
    found = rank_search<T>(count, ranks, on).run(type, gathered_max, for_each_part);
  });
  return found;
}

index_t find_equal(const tensor& part, const tensor& element, index_t number, std::byte* to) {
  index_t found = 0;
  visit(part.dtype(), ordered_types{}, [&]<class T>(std::type_identity<T>) {
    using keys = order_keys<T>;
    using bits = typename keys::bits;
    const auto* const elements = reinterpret_cast<const bits*>(part.data());
    const bits wanted = keys::key(*reinterpret_cast<const bits*>(element.data()));
    index_t equal = 0;
    for (index_t i = 0; i < part.size(); ++i)
      if (keys::key(elements[i]) == wanted && equal++ == number) {
        std::memcpy(to, elements + i, sizeof(bits));
        found = i;
        return;
      }
    found = -1 - equal;
  });
  return found;
}

}  // namespace shale::ops
