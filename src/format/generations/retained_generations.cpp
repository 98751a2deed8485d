#include "format/generations/retained_generations.hpp"

#include <fmt/format.h>

#include "format/bytes/byte_order.hpp"
#include "shale/error.hpp"

namespace shale::format {

std::vector<std::uint64_t> list_retained(const tree& retained) {
  std::vector<std::uint64_t> generations;
  for (auto cursor = retained.seek({}); cursor.valid(); cursor.next()) {
    // A key that is not understood may stand for a generation whose bytes must not be used again.
    if (cursor.key().size() != 8)
      throw error(errc::corrupt, "the list of retained generations is damaged",
                  {fmt::format("a key has {} bytes, not 8", cursor.key().size())});
    generations.push_back(load_ordered(cursor.key(), 0));
  }
  return generations;
}

}  // namespace shale::format
