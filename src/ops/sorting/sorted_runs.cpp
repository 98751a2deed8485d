#include "ops/sorting/sorted_runs.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "core/grid.hpp"
#include "ops/sorting/order_keys.hpp"
#include "ops/sorting/row_shape.hpp"
#include "ops/sorting/row_sort.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "shale/error.hpp"

namespace shale::ops {

namespace {

// A smaller budget counts as this one.
constexpr std::size_t budget_bytes_min = std::size_t{256} << 10;

// A part has at least this many elements, so that a read of it is worth its cost.
constexpr index_t part_elements_min = 16;

// Whether row_sort.hpp orders indices by pairs of 8 bytes; else by pairs of 16, in two copies.
bool has_narrow_pairs(dtype type) { return item_bytes(type) < 8; }

// The bytes for each element that is sorted in memory: the operand, the elements in order and, for
// a long lane, as much again. For indices: the operand, the elements in order, the indices and
// their pairs.
std::size_t sorted_item_bytes(const file_order& order) {
  const std::size_t item = item_bytes(order.type);
  if (!order.as_indices) return 3 * item;
  return 2 * item + (has_narrow_pairs(order.type) ? 16 : 40);
}

// The bytes for each element that is merged: in the part of a run, in a round, and in the memory
// that sorts the round.
std::size_t merged_item_bytes(const file_order& order) {
  const std::size_t item = item_bytes(order.type);
  if (!order.as_indices) return 4 * item;
  return 2 * item + (has_narrow_pairs(order.type) ? 32 : 56);
}

// The number of elements of each part if `runs` runs are merged.
index_t part_length(const file_order& order, index_t runs, const executor& on) {
  return static_cast<index_t>(file_sort_bytes(on) / merged_item_bytes(order)) / runs;
}

std::span<const std::byte> bytes_of(const tensor& contiguous) {
  return {contiguous.data(), contiguous.size_bytes()};
}

std::size_t span_bytes(index_t items, std::size_t item) {
  return static_cast<std::size_t>(items) * item;
}

}  // namespace

std::size_t file_sort_bytes(const executor& on) noexcept {
  return std::max(on.memory_bytes(), budget_bytes_min) / 2;
}

index_t sorted_at_once(const file_order& order, const executor& on) noexcept {
  return static_cast<index_t>(file_sort_bytes(on) / sorted_item_bytes(order));
}

sorted_runs::sorted_runs(const file_order& order, index_t length, index_t run, executor& on)
    : order_(order), length_(length), on_(on) {
  const index_t runs = ceil_div(length, run);
  if (runs > 1 && part_length(order, runs, on) < part_elements_min)
    throw error(
        errc::out_of_memory, "the memory budget is too small to sort so long a lane",
        {std::to_string(length) + " elements make " + std::to_string(runs) +
             " sorted runs, and merging these takes " +
             std::to_string(span_bytes(2 * part_elements_min * runs, merged_item_bytes(order))) +
             " bytes",
         "the budget has " + std::to_string(on.memory_bytes()) + " bytes"});
}

void sorted_runs::add(const tensor& elements, const tensor& indices) {
  const std::size_t item = item_bytes(order_.type);
  if (!file_)
    file_.emplace(span_bytes(length_, item + (order_.as_indices ? sizeof(std::int64_t) : 0)));
  const index_t count = elements.size();
  file_->write(bytes_of(elements), span_bytes(added_, item));
  if (order_.as_indices) {
    auto* const own = reinterpret_cast<std::int64_t*>(indices.data());
    for (index_t i = 0; i < count; ++i) own[i] += added_;
    file_->write(bytes_of(indices),
                 span_bytes(length_, item) + span_bytes(added_, sizeof(std::int64_t)));
  }
  parallel::state_of(on_).count.written(
      span_bytes(count, item + (order_.as_indices ? sizeof(std::int64_t) : 0)));
  runs_.push_back({.next = added_, .end = added_ + count});
  added_ += count;
}

sorted_runs::buffers sorted_runs::make_buffers() const {
  const auto runs = static_cast<index_t>(runs_.size());
  const index_t part = part_length(order_, runs, on_);
  const auto make = [&](dtype type) { return tensor::empty({runs * part}, type, &on_.pool()); };
  buffers made{.part = part,
               .parts = make(order_.type),
               .part_indices = {},
               .round = make(order_.type),
               .round_indices = {},
               .sorted = make(order_.result())};
  if (order_.as_indices) {
    made.part_indices = make(dtype::int64);
    made.round_indices = make(dtype::int64);
  }
  return made;
}

// runs.3, runs.4: reads as many elements as there is room for, unless the part is more than half
// full.
void sorted_runs::load_part(std::size_t run, const buffers& held) {
  run_state& own = runs_[run];
  const index_t left = own.last - own.first;
  if (own.is_read() || left > held.part / 2) return;
  const index_t more = std::min(held.part - left, own.end - own.next);
  const auto load = [&](const tensor& parts, std::size_t file_begin) {
    const std::size_t item = parts.item_bytes();
    std::byte* const to = parts.data() + run * span_bytes(held.part, item);
    std::memmove(to, to + span_bytes(own.first, item), span_bytes(left, item));
    file_->read({to + span_bytes(left, item), span_bytes(more, item)},
                file_begin + span_bytes(own.next, item));
    parallel::state_of(on_).count.read(span_bytes(more, item));
  };
  load(held.parts, 0);
  if (order_.as_indices) load(held.part_indices, span_bytes(length_, item_bytes(order_.type)));
  own.next += more;
  own.first = 0;
  own.last = left + more;
}

// What a round can take from each part. The bound is the least last element of a part, among the
// runs that still have elements in the file; of several equal ones, the one of the earliest run.
// Elements less than the bound come before all elements in the file. Elements equal to the bound do
// so only in the run of the bound and in earlier runs (runs.2).
template <class T>
std::vector<sorted_runs::taken> sorted_runs::round_of(const buffers& held) const {
  using keys = order_keys<T>;
  using bits = typename keys::bits;
  const bits flip = order_.descends ? keys::last : bits{0};
  const auto key_of = [flip](bits element) { return static_cast<bits>(keys::key(element) ^ flip); };
  const auto part_of_run = [&](std::size_t run) {
    return reinterpret_cast<const bits*>(held.parts.data()) + static_cast<index_t>(run) * held.part;
  };
  std::size_t bound_run = runs_.size();
  bits bound = 0;
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    if (runs_[run].is_read()) continue;
    const bits last = key_of(part_of_run(run)[runs_[run].last - 1]);
    if (bound_run < runs_.size() && last >= bound) continue;
    bound_run = run;
    bound = last;
  }
  std::vector<taken> round;
  index_t at = 0;
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    const bits* const first = part_of_run(run) + runs_[run].first;
    const bits* const last = part_of_run(run) + runs_[run].last;
    const bits* const end =
        bound_run == runs_.size() ? last : std::partition_point(first, last, [&](bits element) {
          const bits key = key_of(element);
          return key < bound || (key == bound && run <= bound_run);
        });
    round.push_back({end - first, at});
    at += end - first;
  }
  return round;
}

