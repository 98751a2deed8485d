// Chooses the way of a pass: how its index space is cut into units, and how each operand's elements
// are brought into memory. The way is a value that is chosen before the pass begins. There are four
// ways:
//   in place             no operand is copied or decoded; mapped ones are streamed in windows if
//                        they need more than half of the budget
//   by tiles             an operand is a tile source or a sink: units follow its grid, or several
//                        of its tiles, and each unit gathers its elements
//   by copies            a large mapped operand is visited against its storage order: all large
//                        ones are copied from the file to memory, and back, by loads of a shape
//                        that suits them
//   by tiles and copies  both a tile source or sink and a large mapped operand, in any storage
//                        order: units follow the grid, or several tiles of it, and the mapped
//                        operand is copied load by load
//
// A pass whose body works on whole units (`pass_options::unit_shape`) goes by tiles, and by copies
// if large mapped operands take part.
//
// A mapped operand is *large* if all mapped operands together need more than half of the budget,
// and this one alone needs more than an eighth. If half of the budget holds them all, their pages
// are read once and stay, in whatever order they are visited, and a copy would only cost time. A
// small operand beside large ones stays resident as well.
//
// An index space is cut twice, into numbered boxes: loads, and the units that lie in them. Both
// numbers are tile numbers, but of different plans. A unit may also cut the tiles of a source, as
// with shifted views, or where sources along different axes would make a unit too large.
//
//   +-----------------------+-----------------------+
//   |        load 0         |        load 1         |   tiles of `load_plan()`
//   |   unit 0  |  unit 1   |   unit 2  |  unit 3   |   tiles of `units`
//   |   t t t   |  t t t    |   t t t   |  t t t    |   tiles of a source (or sink)
//   +-----------------------+-----------------------+
//
//   load   what a thread claims, and what is brought into memory at once. Without `loads`, each
//          unit is a load. A load has several units only if the pass copies operands and its units
//          are fixed (way.1)
//   unit   what one call of the pass's body works on, and a leaf of the reduction tree
//   tile   what a source decodes, or a sink encodes, at once. Tiles are numbered by index in the
//          source's own grid
//   block  a two-dimensional part of a unit, for one call of a kernel
//
// Invariants
//   way.1  the elements of a unit and their order decide the bits of a folded result. So if units
//          are fixed, neither units nor their blocks depend on the budget; the way only chooses the
//          units that are brought in together
//   way.2  units for a body that works on whole units depend on shapes, layouts, halos and grids
//          only
#pragma once

#include <optional>
#include <vector>

#include "parallel/plan/plan.hpp"
#include "parallel/ways/pass_options.hpp"
#include "shale/executor.hpp"

namespace shale::parallel {

/// How an operand's elements become addressable for kernels.
enum class operand_access : std::uint8_t {
  in_place,  ///< they are addressable already; mapped ones are streamed in windows
  tiled,     ///< they are gathered from the tiles of a source, or stored as tiles of a sink
  copied,    ///< they are copied from a mapped file into the pool, and written ones back
};

struct way {
  /// Its tiles are the units: kernels run on them, and they are the leaves of reduction trees.
  plan units;

  /// Its tiles are the loads, in the axes of `units`. Empty if each unit is a load of its own.
  std::optional<plan> loads = std::nullopt;

  /// By operand number; empty: all operands are in place.
  std::vector<operand_access> accesses = {};

  /// Whether each unit gets a plan of its own, because its operands have other strides in each
  /// unit.
  bool plan_per_unit = false;

  const plan& load_plan() const noexcept { return loads ? *loads : units; }
  operand_access access_of(std::size_t operand) const noexcept {
    return accesses.empty() ? operand_access::in_place : accesses[operand];
  }
};

/// Chooses the way for prepared operands.
/// Cost     making a plan; two plans if mapped operands are visited against their storage order
way choose_way(std::span<const loop_operand> operands, const pass_options& options,
               const executor& on);

}  // namespace shale::parallel
