// Sorts a lane that is longer than memory: sorted runs of it lie in a file, and are merged.
//
// The merge works in rounds. A round reads a part of each run. It takes the elements that come
// before all elements which are still in the file. It puts them side by side in the order of the
// runs, and all threads sort them in memory like any other lane (row_sort.hpp).
//
// Invariants
//   runs.1  runs are added in the order of the lane, and a round puts elements of earlier runs
//           first; so the merged lane is in the stable order, whatever the runs, the budget and the
//           threads
//   runs.2  a round takes an element only if no element that is still in the file comes before it
//   runs.3  each element is written to the file once, and read from it once
//   runs.4  a round takes at least half of the part of one run, so the number of rounds is limited
//
// Source   Knuth, The Art of Computer Programming 3 (1998), 5.4: external sorting
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "shale/executor.hpp"
#include "shale/tensor.hpp"
#include "storage/mapped/scratch_file.hpp"

namespace shale::ops {

/// What a sort in a file computes.
struct file_order {
  dtype type;  // of the elements that are sorted
  bool descends;
  bool as_indices;  // the result is the elements' indices, int64, instead of the elements

  dtype result() const noexcept { return as_indices ? dtype::int64 : type; }
};

/// The bytes of the budget that a sort in a file may hold at a time.
std::size_t file_sort_bytes(const executor& on) noexcept;

/// The most elements that are sorted in memory at once, at least 1. The operand, the result and the
/// work memory of row_sort.hpp fit in `file_sort_bytes` then.
index_t sorted_at_once(const file_order& order, const executor& on) noexcept;

/// Holds the sorted runs of one lane at a time. The file is made when the first run is added.
class sorted_runs {
 public:
  /// Lanes have `length` elements. Runs have `run` elements; the last run of a lane may be shorter.
  /// Throws   out_of_memory if the budget is too small to merge so many runs
  sorted_runs(const file_order& order, index_t length, index_t run, executor& on);

  /// Adds the next run of the lane: its elements in order. If the result is indices, `indices` has
  /// the position in the run that each element had (int64); this function changes them to positions
  /// in the lane. Both tensors are contiguous and have one axis.
  /// Throws   as scratch_file::write
  void add(const tensor& elements, const tensor& indices);

  /// Whether all elements of the lane have been added.
  bool complete() const noexcept { return added_ == length_; }

  /// Merges the runs of a complete lane into `out`, from byte `at` on. The next run begins another
  /// lane.
  /// Throws   out_of_memory, out_of_space, cancelled, io
  void merge_into(shale::detail::scratch_file& out, std::uint64_t at);

 private:
  // The elements `next` to `end` - 1 of a run are still in the file. The elements `first` to
  // `last` - 1 of its part are loaded and not taken.
  struct run_state {
    index_t next = 0;
    index_t end = 0;
    index_t first = 0;
    index_t last = 0;
    bool is_read() const noexcept { return next == end; }
  };

  // How many elements a round takes of a run's part, and where they begin in the round.
  struct taken {
    index_t count;
    index_t at;
  };

  // Memory of a merge: a part of each run, side by side, and what a round takes of them.
  struct buffers {
    index_t part;  // elements of a part
    tensor parts, part_indices;
    tensor round, round_indices;
    tensor sorted;  // the elements of the round in order, or their indices
  };

  buffers make_buffers() const;
  void load_part(std::size_t run, const buffers& held);
  template <class T>
  std::vector<taken> round_of(const buffers& held) const;
  tensor sorted_round(const buffers& held, const std::vector<taken>& round, index_t count) const;
  tensor result_of(const buffers& held, const std::vector<taken>& round, index_t count) const;

  const file_order order_;
  const index_t length_;
  executor& on_;
  std::optional<shale::detail::scratch_file> file_;  // elements, then indices
  std::vector<run_state> runs_;
  index_t added_ = 0;
};

}  // namespace shale::ops
