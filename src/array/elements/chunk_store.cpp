#include "array/elements/chunk_store.hpp"

#include "shale/error.hpp"

namespace shale::arrays {

void chunk_store::put(std::uint64_t, const format::encoded_chunk&) {
  throw error(errc::access_denied, "an array of a snapshot cannot be written",
              {"container::begin, then transaction::update"});
}

void chunk_store::erase(std::uint64_t) { put(0, {}); }

std::optional<format::chunk_entry> generation_chunks::find(std::uint64_t number) const {
  return view_.find_chunk(record_, number);
}

void generation_chunks::read(const format::chunk_entry& entry, format::bytes_span into) const {
  view_.read_chunk(entry, into);
}

int generation_chunks::descriptor() const noexcept { return view_.descriptor(); }

}  // namespace shale::arrays