// runs.1
tensor sorted_runs::sorted_round(const buffers& held, const std::vector<taken>& round,
                                 index_t count) const {
  parallel::parallel_for_tiles(on_, static_cast<index_t>(round.size()), [&](index_t run, int) {
    const auto number = static_cast<std::size_t>(run);
    const auto gather = [&](const tensor& from, const tensor& to) {
      const std::size_t item = from.item_bytes();
      std::memcpy(to.data() + span_bytes(round[number].at, item),
                  from.data() + span_bytes(run * held.part + runs_[number].first, item),
                  span_bytes(round[number].count, item));
    };
    gather(held.parts, held.round);
    if (order_.as_indices) gather(held.part_indices, held.round_indices);
  });
  const tensor elements = held.round.narrow(0, 0, count), sorted = held.sorted.narrow(0, 0, count);
  if (!order_.as_indices) {
    sort_rows(elements, sorted, order_.descends, on_);
    return sorted;
  }
  argsort_rows(elements, sorted, order_.descends, on_);
  auto* const order = reinterpret_cast<std::int64_t*>(sorted.data());
  const auto* const in_lane = reinterpret_cast<const std::int64_t*>(held.round_indices.data());
  parallel::parallel_for_tiles(on_, ceil_div(count, piece_elements_min), [&](index_t unit, int) {
    const index_t end = std::min(count, (unit + 1) * piece_elements_min);
    for (index_t i = unit * piece_elements_min; i < end; ++i) order[i] = in_lane[order[i]];
  });
  return sorted;
}

// The elements of a round in order, or their indices. A round of one run is in order.
tensor sorted_runs::result_of(const buffers& held, const std::vector<taken>& round,
                              index_t count) const {
  for (std::size_t run = 0; run < round.size(); ++run)
    if (round[run].count == count)
      return (order_.as_indices ? held.part_indices : held.parts)
          .narrow(0, static_cast<index_t>(run) * held.part + runs_[run].first, count);
  return sorted_round(held, round, count);
}

void sorted_runs::merge_into(shale::detail::scratch_file& out, std::uint64_t at) {
  const buffers held = make_buffers();
  for (index_t merged = 0; merged < length_;) {
    parallel::require_not_cancelled(on_);
    parallel::parallel_for_tiles(on_, static_cast<index_t>(runs_.size()), [&](index_t run, int) {
      load_part(static_cast<std::size_t>(run), held);
    });
    std::vector<taken> round;
    visit(order_.type, ordered_types{},
          [&]<class T>(std::type_identity<T>) { round = round_of<T>(held); });
    const index_t count = round.back().at + round.back().count;
    const tensor result = result_of(held, round, count);
    out.write(bytes_of(result), at);
    parallel::state_of(on_).count.written(result.size_bytes());
    for (std::size_t run = 0; run < round.size(); ++run) runs_[run].first += round[run].count;
    at += result.size_bytes();
    merged += count;
  }
  file_->check();
  runs_.clear();
  added_ = 0;
}

}  // namespace shale::ops
