// Says where the tiles of a plan lie in a mapped operand, and how the operand's pages are handled.
//
// An operand is visited *forwards* if ascending tiles visit ascending bytes. Its pages can be
// dropped as one range that ends at a moving position. The pages of other operands are dropped tile
// by tile. An operand has *gaps* if it is not visited forwards, or if its tiles use less than three
// quarters of the bytes that they span; then every piece of memory is handled on its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "parallel/mapped/memory_pieces.hpp"
#include "parallel/plan/fault_around.hpp"
#include "parallel/plan/plan.hpp"
#include "shale/storage.hpp"

namespace shale::parallel {

/// Operand `index` of the plan. Position 0 of its layout is the first byte of `bytes`.
struct streamed_operand {
  int index = 0;
  storage bytes;
  bool written = false;
};

/// The tiles of a plan from `first` to the one before `end`.
struct tile_numbers {
  index_t first;
  index_t end;
};

/// One mapped operand of a plan, which must outlive it.
class streamed_memory {
 public:
  /// An operand whose first tile takes more than an eighth of the budget does not count as visited
  /// forwards.
  streamed_memory(streamed_operand operand, const plan& loop_plan, std::size_t budget_bytes);

  const storage& bytes() const noexcept { return operand_.bytes; }
  bool written() const noexcept { return operand_.written; }
  bool forwards() const noexcept { return forwards_; }
  bool has_gaps() const noexcept { return gaps_; }

  /// The first byte that the plan touches, and one past the last.
  std::size_t first_byte() const noexcept { return first_byte_; }
  std::size_t end_byte() const noexcept { return end_byte_; }

  /// The bytes that a tile brings in, and those that it spans together with its gaps.
  std::size_t tile_bytes() const noexcept { return gaps_ ? used_bytes_ : span_bytes_; }
  std::size_t span_bytes() const noexcept { return span_bytes_; }

  /// From the lowest byte that the tiles touch to the highest.
  byte_range range(tile_numbers tiles) const;

  /// Calls `visit(range)` for the pieces of memory that the tiles touch. If the operand is not
  /// visited forwards, pieces are rounded outwards to whole granules.
  template <class Visit>
  void for_each_piece(tile_numbers tiles, Visit visit) const {
    for (index_t tile = tiles.first; tile < tiles.end; ++tile) for_each_piece_of(tile, visit);
  }

  /// The piece, rounded outwards to granules that begin at multiples of `granule` in the address
  /// space.
  byte_range granules_of(byte_range piece, std::size_t granule) const;

 private:
  // Visits the pieces of one tile. Pieces that are at most `fault_around_bytes` apart, which a page
  // fault maps together, are one piece. If the operand is not visited forwards, pieces are rounded
  // outwards to granules of that size, which begin at multiples of it in the address space.
  template <class Visit>
  void for_each_piece_of(index_t tile, Visit visit) const {
    const plan::touched_elements touched = plan_->touched_by(operand_.index, plan_->tile(tile));
    for_each_memory_piece(touched.shape, touched.strides_bytes, touched.first,
                          static_cast<index_t>(plan_->item_bytes(operand_.index)),
                          fault_around_bytes, [&](index_t begin, index_t end) {
                            const byte_range piece{static_cast<std::size_t>(begin),
                                                   static_cast<std::size_t>(end - begin)};
                            visit(forwards_ ? piece : granules_of(piece, fault_around_bytes));
                          });
  }

  streamed_operand operand_;
  const plan* plan_;
  std::size_t first_byte_;
  std::size_t end_byte_;
  std::size_t span_bytes_;
  std::size_t used_bytes_ = 0;
  bool forwards_;
  bool gaps_ = false;
};

}  // namespace shale::parallel
