// Copies operands of a pass from mapped files to memory and back, one load at a time. A pass does
// this for operands with `operand_access::copied`: see way.hpp.
#pragma once

#include <memory>
#include <vector>

#include "parallel/mapped/mapped_tiles.hpp"
#include "parallel/ways/way.hpp"

namespace shale::parallel {

class copied_operands {
 public:
  /// The plan of `chosen`, `operands` and `on` must outlive this object.
  copied_operands(const way& chosen, std::span<const loop_operand> operands,
                  const pass_options& options, executor& on);

  /// The bytes of all copies without halos at one position of the pass: of an element of each, or,
  /// in a pass over lanes, of a lane of each.
  std::size_t bytes_per_position() const noexcept { return bytes_per_position_; }

  /// The copies of one load by operand number; an empty tensor for an operand that is not copied.
  /// Operands that are the same elements share one copy, unless one has a halo, which the copy
  /// then has as well.
  using copies = std::vector<tensor>;

  void prefetch(index_t load) const noexcept;

  /// Throws   io, corrupt, out_of_memory, cancelled
  copies read(index_t load) const;

  /// Copies the written operands of a load back to their files. Throws io
  void write(index_t load, const copies& from);

  /// After the last load: waits until the files' pages are written back. Throws io
  void finish();

 private:
  struct copied_operand {
    std::size_t number;
    std::unique_ptr<mapped_tiles> tiles;
    dims shape_without_repeats;  // with length 1 along broadcast axes
    bool written;
    bool read;
    std::vector<std::size_t> sharers = {};  // numbers of other operands that use this copy
  };
  class reader;

  void add(std::size_t number);
  dims tile_of(const copied_operand& operand, index_t load) const;
  tensor make_room(const copied_operand& operand, const dims& shape) const;
  tensor read_load(const copied_operand& operand, index_t load) const;
  tensor read_haloed(const copied_operand& operand, index_t load) const;

  const plan& loads_;
  const std::span<const loop_operand> operands_;
  const index_t lane_axis_;
  executor& on_;
  std::size_t bytes_per_position_ = 0;
  std::vector<copied_operand> copied_;
};

}  // namespace shale::parallel
