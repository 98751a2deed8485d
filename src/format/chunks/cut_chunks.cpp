#include "format/chunks/cut_chunks.hpp"

#include <fmt/format.h>

#include "format/chunks/chunk_index.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

enum class place { inside, across, outside };

// The place of a chunk with respect to the new shape. Only the axes that become shorter count.
place place_of(const dims& chunk, const dims& shape, const array_record& record) {
  place found = place::inside;
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t extent = record.chunked().chunk_shape[axis];
    if (shape[axis] >= record.shape[axis] || chunk[axis] < shape[axis] / extent) continue;
    if (chunk[axis] > shape[axis] / extent || shape[axis] % extent == 0) return place::outside;
    found = place::across;
  }
  return found;
}

}  // namespace

// The walk visits the index in the order of the numbers. A chunk that is not cut is followed by
// others that are not, up to the first cut one of its row along the last axis that becomes shorter.
// The walk jumps to that one.
cut_chunks chunks_cut_by(const dims& shape, const tree& index, const array_record& record,
                         std::uint64_t end_of_file) {
  cut_chunks cut;
  index_t last = -1;
  for (index_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] < record.shape[axis]) last = axis;
  if (last < 0) return cut;
  const chunked_layout& layout = record.chunked();
  for (auto at = index.seek(chunk_key(0)); at.valid();) {
    const std::uint64_t number = number_of_key(at.key(), record);
    dims chunk = chunk_index(layout, number);
    const place found = place_of(chunk, shape, record);
    if (found == place::inside) {
      chunk[last] = shape[last] / layout.chunk_shape[last];
      for (index_t axis = last + 1; axis < chunk.size(); ++axis) chunk[axis] = 0;
      const std::uint64_t first_cut = chunk_number(layout, chunk);
      if (first_cut <= number)  // only in a damaged index
        throw error(errc::corrupt, "a chunk index is damaged",
                    {fmt::format("array '{}': chunk {} is outside the grid", record.name, number)});
      at = index.seek(chunk_key(first_cut));
      continue;
    }
    const chunk_entry entry = decode_chunk_entry(at.short_value(), record, number, end_of_file);
    (found == place::across ? cut.across : cut.outside).push_back({number, entry});
    at.next();
  }
  return cut;
}

}  // namespace shale::format
