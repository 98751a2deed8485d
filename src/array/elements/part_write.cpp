#include "array/elements/part_write.hpp"

#include <algorithm>

#include "array/elements/chunk_places.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/evaluation/source_reads.hpp"
#include "ops/functions/operands/slabs.hpp"
#include "shale/evaluate.hpp"
#include "shale/layout.hpp"

namespace shale::arrays {

namespace {

// The share of the memory budget that the values of a block may take. Workers take half of the
// budget for the chunks that they encode and decode.
constexpr std::size_t blocks_in_memory = 8;

tensor evaluated(const expr& values, dtype type, executor& on) {
  const tensor result = tensor::empty(values.shape(), type, &on.pool());
  eval_into(result, values);
  return result;
}

}  // namespace

void write_part(chunk_tiles& tiles, const parallel::axis_map& view, const expr& values,
                executor& on) {
  const chunk_places places(view);
  const dims& chunk = tiles.tile_shape();
  const dims pieces = places.pieces(chunk);
  if (element_count(pieces) == 0) return;
  expr ordered = ops::with_computed_stages(in_array_order(values, view));
  if (ops::reads_elsewhere(ordered, tiles.identity(), places.map()))
    ordered = expr(evaluated(ordered, tiles.dtype(), on));
  const std::size_t chunk_bytes =
      static_cast<std::size_t>(element_count(chunk)) * item_bytes(tiles.dtype());
  const auto in_block = static_cast<index_t>(on.memory_bytes() / blocks_in_memory /
                                             std::max<std::size_t>(chunk_bytes, 1));
  ops::for_each_slab_of(pieces, ops::slab_shape(pieces, in_block), [&](const region& box) {
    const region indices = places.indices_of(box, chunk);
    tiles.write(places.part(indices), evaluated(ops::part_of(ordered, indices), tiles.dtype(), on),
                on);
  });
}

}  // namespace shale::arrays
