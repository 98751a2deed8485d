// Copies units of a dense array to new space, before a transaction writes them. See
// copied_units.hpp for units.
//
// Invariants
//   update.1  no byte of the base generation is written: bytes are mapped for writing only if their
//             units are copied
//   update.2  a unit is copied once. If several threads are about to write it, one of them copies
//             it, and the others wait
//   update.3  a unit is compared with its checksums before it is copied, so that damaged bytes get
//             no new checksums
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "array/elements/copied_units.hpp"
#include "array/elements/unit_table.hpp"
#include "array/transaction/state/transaction_state.hpp"
#include "shale/layout.hpp"

namespace shale::arrays {

/// The most extents of an array that a commit leaves: readers map each of them, and the number of a
/// process's mappings is limited. Tests lower it, to 4 or more.
inline std::size_t dense_extents_max = 4096;

/// Threads  any; the caller is inside a running write, so that the transaction does not end
class unit_copies {
 public:
  unit_copies(transaction_state& owner, written_array& array) noexcept
      : owner_(owner), array_(array) {}

  /// Copies those units that are not copied yet, and waits for those that other threads copy.
  /// Cost     the copies, and O(log(extents)) for each; once the array has more than
  ///          `dense_extents_max` extents, all its other units are copied at once
  /// Throws   invalid_argument (the transaction has ended), not_found (the array was removed),
  ///          corrupt, out_of_space, io, cancelled: then none of them is copied here
  void require(const format::byte_interval& units);

  /// The same for all units of the array.
  void require_all();

  /// Maps units for writing. They are copied already. The caller has a dense_writer of the array.
  storage window(const format::byte_interval& units);

  /// Moves neighbouring extents into one if there are more than `dense_extents_max`. Of all runs of
  /// half that many extents, the one with the fewest bytes is joined. Called at commit, when nobody
  /// writes any more. The extents stay as they are if a tensor of the caller shows them. In either
  /// case, the array's record has the present extents afterwards.
  void join();

 private:
  std::vector<moved_bytes> claim(const format::byte_interval& units);
  std::vector<moved_bytes> allocate(const std::vector<format::byte_interval>& ranges);
  void give_back(const std::vector<moved_bytes>& unused) noexcept;
  void fill(const std::vector<moved_bytes>& moved);
  void end_work(const std::vector<moved_bytes>& moved) noexcept;
  void copy(const dense_places& places, const std::string& label, const stored_sums& stored,
            const std::vector<moved_bytes>& moved);

  transaction_state& owner_;
  written_array& array_;
};

}  // namespace shale::arrays
